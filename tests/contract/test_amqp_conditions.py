"""Every error of the domain that can reach an AMQP client has a condition."""

import pytest

import partitionedqueue_gateway.access
import partitionedqueue_gateway.amqp
import partitionedqueue_gateway.entities
from harness.error_kinds import errors_of
from partitionedqueue.model.errors import BrokerUnavailable, LockLost, PartitionedQueueError
from partitionedqueue_gateway.amqp import conditions
from partitionedqueue_gateway.amqp.conditions import CONDITIONS

ERRORS = errors_of(partitionedqueue_gateway.access, partitionedqueue_gateway.amqp, partitionedqueue_gateway.entities)
PREFIXES = ("amqp:", "com.microsoft:")


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_a_condition(kind: type[PartitionedQueueError]) -> None:
    assert kind in CONDITIONS, f"say in amqp/conditions.py what AMQP clients are told of {kind.__name__}"


def test_the_table_has_nothing_else() -> None:
    assert set(CONDITIONS) == set(ERRORS)


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


@pytest.mark.parametrize("kind", ERRORS)
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
