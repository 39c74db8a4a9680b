"""Every error of the domain that can reach an HTTP client has an answer."""

import pytest

import partitionedqueue_gateway.access
import partitionedqueue_gateway.entities
import partitionedqueue_gateway.rest
from harness.error_kinds import errors_of
from partitionedqueue.model.errors import BrokerUnavailable, LockLost, PartitionedQueueError
from partitionedqueue_gateway.rest import failures
from partitionedqueue_gateway.rest.failures import REFUSALS, Refusal

ERRORS = errors_of(partitionedqueue_gateway.access, partitionedqueue_gateway.entities, partitionedqueue_gateway.rest)


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_an_answer(kind: type[PartitionedQueueError]) -> None:
    assert kind in REFUSALS, f"say in rest/failures.py what HTTP clients are told of {kind.__name__}"


def test_the_table_has_nothing_else() -> None:
    assert set(REFUSALS) == set(ERRORS)


@pytest.mark.parametrize("refusal", sorted(set(REFUSALS.values())))
def test_answers_are_refusals_and_say_when_to_try_again(refusal: Refusal) -> None:
    assert 400 <= refusal.status < 600
    assert refusal.sub_code // 10_000 == refusal.status // 100
    assert refusal.retry_s or refusal.status not in {429, 503}


def test_words_that_programs_read_are_azures() -> None:
    told = failures.told(LockLost("broker 10.0.0.1:6379: no such lock"))
    words = (
        "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue."
    )
    assert told == (404, 40400, words, 0)


@pytest.mark.parametrize("kind", ERRORS)
def test_no_client_is_told_where_a_broker_is(kind: type[PartitionedQueueError]) -> None:
    secret = "orders-broker-3.brokers.team-a:6379"
    if kind.__init__ in (PartitionedQueueError.__init__, BrokerUnavailable.__init__):
        for words in (f"broker {secret}: refused it", f"the partition at {secret} is full"):
            assert secret not in failures.told(kind(words)).words


def test_a_defect_keeps_its_words_to_itself() -> None:
    told = failures.told(ValueError("the secret is abc"))
    assert told.status == 500
    assert "abc" not in told.words


def test_an_error_that_is_not_in_the_table_is_told_as_what_it_is_one_of() -> None:
    class NewKindOfLoss(LockLost):
        pass

    assert failures.told(NewKindOfLoss("gone")).status == 404
