"""The images: what their Dockerfiles promise, and what in them is written down in two places."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from partitionedqueue.broker import access
from partitionedqueue.broker.library import library_text

ROOT = Path(__file__).parents[2]
FOLDERS = {"broker": "broker-image", "operator": "operator", "gateway": "gateway", "spark": "spark-on-k8s"}
LOCKED = {"operator": "operator", "gateway": "gateway", "spark": "spark"}  # image, extra
USER = "10001"


def dockerfile(image: str) -> str:
    return (ROOT / FOLDERS[image] / "Dockerfile").read_text()


def pins(path: Path) -> dict[str, str]:
    """Names and versions of a lock file."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("image", FOLDERS)
def test_an_image_begins_with_one_base_and_runs_as_nobody_in_particular(image: str) -> None:
    text = dockerfile(image)
    own = set(re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE))
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) - own == {"debian:trixie-slim"}
    final = text[text.rindex("\nFROM ") :]
    assert f"useradd --uid {USER} " in final  # Spark's Hadoop, and people, look the name up
    assert f"\nUSER {USER}:{USER}\n" in final


@pytest.mark.parametrize("image", FOLDERS)
def test_an_image_says_what_it_is_and_fits_every_architecture(image: str) -> None:
    text = dockerfile(image)
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in text
    assert not re.search("(?i)amd64|x86_64|arm64|aarch64|:latest", text)


@pytest.mark.parametrize(("image", "extra"), LOCKED.items())
def test_an_image_installs_what_is_locked_for_it_and_nothing_else(image: str, extra: str) -> None:
    locked, everything = pins(ROOT / FOLDERS[image] / "requirements.lock"), pins(ROOT / "requirements.lock")
    assert locked.items() <= everything.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"][extra]]
    assert {re.split(r"[\[<>=]", one)[0] for one in wanted} <= set(locked)
    text = dockerfile(image)
    assert "--require-hashes" in text
    assert f"{FOLDERS[image]}/requirements.lock" in text


def test_the_brokers_users_may_run_what_the_librarys_functions_consist_of() -> None:
    text = library_text()
    called = set(re.findall(r"\bcall\('([A-Z]+)'", text))
    called |= {
        name for either in re.findall(r"\bcall\([^'][^']* and '([A-Z]+)' or '([A-Z]+)'", text) for name in either
    }
    assert {name.lower() for name in called} == set(access.DATA_COMMANDS)


def test_every_function_of_the_library_is_somebodys_business() -> None:
    functions = set(re.findall(r"\bcommand\('(pq_\w+)'", library_text()))
    assert functions == {*access.MESSAGE_FUNCTIONS, *access.CLAIM_FUNCTIONS, *access.MANAGING_FUNCTIONS}


def test_the_manifests_run_the_version_that_the_chart_installs() -> None:
    version = yaml.safe_load((ROOT / "charts/partitionedqueue/Chart.yaml").read_text())["appVersion"]
    text = "\n".join(path.read_text() for path in sorted((ROOT / "spark-on-k8s/manifests").glob("*.yaml")))
    assert set(re.findall(r"partitionedqueue/spark:(\S+)", text)) == {version}
