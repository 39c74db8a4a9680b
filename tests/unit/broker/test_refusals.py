import pytest

from partitionedqueue.broker.refusals import REFUSALS, error_of
from partitionedqueue.model import errors
from partitionedqueue.model.errors import (
    BrokerFault,
    BrokerRefusal,
    BrokerTooOld,
    BrokerUnavailable,
    LockLost,
    MessageNotFound,
    QueueFull,
)


def test_redis_words_become_the_domains() -> None:
    assert isinstance(error_of("a:1", "OOM command not allowed"), QueueFull)
    assert isinstance(error_of("a:1", "LOADING Redis is loading"), BrokerUnavailable)
    assert isinstance(error_of("a:1", "ERR unknown command 'FCALL', with args"), BrokerTooOld)
    assert isinstance(error_of("a:1", "ERR Function not found"), BrokerUnavailable)
    assert isinstance(error_of("a:1", "ERR max number of clients reached"), BrokerUnavailable)


def test_words_that_nobody_knows_are_a_fault_and_are_told_whole() -> None:
    fault = error_of("a:1", "WRONGTYPE Operation against a key")
    assert type(fault) is BrokerFault
    assert str(fault) == "broker a:1: WRONGTYPE Operation against a key"


def test_a_refusal_says_which_broker_and_why() -> None:
    refusal = error_of("a:1", "NOTFOUND message 7 is not deferred")
    assert type(refusal) is MessageNotFound
    assert str(refusal) == "broker a:1: message 7 is not deferred"
    assert type(error_of("a:1", "LOCKLOST operation 2")) is LockLost


def test_a_quota_and_a_full_memory_are_the_same_to_a_caller() -> None:
    assert str(error_of("a:1", "QUOTA 1073741824 bytes")) == str(error_of("a:1", "OOM command not allowed"))


@pytest.mark.parametrize("kind", [k for k in vars(errors).values() if isinstance(k, type) and k is not BrokerRefusal])
def test_every_refusal_has_a_code(kind: type[Exception]) -> None:
    if issubclass(kind, BrokerRefusal):
        assert kind in REFUSALS.values()
        assert type(error_of("a:1", next(c for c, k in REFUSALS.items() if k is kind) + " words")) is kind
