"""The schema that the API server has and the fields that the core reads are the same ones, with the same bounds."""

import dataclasses
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.queue_manifests import REFUSED
from partitionedqueue.model import durations, limits, placement, queue_spec
from partitionedqueue.model.manifest_fields import (
    NAME_PATTERN,
    Choice,
    Duration,
    EntityName,
    Field,
    Flag,
    Group,
    Listed,
    Named,
    Passed,
    Quantity,
    Text,
    Whole,
)
from partitionedqueue.model.queue_spec import FIELDS, QueueSpec
from partitionedqueue_cli import namespace

Schema = dict[str, Any]
CRDS = Path(__file__).parents[2] / "crds"
CRD = yaml.safe_load((CRDS / "partitionedqueues.yaml").read_text())
(VERSION,) = CRD["spec"]["versions"]
SCHEMA: Schema = VERSION["schema"]["openAPIV3Schema"]
SPEC: Schema = SCHEMA["properties"]["spec"]


def fields(
    read: dict[str, tuple[str, Field]], schema: Schema, kind: Any, path: str
) -> Iterator[tuple[str, Field, Schema, Any]]:
    """Every field: its path, the core's reader, the API server's schema, and what the core has where it is left out."""
    assert set(read) == set(schema["properties"]), path
    assert [attribute for attribute, _ in read.values()] == [
        one.name for one in dataclasses.fields(kind) if one.name not in ("name", "namespace")
    ], path
    plain = kind(name="q") if kind is QueueSpec else kind()
    for key, (attribute, field) in read.items():
        inner = schema["properties"][key]
        yield f"{path}.{key}", field, inner, getattr(plain, attribute)
        if isinstance(field, Group):
            yield from fields(dict(field.fields), inner, field.kind, f"{path}.{key}")


EVERY_FIELD = list(fields(dict(FIELDS), SPEC, QueueSpec, "spec"))


def rules(schema: Schema) -> list[dict[str, str]]:
    return list(schema.get("x-kubernetes-validations", []))


def only_rule(schema: Schema) -> dict[str, str]:
    (rule,) = rules(schema)
    return rule


def every_rule(schema: Schema) -> Iterator[dict[str, str]]:
    yield from rules(schema)
    for inner in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from every_rule(inner)


def check(field: Field, schema: Schema) -> None:
    """Hold a reader's bounds against the schema's."""
    match field:
        case Flag():
            assert schema["type"] == "boolean"
        case Text(characters_max):
            assert (schema["type"], schema["maxLength"]) == ("string", characters_max)
        case EntityName():
            assert (schema["type"], schema["maxLength"]) == ("string", limits.QUEUE_NAME_CHARACTERS_MAX)
            assert only_rule(schema)["rule"] == f"self.matches('{NAME_PATTERN}')"
        case Whole(lowest, highest):
            assert (schema["type"], schema["minimum"], schema["maximum"]) == ("integer", lowest, highest)
        case Choice(kinds):
            assert (schema["type"], schema["enum"]) == ("string", [kind.value for kind in kinds])
        case Duration():
            check_duration(field, schema)
        case Quantity(or_whole=or_whole):
            assert schema["maxLength"] <= 32
            assert schema.get("x-kubernetes-int-or-string", False) == or_whole
            assert only_rule(schema)["rule"] == ("isQuantity(string(self))" if or_whole else "isQuantity(self)")
        case _:
            check_compound(field, schema)


def check_compound(field: Field, schema: Schema) -> None:
    match field:
        case Group() | Passed():
            assert schema["type"] == "object"
        case Named(entries_max, inner, reserved):
            assert (schema["type"], schema["maxProperties"]) == ("object", entries_max)
            check(inner, schema["additionalProperties"])
            assert tuple(re.findall(r"startsWith\('(.+?)'\)", "".join(r["rule"] for r in rules(schema)))) == reserved
        case Listed(items_max, inner):
            assert (schema["type"], schema["maxItems"]) == ("array", items_max)
            check(inner, schema["items"])
        case _:
            pytest.fail(f"no comparison for {field}")


def check_duration(field: Duration, schema: Schema) -> None:
    rule = only_rule(schema)
    assert rule["message"] == f"write an ISO 8601 duration {field.bounds}, such as {field.example}"
    assert rule["rule"].startswith(f"self.matches('{durations.PATTERN}') && self.matches('{durations.ENDING}') && ")
    assert f">= duration('{field.lowest_ms // 1000}s')" in rule["rule"]
    if field.highest_ms == limits.TIME_MS_MAX:
        assert "< duration" not in rule["rule"]
    else:  # parts of a millisecond do not count
        assert f"< duration('{field.highest_ms // 1000}.001s')" in rule["rule"]
        assert f"<= {field.highest_ms // 86_400_000} &&" in rule["rule"]


