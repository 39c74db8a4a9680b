"""The status that the operator writes and the status that the custom resource declares: the same fields, no others.

A field that the schema does not know the API server drops without a word, and with it what a person waits for; one that
nobody writes is a promise. Both are looked for over queues in every state that there is a status for.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from partitionedqueue.broker.replies import Totals
from partitionedqueue_operator import reconcile
from partitionedqueue_operator.conditions.standing import NAMED_MAX
from partitionedqueue_operator.observed import Key, Observed, Pod, Queue, Report
from partitionedqueue_operator.settings import Settings
from partitionedqueue_operator.status import CONDITIONS

Schema = dict[str, Any]
CRD = yaml.safe_load((Path(__file__).parents[2] / "crds/partitionedqueues.yaml").read_text())
STATUS: Schema = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LONG = "x" * 40_000
"""More than any field may hold: messages are Kubernetes' own, or a broker's, and of any length."""


def queue(**spec: Any) -> Queue:
    return Queue(
        key=Key("shop", "orders"), uid="u-1", generation=3, created="2026-01-01T00:00:00Z", deleting=False,
        annotations={}, spec={"enablePartitioning": True, "sizeGB": 5, **spec}, status={},
    )  # fmt: skip


def pod(partition: int, **changes: Any) -> Pod:
    made = Pod(f"orders-broker-{partition}", f"p-{partition}", "198.18.0.1", True, False, "c", durability="Always")
    return replace(made, **changes)


def observed(of: Queue, *, pods: int, report: Report, **changes: Any) -> Observed:
    return Observed(
        of.key,
        NOW,
        queue=of,
        pods={n: pod(n, **changes) for n in range(pods)},
        reports=dict.fromkeys(range(pods), report),
    )


def with_its_objects(seen: Observed) -> Observed:
    """As it is once the plan was carried out."""
    body = next(one for one in written_plan(seen).objects if one["kind"] == "StatefulSet")
    body = {**body, "metadata": {**body["metadata"], "uid": "s-1", "generation": 1}}
    body["status"] = {"observedGeneration": 1, "updateRevision": "r", "currentRevision": "r"}
    return replace(seen, children={("StatefulSet", "orders-broker"): body})


def written_plan(seen: Observed) -> reconcile.Plan:
    return reconcile.plan(seen, Settings(broker_image="broker:1"), b"k" * 32)


def every_state() -> Iterator[tuple[str, Observed]]:
    full = Report("c", totals=Totals(**dict.fromkeys((f.name for f in fields(Totals)), 2**40)), library="1.2.3")
    well = observed(queue(requiresSession=True), pods=80, report=full)
    yield "new", observed(queue(), pods=0, report=full)
    yield "well", with_its_objects(well)
    yield (
        "every partition in trouble",
        with_its_objects(replace(well, reports={n: Report("c", "Faulty", LONG) for n in range(80)})),
    )
    yield "no pod ready", with_its_objects(observed(queue(), pods=80, report=full, ready=False, message=LONG))
    yield "refused", observed(queue(sizeGB=7), pods=0, report=full)
    yield (
        "as many libraries as partitions",
        with_its_objects(replace(well, reports={n: replace(full, library=f"{n}.10.1") for n in range(80)})),
    )
    yield "faults", replace(with_its_objects(well), faults=tuple(LONG for _ in range(6)))
    for policy in ("Retain", "Delete"):
        yield policy, with_its_objects(observed(queue(deletionPolicy=policy), pods=80, report=full))


def statuses() -> Iterator[Any]:
    for name, seen in every_state():
        first = written_plan(seen).status
        assert first is not None
        assert seen.queue is not None
        yield pytest.param(first, id=name)
        before = replace(seen.queue, status=first, spec={**seen.queue.spec, "sizeGB": 7})  # what is carried over
        again = written_plan(replace(seen, queue=before)).status
        assert again is not None
        yield pytest.param(again, id=f"{name}, then of a spec that cannot be")


STATUSES = list(statuses())


def closed(schema: Schema) -> Schema:
    """The schema, with no field that it does not name: what the API server would drop is an error here."""
    made = {name: closed(inner) if isinstance(inner, dict) else inner for name, inner in schema.items()}
    if "properties" in made and isinstance(made.get("type"), str):
        made["additionalProperties"] = False
    return made


def paths(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{path}.{name}"
            yield from paths(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{path}[]")


def declared(schema: Schema, path: str = "") -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from declared(inner, f"{path}.{name}")
    if isinstance(inner := schema.get("items"), dict):
        yield from declared(inner, f"{path}[]")


@pytest.mark.parametrize("status", STATUSES)
def test_the_api_server_takes_every_field_of_every_status(status: Schema) -> None:
    formats = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(closed(STATUS), format_checker=formats).validate(status)


def test_every_field_of_the_schema_is_written_in_some_state() -> None:
    written = {path for status in STATUSES for path in paths(status.values[0])}
    assert set(declared(STATUS)) == written


def test_as_many_partitions_and_conditions_fit_as_are_ever_named() -> None:
    assert STATUS["properties"]["unavailablePartitions"]["maxItems"] == NAMED_MAX
    assert STATUS["properties"]["conditions"]["maxItems"] >= len(CONDITIONS)


def test_the_conditions_that_are_written_are_those_that_are_explained() -> None:
    words = STATUS["properties"]["conditions"]["description"]
    written = {condition["type"] for status in STATUSES for condition in status.values[0]["conditions"]}
    assert {word for word in written if f"{word}: " not in words} == set()
    assert len(written) == len(CONDITIONS)


def test_of_several_libraries_the_oldest_is_told() -> None:
    libraries = dict.fromkeys(range(80), "0.10.0") | {7: "0.9.2"}
    seen = replace(
        observed(queue(), pods=80, report=Report("c")),
        reports={n: Report("c", totals=Totals(), library=library) for n, library in libraries.items()},
    )
    status = written_plan(seen).status
    assert status is not None
    assert status["libraryVersion"] == "0.9.2"
