"""What is served over AMQP stands in its reference, and nothing else does."""

import re
from pathlib import Path

import pytest

from partitionedqueue_gateway.amqp.conditions import CONDITIONS
from partitionedqueue_gateway.amqp.management import OFFERS

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "amqp.md").read_text()


@pytest.mark.parametrize("operation", sorted(OFFERS))
def test_each_operation_of_the_management_node_stands_in_the_reference(operation: str) -> None:
    assert f"`{operation}`" in REFERENCE


def test_the_reference_has_no_other_operations() -> None:
    rows = REFERENCE.partition("| operation | request")[2].partition("\n\n")[0].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
    assert named == set(OFFERS)


@pytest.mark.parametrize("symbol", sorted({condition.symbol for condition in CONDITIONS.values()}))
def test_each_condition_stands_in_the_reference(symbol: str) -> None:
    assert f"`{symbol}`" in REFERENCE or f"`…:{symbol.partition(':')[2]}`" in REFERENCE
