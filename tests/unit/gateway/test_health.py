import pytest

from partitionedqueue.broker.replies import Totals
from partitionedqueue.model import errors
from partitionedqueue.model.errors import BrokerUnavailable, LoginRefused, PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_gateway.entities.failures import NoCredentials, QueueGone
from partitionedqueue_gateway.entities.health import (
    Availability,
    QueueReport,
    Reason,
    queue_report_of,
    reason_of,
    report_of,
)
from partitionedqueue_gateway.entities.queue import Queue
from partitionedqueue_gateway.rest import metrics, shapes

PARTITIONS = 16


def queue(*, held_back: str | None = None) -> Queue:
    spec = QueueSpec(name="orders", namespace="shop", enable_partitioning=True)
    brokers = tuple(BrokerAddress(f"orders-broker-{n}", 6379) for n in range(PARTITIONS))
    return Queue(spec=spec, uid="1", brokers=brokers, held_back=held_back)


def totals(partition: int, **counts: int) -> Totals:
    return Totals(partition=partition, partitions=PARTITIONS, **counts)


def report(*sick: int, held_back: str | None = None) -> QueueReport:
    """Of partitions that hold as many messages as their number; `sick` ones do not answer."""
    found = queue(held_back=held_back)
    answers: list[Totals | PartitionedQueueError] = [totals(n, messages=n, ready=n) for n in range(PARTITIONS)]
    for number in sick:
        answers[number] = BrokerUnavailable("it is away")
    return queue_report_of(found, [report_of(found, n, one) for n, one in enumerate(answers)], 1_000)


def test_availability_is_available_limited_or_unavailable() -> None:
    assert report().availability is Availability.AVAILABLE
    assert report(3).availability is Availability.LIMITED
    assert report(*range(PARTITIONS)).availability is Availability.UNAVAILABLE
    assert QueueReport(queue(), (), 0).availability is Availability.UNKNOWN


def test_counts_leave_out_the_sick_and_say_that_they_are_not_complete() -> None:
    shape = shapes.queue(report(15, 3))
    assert shape["messages"] == sum(range(PARTITIONS)) - 18
    assert shape["countsComplete"] is False
    assert [one["partition"] for one in shape["unavailablePartitions"]] == [3, 15]
    assert shape["countsObservedAt"] == "1970-01-01T00:00:01.000Z"


def test_a_queue_that_was_not_heard_out_has_no_counts() -> None:
    shape = shapes.queue(QueueReport(queue(), (), 0))
    assert shape["availability"] == "Unknown"
    assert "messages" not in shape
    assert [*metrics.of_queues([QueueReport(queue(), (), 0)])].count("# TYPE pq_messages gauge") == 1


def test_what_the_operator_says_is_told_where_no_partition_serves() -> None:
    shape = shapes.queue(report(*range(PARTITIONS), held_back="TooManyPartitionedEntities: it is the 101st"))
    assert {one["reason"] for one in shape["unavailablePartitions"]} == {"NotAccepted"}
    assert shape["notAccepted"] == "TooManyPartitionedEntities: it is the 101st"


def test_a_queue_whose_last_change_was_not_accepted_still_serves() -> None:
    assert report(held_back="InvalidSpec: a change too far").availability is Availability.AVAILABLE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Totals(), Reason.NOT_CONFIGURED),
        (totals(4), Reason.MISPLACED),
        (Totals(partition=3, partitions=1), Reason.MISPLACED),
    ],
)
def test_a_broker_that_holds_something_else_does_not_serve(answer: Totals, reason: Reason) -> None:
    found = report_of(queue(), 3, answer).found
    assert not isinstance(found, Totals)
    assert found.reason is reason
    assert "orders-broker-3:6379" in found.message


def test_every_error_has_a_reason() -> None:
    assert reason_of(LoginRefused("no")) is Reason.LOGIN_REFUSED
    assert reason_of(NoCredentials("none")) is Reason.NO_CREDENTIALS
    assert reason_of(QueueGone("gone")) is Reason.UNREACHABLE
    every = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PartitionedQueueError)
    ]
    assert len(every) > 20
    for kind in every:
        assert reason_of(kind("words")) in Reason


def test_labels_are_escaped() -> None:
    lines = [*metrics._family("pq_x", "Words.", [({"queue": 'a"b\\c\nd'}, 1)])]
    assert lines[-1] == 'pq_x{queue="a\\"b\\\\c\\nd"} 1'


def test_series_a_queue_are_as_many_as_its_docstring_says() -> None:
    lines = [line for line in metrics.of_queues([report()]) if not line.startswith("#")]
    assert len(lines) <= 6 + 6 + 2 * PARTITIONS
