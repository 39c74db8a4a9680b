"""How a queue stands: what each partition said, or why it said nothing, and what follows from it for the queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import add

from partitionedqueue.broker.counts import Counts
from partitionedqueue.broker.replies import Totals
from partitionedqueue.model import placement
from partitionedqueue.model.errors import (
    BrokerFault,
    BrokerTooNew,
    BrokerTooOld,
    BrokerUnavailable,
    LoginRefused,
    Misplaced,
    PartitionedQueueError,
)
from partitionedqueue_gateway.entities.failures import NoCredentials, QueueGone
from partitionedqueue_gateway.entities.queue import Queue


class Availability(StrEnum):
    """Service Bus' words: all partitions answer, some, or none. Unknown: there was no time to ask them."""

    AVAILABLE = "Available"
    LIMITED = "Limited"
    UNAVAILABLE = "Unavailable"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a partition does not serve; the words of the custom resource's status."""

    NOT_ACCEPTED = "NotAccepted"
    UNREACHABLE = "Unreachable"
    NO_CREDENTIALS = "NoCredentials"
    LOGIN_REFUSED = "LoginRefused"
    NOT_CONFIGURED = "NotConfigured"
    MISPLACED = "Misplaced"
    BROKER_TOO_OLD = "BrokerTooOld"
    BROKER_TOO_NEW = "BrokerTooNew"
    FAULTY = "Faulty"


REASONS: dict[type[PartitionedQueueError], Reason] = {
    BrokerUnavailable: Reason.UNREACHABLE,
    QueueGone: Reason.UNREACHABLE,
    NoCredentials: Reason.NO_CREDENTIALS,
    LoginRefused: Reason.LOGIN_REFUSED,
    Misplaced: Reason.MISPLACED,
    BrokerTooOld: Reason.BROKER_TOO_OLD,
    BrokerTooNew: Reason.BROKER_TOO_NEW,
    BrokerFault: Reason.FAULTY,
}


@dataclass(frozen=True, slots=True)
class Sickness:
    """Why a partition does not serve: a word for programs, and words for people."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """What became of asking one partition: its totals, or what it is sick of."""

    pod: str
    found: Totals | Sickness


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What became of asking a queue, partition by partition. `observed_ms` is since 1970, by the gateway's clock.

    No partitions at all: there was no time to ask.
    """

    queue: Queue
    partitions: Sequence[PartitionReport]
    observed_ms: int

    @property
    def known(self) -> bool:
        """Whether the partitions were asked at all."""
        return bool(self.partitions)

    @property
    def totals(self) -> list[Totals]:
        """Of the partitions that serve."""
        return [one.found for one in self.partitions if isinstance(one.found, Totals)]

    @property
    def sick(self) -> dict[int, Sickness]:
        """The partitions that do not serve."""
        return {number: one.found for number, one in enumerate(self.partitions) if isinstance(one.found, Sickness)}

    @property
    def availability(self) -> Availability:
        """What Service Bus would say."""
        if not self.known:
            return Availability.UNKNOWN
        if not self.sick:
            return Availability.AVAILABLE
        return Availability.UNAVAILABLE if len(self.sick) == len(self.partitions) else Availability.LIMITED

    @property
    def counts(self) -> Counts:
        """Added up over the partitions that serve."""
        return reduce(add, map(Counts.of, self.totals), Counts())

    @property
    def oldest_ms(self) -> int | None:
        """How long the oldest message that is still there has been there, by the clock of its broker."""
        return max((one.now_ms - one.oldest for one in self.totals if one.oldest), default=None)


def queue_report_of(queue: Queue, partitions: Sequence[PartitionReport], observed_ms: int) -> QueueReport:
    """What the partitions' reports make. Where none serves and the operator has said why, its words are theirs."""
    report = QueueReport(queue, partitions, observed_ms)
    if queue.held_back is None or report.totals:
        return report
    sickness = Sickness(Reason.NOT_ACCEPTED, queue.held_back)
    return QueueReport(queue, [PartitionReport(one.pod, sickness) for one in partitions], observed_ms)


def report_of(queue: Queue, partition: int, answer: Totals | PartitionedQueueError) -> PartitionReport:
    """What a partition's answer means: one that holds something else than it should does not serve."""
    pod = placement.pod_name(queue.spec.name, partition)
    if isinstance(answer, PartitionedQueueError):
        return PartitionReport(pod, Sickness(reason_of(answer), str(answer)))
    if not answer.partitions:
        words = f"broker {queue.brokers[partition]} has not been told yet which partition it holds"
        return PartitionReport(pod, Sickness(Reason.NOT_CONFIGURED, words))
    if (answer.partition, answer.partitions) != (partition, queue.spec.partitions):
        here = f"partition {answer.partition} of {answer.partitions}"
        words = f"broker {queue.brokers[partition]} holds {here}, not {partition} of {queue.spec.partitions}"
        return PartitionReport(pod, Sickness(Reason.MISPLACED, words))
    return PartitionReport(pod, answer)


def reason_of(error: PartitionedQueueError) -> Reason:
    """The word for an error: that of its class, or of the nearest above it."""
    return next((REASONS[kind] for kind in type(error).__mro__ if kind in REASONS), Reason.FAULTY)
