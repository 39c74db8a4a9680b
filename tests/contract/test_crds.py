"""The custom resources as texts: documented in every field, and such that examples fit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from partitionedqueue.model.queue_spec import parse_manifests

Schema = dict[str, Any]
CRDS = Path(__file__).parents[2] / "crds"
EXAMPLES = sorted((CRDS / "examples").glob("*.yaml"))
DEFINITIONS = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))[1:]]
VERSIONS = {
    (definition["spec"]["names"]["kind"], version["name"]): version
    for definition in DEFINITIONS
    for version in definition["spec"]["versions"]
}


def schema_of(version: Schema) -> Schema:
    found = version["schema"]["openAPIV3Schema"]
    assert isinstance(found, dict)
    return found


def properties(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every property, with its path."""
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}", inner
        yield from properties(inner, f"{path}.{name}")
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from properties(inner, f"{path}[]")


EVERY_PROPERTY = [
    pytest.param(inner, id=f"{kind}{path}")
    for (kind, _), version in VERSIONS.items()
    for part in ("spec", "status")
    for path, inner in [
        (f".{part}", schema_of(version)["properties"][part]),
        *properties(schema_of(version)["properties"][part], f".{part}"),
    ]
]


@pytest.mark.parametrize("schema", EVERY_PROPERTY)
def test_every_property_is_explained_and_typed(schema: Schema) -> None:
    assert schema.get("type") or schema.get("x-kubernetes-int-or-string")
    words = schema["description"]
    assert words[0].isupper()
    assert words.rstrip()[-1] in ".)"


@pytest.mark.parametrize("schema", EVERY_PROPERTY)
def test_every_list_and_map_has_a_bound(schema: Schema) -> None:
    if schema.get("type") == "array":
        assert schema["maxItems"] > 0
        assert schema["x-kubernetes-list-type"] in ("atomic", "map")
    if "additionalProperties" in schema:
        assert schema["maxProperties"] > 0


@pytest.mark.parametrize("version", VERSIONS.values(), ids=lambda version: str(version["name"]))
def test_columns_show_what_is_there(version: Schema) -> None:
    paths = {path for path, _ in properties(schema_of(version))} | {".metadata.creationTimestamp"}
    assert {column["jsonPath"] for column in version["additionalPrinterColumns"]} <= paths
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_fits_the_schema_and_is_read_by_the_core(path: Path) -> None:
    text = path.read_text()
    (document,) = yaml.safe_load_all(text)
    version = VERSIONS[document["kind"], document["apiVersion"].rpartition("/")[2]]
    closed = {**schema_of(version)["properties"]["spec"], "additionalProperties": False}
    jsonschema.Draft202012Validator(closed).validate(document["spec"])
    (queue,) = parse_manifests(text, source=str(path))
    assert queue.name == document["metadata"]["name"]


@pytest.mark.parametrize("version", VERSIONS.values(), ids=lambda version: str(version["name"]))
def test_the_schema_is_one(version: Schema) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(version))
    assert schema_of(version)["type"] == "object"
