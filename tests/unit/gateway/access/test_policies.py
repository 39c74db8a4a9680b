"""Policies in files: what is read, what is refused, and that no key is ever said."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from partitionedqueue_gateway import limits, secret_files
from partitionedqueue_gateway.access.failures import PoliciesUnreadable
from partitionedqueue_gateway.access.policies import ALL_RIGHTS, PolicyFolder, Right

SECRET = "bm9ib2R5LW1heS1zZWUtdGhpcw=="


def document(**fields: Any) -> dict[str, Any]:
    return {"name": "root", "primaryKey": SECRET, "rights": ["Manage"], **fields}


def folder(path: Path, *documents: dict[str, Any]) -> PolicyFolder:
    for number, one in enumerate(documents):
        (path / f"{number}.yaml").write_text(yaml.safe_dump(one))
    return PolicyFolder(path, default_namespace="default")


def test_policies_are_read_with_their_rights_and_their_reach(tmp_path: Path) -> None:
    found = folder(
        tmp_path,
        document(),
        document(name="in", rights=["Send"], entity="Orders", secondaryKey="another-key-0"),
        document(name="in", rights=["Listen"], entity="team-a/orders"),
        document(name="all-of-a", rights=["Send", "Listen"], entity="team-a/*"),
    )
    assert found.read()
    assert len(found.policies) == 4
    (root,) = found.policies.named("root")
    assert (root.rights, root.scope, len(root.keys)) == (ALL_RIGHTS, (), 1)
    assert [one.scope for one in found.policies.named("in")] == [("default", "orders"), ("team-a", "orders")]
    assert [len(one.keys) for one in found.policies.named("in")] == [2, 1]
    (team,) = found.policies.named("all-of-a")
    assert team.rights == {Right.SEND, Right.LISTEN}
    assert team.scope == ("team-a",)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": "root policy"}, "name must be"),
        ({"name": None}, "name must be"),
        ({"primaryKey": None}, "primaryKey must be text"),
        ({"primaryKey": "short"}, "primaryKey must be text of at least 12"),
        ({"secondaryKey": SECRET + " "}, "secondaryKey must be text"),
        ({"secondaryKey": 123456789012}, "secondaryKey must be text"),
        ({"rights": []}, "rights must be a list"),
        ({"rights": "Send"}, "rights must be a list"),
        ({"rights": ["send"]}, "rights must be a list"),
        ({"rights": [["Send"]]}, "rights must be a list"),
        ({"entity": 5}, "entity must be text"),
        ({"key": SECRET}, "'key' is no field"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_by_its_field_and_says_no_key(
    tmp_path: Path, wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(PoliciesUnreadable) as refused:
        folder(tmp_path, document(**wrong)).read()
    assert words in str(refused.value)
    assert "0.yaml" in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text", [f"primaryKey: {SECRET}: x", f"- {SECRET}", f'"{SECRET}', "", "\x00" + SECRET, "a: *b"]
)
def test_a_file_that_is_no_policy_is_not_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(PoliciesUnreadable) as refused:
        PolicyFolder(tmp_path, default_namespace="default").read()
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_keys_are_in_no_repr(tmp_path: Path) -> None:
    found = folder(tmp_path, document())
    found.read()
    assert SECRET not in repr(found.policies.named("root"))


def test_a_folder_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    found = folder(tmp_path, document())
    assert found.read()
    assert not found.read()
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(document(name="more")))
    assert found.read()
    assert len(found.policies) == 2


def test_a_secret_that_kubernetes_swaps_counts(tmp_path: Path) -> None:
    """The kubelet writes a new folder beside and turns a link; file names are links through it."""
    for version, name in (("v1", "root"), ("v2", "more")):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "policy.yaml").write_text(yaml.safe_dump(document(name=name)))
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    found = PolicyFolder(tmp_path, default_namespace="default")
    assert found.read()
    assert found.policies.named("root")
    (tmp_path / "..data_new").symlink_to("..v2")
    (tmp_path / "..data_new").rename(tmp_path / "..data")
    assert found.read()
    assert found.policies.named("more")
    assert not found.policies.named("root")


async def until(what: Callable[[], bool]) -> None:
    for _ in range(1000):
        if what():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("that did not happen in time")


async def test_changes_count_and_a_broken_file_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "SECRETS_POLL_S", 0.01)
    caplog.set_level(logging.INFO)
    found = folder(tmp_path, document())
    found.read()
    keeping = asyncio.create_task(secret_files.keep_reading("policies", found.read))
    try:
        (tmp_path / "1.yaml").write_text(yaml.safe_dump(document(name="more")))
        await until(lambda: bool(found.policies.named("more")))
        (tmp_path / "1.yaml").write_text(f"primaryKey: {SECRET}: x")
        await until(lambda: "stays in force" in caplog.text)
        await asyncio.sleep(0.1)
        assert found.policies.named("more")
        assert caplog.text.count("stays in force") == 1
        assert SECRET not in caplog.text
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