@pytest.mark.parametrize(("path", "field", "schema", "left_out"), EVERY_FIELD, ids=[one[0] for one in EVERY_FIELD])
def test_a_field_takes_the_same_and_has_the_same_default(
    path: str, field: Field, schema: Schema, left_out: Any
) -> None:
    check(field, schema)
    if "default" in schema:
        assert field(path, schema["default"]) == left_out
    else:
        assert not left_out or dataclasses.is_dataclass(left_out)


@pytest.mark.parametrize(("path", "field", "schema", "left_out"), EVERY_FIELD, ids=[one[0] for one in EVERY_FIELD])
def test_what_is_said_of_a_field_names_its_default_and_bounds(
    path: str, field: Field, schema: Schema, left_out: Any
) -> None:
    words = " ".join(schema["description"].split())
    if isinstance(left_out, StrEnum):
        assert re.search(rf"{left_out}\b[^;.]* \(default\)", words)
        assert all(kind in words for kind in type(left_out))
    elif "default" in schema:
        assert re.search(f"[Dd]efault,? {str(schema['default']).lower()}", words, re.IGNORECASE)
    if isinstance(field, Duration):
        assert field.bounds in words


def test_the_resource_has_the_names_that_the_core_has() -> None:
    spec = CRD["spec"]
    assert (spec["group"], VERSION["name"]) == (queue_spec.GROUP, queue_spec.VERSION)
    assert (spec["names"]["kind"], spec["names"]["plural"]) == (queue_spec.KIND, queue_spec.PLURAL)
    assert CRD["metadata"]["name"] == f"{queue_spec.PLURAL}.{queue_spec.GROUP}"
    assert SCHEMA["properties"]["metadata"]["properties"]["name"]["maxLength"] == limits.QUEUE_NAME_CHARACTERS_MAX
    assert SCHEMA["x-kubernetes-validations"][0]["rule"] == f"self.metadata.name.matches('{NAME_PATTERN}')"


def test_sizes_are_the_same() -> None:
    (rule,) = (one for one in rules(SPEC) if one["fieldPath"] == ".sizeGB" and "oldSelf" not in one["rule"])
    assert f"self.sizeGB <= {max(limits.SIZES_GB_PARTITIONED)} :" in rule["rule"]
    assert f"self.sizeGB in {list(limits.SIZES_GB_CONVENTIONAL)}" in rule["rule"]
    for sizes in (limits.SIZES_GB_PARTITIONED, limits.SIZES_GB_CONVENTIONAL):
        assert f"has {', '.join(map(str, sizes))}'" in rule["messageExpression"]


@pytest.mark.parametrize("partition_gb", [1, 2, 5, 80])
def test_volumes_and_memory_are_reckoned_the_same(partition_gb: int) -> None:
    figures = {}
    for path in (".storage.size", ".storage", ".broker.resources"):
        (rule,) = (one["rule"] for one in rules(SPEC) if one["fieldPath"] == path)
        figures[path] = sorted({float(figure) for figure in re.findall(r"\d+\.0\b", rule)})
    assert figures[".storage.size"] == [placement.volume_bytes_min(1)]
    assert figures[".storage"] == [placement.volume_bytes(1)]
    base, per_gb = figures[".broker.resources"]
    assert base + per_gb * partition_gb == placement.maxmemory_bytes(partition_gb)
    assert placement.volume_bytes_min(partition_gb) == partition_gb * placement.volume_bytes_min(1)
    assert placement.volume_bytes(partition_gb) == partition_gb * placement.volume_bytes(1)


def test_what_the_api_server_keeps_from_changing_the_embedded_namespace_does_too() -> None:
    kept = {one["fieldPath"].removeprefix(".") for one in rules(SPEC) if "oldSelf" in one["rule"]}
    assert kept - {"storage", "durability"} == set(namespace.IMMUTABLE.values())


def test_for_every_rule_there_is_a_queue_that_it_refuses_in_the_words_of_the_core() -> None:
    told = [case.words for case in REFUSED if not case.its_own]
    for rule in every_rule(SCHEMA["properties"]["spec"]):
        if "oldSelf" not in rule["rule"]:
            words = rule.get("messageExpression", rule["message"])
            assert any(one in words for one in told), words


def test_the_deletion_policy_speaks_of_our_resource_and_of_its_default() -> None:
    policy, binding = yaml.safe_load_all((CRDS / "deletion-policy.yaml").read_text())
    (resources,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (resources["apiGroups"], resources["resources"]) == ([queue_spec.GROUP], [queue_spec.PLURAL])
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    text = (CRDS / "deletion-policy.yaml").read_text()
    status = SCHEMA["properties"]["status"]["properties"]
    assert set(re.findall(r"oldObject\.\?status\.\?(\w+)", text)) <= set(status)
    default = queue_spec.DeletionPolicy.DELETE_IF_EMPTY
    assert SPEC["properties"]["deletionPolicy"]["default"] == default
    assert f"orValue('{default}') == '{default}'" in text
