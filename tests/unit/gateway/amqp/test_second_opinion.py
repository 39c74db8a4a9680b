"""What Apache Qpid Proton's codec makes of the same values (tests/fixtures/amqp/make_proton_vectors.py)."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from harness.proton_vectors import python_value
from partitionedqueue_gateway.amqp.engine import sections
from partitionedqueue_gateway.amqp.engine.decoding import decode, skip
from partitionedqueue_gateway.amqp.engine.encoding import encode

_VECTORS: Final = json.loads((Path(__file__).parents[3] / "fixtures/amqp/proton-vectors.json").read_text())


@pytest.mark.parametrize("vector", _VECTORS["values"], ids=lambda vector: str(vector["value"])[:30])
def test_values_are_what_proton_writes_and_reads(vector: Any) -> None:
    value, theirs, ours = python_value(vector["value"]), bytes.fromhex(vector["proton"]), bytes.fromhex(vector["ours"])
    assert decode(theirs) == value
    assert encode(value) == ours  # which Proton has read
    assert encode(decode(theirs)) == ours  # the types are the same
    assert skip(theirs, 0) == len(theirs)


@pytest.mark.parametrize("vector", _VECTORS["messages"], ids=lambda vector: str(vector["id"]))
def test_messages_are_split_as_proton_wrote_them(vector: Any) -> None:
    found = {section.code: section for section in sections.split(bytes.fromhex(vector["encoded"]))}
    message_id = next(sections.slices(found[sections.PROPERTIES].encoded))
    assert decode(message_id) == python_value(vector["id"])
    assert encode(decode(message_id)) == encode(python_value(vector["id"]))
    body = found.get(sections.DATA) or found[sections.VALUE]
    assert body.value == python_value(vector["body"])
