"""The chart, and what it repeats of the project: held together here; whether it works is shown on a cluster."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/partitionedqueue"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES = "\n".join(path.read_text() for path in sorted((CHART / "templates").rglob("*")) if path.is_file())
FREE = {
    "resources",
    "affinity",
    "nodeSelector",
    "podLabels",
    "podAnnotations",
    "labels",
    "annotations",
}  # Kubernetes' own


def code(*folders: str) -> str:
    return "\n".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


def test_the_charts_custom_resources_are_those_of_crds() -> None:
    ours = {path.name: path.read_bytes() for path in (ROOT / "crds").glob("*.yaml")}
    charts = {path.name: path.read_bytes() for path in (CHART / "files/crds").glob("*.yaml")}
    assert ours == charts, "run: cp crds/*.yaml charts/partitionedqueue/files/crds/"


@pytest.mark.parametrize("path", sorted((CHART / "files/crds").glob("*.yaml")), ids=lambda path: path.name)
def test_keeping_them_needs_metadata_without_annotations(path: Path) -> None:
    """The template writes the annotation in front of what stands there."""
    text = path.read_text()
    for document in yaml.safe_load_all(text):
        assert "annotations" not in document["metadata"]
    assert text.count("\nmetadata:\n") == len(list(yaml.safe_load_all(text)))


def test_the_charts_version_is_the_projects() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chart["appVersion"] == version
    assert chart["version"] == re.sub(r"\.dev(\d+)$", r"-dev.\1", version)


def described(values: Mapping[str, Any], schema: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, set[str]]]:
    """Each mapping of the values: where it is, and the names that stand only there or only in the schema."""
    yield at, set(values) ^ (set(schema["properties"]) - {"global"})
    for name, value in values.items():
        if isinstance(value, dict) and name not in FREE:
            yield from described(value, schema["properties"][name], f"{at}.{name}")


def test_the_schema_knows_every_value_and_no_other() -> None:
    jsonschema.validate(VALUES, SCHEMA)
    assert {at: names for at, names in described(VALUES, SCHEMA) if names} == {}


def properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, one in schema.get("properties", {}).items():
        yield name, one
        yield from properties(one)


def test_the_schema_is_strict_and_says_what_everything_is() -> None:
    for name, one in properties(SCHEMA):
        assert one["description"].endswith("."), name
        if "properties" in one:
            assert one["additionalProperties"] is False, name


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"operator": {"replicas": 0}}, "0 is less than the minimum of 1"),
        ({"operator": {"replica": 2}}, "'replica' was unexpected"),
        ({"image": {"pullPolicy": "Sometimes"}}, "'Sometimes' is not one of"),
        ({"broker": {"image": {"digest": "abc"}}}, "does not match '^(sha256:"),
        ({"gateway": {"image": {"repository": "host/name:tag"}}}, "does not match"),
        ({"watchNamespaces": ["My Shop"]}, "'My Shop' does not match"),
        ({"serviceMonitor": {"interval": 30}}, "30 is not of type 'string'"),
    ],
)
def test_a_value_that_cannot_be_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(jsonschema.ValidationError, match=re.escape(words)):
        jsonschema.validate(values, SCHEMA)


def test_what_the_pods_are_told_is_what_the_programs_read() -> None:
    told = set(re.findall(r"- name: (PQ_\w+)", TEMPLATES))
    assert told
    read = code("operator/partitionedqueue_operator", "gateway/partitionedqueue_gateway")
    assert {name for name in told if f'"{name}"' not in read} == set()


def test_the_dashboards_ask_for_metrics_that_there_are() -> None:
    asked = {
        name
        for path in (CHART / "files/dashboards").glob("*.json")
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\bpq_\w+", target["expr"])
    }
    assert len(asked) > 5
    given = code("operator/partitionedqueue_operator", "gateway/partitionedqueue_gateway")
    given += "".join(f" pq_operator_{name}" for name in re.findall(r'_metric\("(\w+)"', given))
    assert {name for name in asked if not re.search(rf"\b{name}\b", given)} == set()


def test_no_image_is_called_latest() -> None:
    assert "latest" not in (CHART / "values.yaml").read_text()
    assert VALUES["broker"]["image"]["tag"] == ""
