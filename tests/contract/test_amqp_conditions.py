"""Every error of the domain that can reach an AMQP client has a condition."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import partitionedqueue.model.errors
import partitionedqueue_gateway.access
import partitionedqueue_gateway.amqp
import partitionedqueue_gateway.entities
from partitionedqueue.model.errors import BrokerUnavailable, LockLost, PartitionedQueueError
from partitionedqueue_gateway.amqp import conditions
from partitionedqueue_gateway.amqp.conditions import CONDITIONS

ROOMS = (partitionedqueue_gateway.access, partitionedqueue_gateway.amqp, partitionedqueue_gateway.entities)
PREFIXES = ("amqp:", "com.microsoft:")


def errors() -> list[type[PartitionedQueueError]]:
    """Those of the core, and of the gateway's rooms that AMQP stands on."""
    for room in ROOMS:
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    homes = (partitionedqueue.model.errors.__name__, *(room.__name__ for room in ROOMS))
    return sorted({one for one in _below(PartitionedQueueError) if one.__module__.startswith(homes)}, key=str)


def _below(kind: type[PartitionedQueueError]) -> Iterator[type[PartitionedQueueError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


@pytest.mark.parametrize("kind", errors())
def test_every_error_has_a_condition(kind: type[PartitionedQueueError]) -> None:
    assert kind in CONDITIONS, f"say in amqp/conditions.py what AMQP clients are told of {kind.__name__}"


def test_the_table_has_nothing_else() -> None:
    assert set(CONDITIONS) == set(errors())


@pytest.mark.parametrize("condition", sorted(set(CONDITIONS.values())))
def test_conditions_are_azures_or_amqps_and_have_a_status(condition: conditions.Condition) -> None:
    assert condition.symbol.startswith(PREFIXES)
    assert 400 <= condition.status < 600


def test_words_that_programs_read_are_azures() -> None:
    told = conditions.told(LockLost("broker 10.0.0.1:6379: no such lock"))
    words = (
        "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue."
    )
    assert told == ("com.microsoft:message-lock-lost", 410, words)


@pytest.mark.parametrize("kind", errors())
def test_no_client_is_told_where_a_broker_is(kind: type[PartitionedQueueError]) -> None:
    secret = "orders-broker-3.brokers.team-a:6379"
    if kind.__init__ in (PartitionedQueueError.__init__, BrokerUnavailable.__init__):
        for words in (f"broker {secret}: refused it", f"the partition at {secret} is full"):
            assert secret not in conditions.told(kind(words)).description


def test_a_defect_keeps_its_words_to_itself() -> None:
    told = conditions.told(ValueError("the secret is abc"))
    assert told.symbol == "amqp:internal-error"
    assert "abc" not in told.description


def test_an_error_that_is_not_in_the_table_is_told_as_what_it_is_one_of() -> None:
    class NewKindOfLoss(LockLost):
        pass

    assert conditions.told(NewKindOfLoss("gone")).symbol == "com.microsoft:message-lock-lost"
