"""The driver's side of claim logs: connections, ownership and the heartbeat. Lives in one process, is never pickled."""

import dataclasses
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.replies import Claimed, ClaimLog, Totals
from partitionedqueue.model.errors import (
    BrokerRefusal,
    BrokerUnavailable,
    ClaimAhead,
    ClaimFenced,
    PartitionedQueueError,
    TryAgain,
)
from partitionedqueue_spark.fetching import broker_at
from partitionedqueue_spark.options import SourceOptions
from partitionedqueue_spark.partition import PartitionUnreadable, claims_lost, unreadable
from partitionedqueue_spark.standing import standing

T = TypeVar("T")
THREADS_MAX: Final = 16  # brokers asked at the same time
TRY_AGAINS_MAX: Final = 1_000  # each gives back 64 pieces of a lapsed log, so a log of 16 million messages is through
BEATS_IN_A_LEASE: Final = 3


class QueryFenced(PartitionUnreadable):
    """Another run of the same checkpoint has taken over."""


class ClaimLogs:
    """A group's claim logs in all partitions of a queue, owned by this process.

    Errors name the partition: PartitionUnreadable, QueryFenced, ClaimsLost.
    """

    def __init__(self, options: SourceOptions, group: str) -> None:
        self.group = group
        self.opened = False
        self.sessions = False  # whether the queue has sessions; known once it is opened
        self._options = options
        self._owner = uuid.uuid4().hex
        self._keys = options.keys
        self._lease_ms = options.claim_timeout_ms
        self._brokers = connect(options)
        self._pool = ThreadPoolExecutor(min(THREADS_MAX, len(self._brokers)), thread_name_prefix="partitionedqueue")
        self._ending = threading.Event()
        self._heartbeat: threading.Thread | None = None

    def open(self, start: Sequence[int]) -> list[ClaimLog]:
        """Become the owner everywhere; `start` is what the checkpoint says has been committed.

        Raises ClaimsLost where claims were given back since, unless failOnLockLost is false.
        """
        logs = self._everywhere(lambda partition: self._open(partition, start[partition]))
        if self._heartbeat is None:
            self._heartbeat = threading.Thread(target=self._beat, name="partitionedqueue-heartbeat", daemon=True)
            self._heartbeat.start()
        self.opened = True
        self.sessions = any(log.sessions for log in logs)
        return logs

    def totals(self) -> list[Totals]:
        """How every partition stands."""
        return self._everywhere(self._totals)

    def claim(self, start: Sequence[int], most: Sequence[int], bytes_most: Sequence[int] | None = None) -> list[int]:
        """Claim so that each log reaches up to start + most; gives how far each reaches.

        With bytes a claim ends with the message that reaches them; 0 claims nothing. What was claimed before counts
        as messages only.
        """
        if bytes_most is None:
            return self._everywhere(lambda partition: self._claim(partition, start[partition], most[partition]))
        return self._everywhere(
            lambda partition: self._claim_bytes(partition, start[partition], most[partition], bytes_most[partition])
        )

    def acknowledge(self, upto: Sequence[int]) -> None:
        """Take everything below `upto` out of the queue for good."""
        self._everywhere(lambda partition: self._acknowledge(partition, upto[partition]))

    def close(self) -> None:
        """End the heartbeat and the connections; claims stay until their lease lapses or the query comes back."""
        self._ending.set()
        if self._heartbeat is not None:
            self._heartbeat.join(timeout=1.0)
        self._pool.shutdown(wait=True)
        for broker in self._brokers:
            broker.close()

    def _everywhere(self, act: Callable[[int], T]) -> list[T]:
        return list(self._pool.map(act, range(len(self._brokers))))

    def _call(self, partition: int, call: Call[T]) -> T:
        try:
            return self._brokers[partition].call(call)
        except ClaimAhead as error:
            raise PartitionUnreadable(
                f"partition {partition}: the checkpoint is ahead of the broker, whose data is older or was deleted "
                f"({error})"
            ) from error
        except ClaimFenced as error:
            raise self._why_fenced(partition) from error
        except PartitionedQueueError as error:
            raise unreadable(partition, error) from error

    def _why_fenced(self, partition: int) -> PartitionedQueueError:
        """Lost claims clear the owner as well: tell the two apart."""
        log = self._brokers[partition].call(calls.claimed(self._keys, self.group, 0, 0))
        if log.lost and log.lost == log.next:
            return claims_lost(partition, self.group, 0, log.lost)
        return QueryFenced(
            f"FENCED partition {partition}: another run of this query has taken over group {self.group}; two queries "
            "must not share a checkpoint"
        )

    def _open(self, partition: int, start: int) -> ClaimLog:
        for _ in range(TRY_AGAINS_MAX):
            try:
                log = self._brokers[partition].call(
                    calls.claim_open(self._keys, self.group, self._owner, self._lease_ms)
                )
                break
            except TryAgain:
                continue
            except PartitionedQueueError as error:
                raise unreadable(partition, error) from error
        else:
            raise PartitionUnreadable(f"partition {partition}: claims are still being given back; try again")
        # lost == start: what the last batch had committed was given back before it was acknowledged.
        if self._options.fail_on_lock_lost and log.lost and log.lost >= start:
            raise claims_lost(partition, self.group, min(start, log.lost - 1), log.lost)
        return log

    def _totals(self, partition: int) -> Totals:
        return standing(self._brokers[partition], self._options, partition)

    def _claim(self, partition: int, start: int, most: int) -> int:
        end = start
        while end < start + most:
            call = calls.claim(self._keys, self.group, self._owner, self._lease_ms, start, most)
            claimed: Claimed = self._call(partition, call)
            if claimed.end <= end:
                break
            end = claimed.end
        return end

    def _claim_bytes(self, partition: int, start: int, most: int, bytes_most: int) -> int:
        end, stop = start, start + most
        held = self._call(partition, calls.claimed(self._keys, self.group, start, start)).next
        if held > start:  # by a claim that was cut off before Spark knew of it, within the same bound
            return min(held, stop)
        while end < stop and bytes_most > 0:
            call = calls.claim(self._keys, self.group, self._owner, self._lease_ms, end, stop - end, bytes_most)
            claimed: Claimed = self._call(partition, call)
            if claimed.end <= end:
                break
            end, bytes_most = claimed.end, bytes_most - claimed.bytes
        return end

    def _acknowledge(self, partition: int, upto: int) -> None:
        left = upto
        while left:
            left = self._call(partition, calls.claim_acknowledge(self._keys, self.group, self._owner, upto))

    def _beat(self) -> None:
        """Renew the lease while batches run; over connections of its own. A partition that refuses is left alone:
        the next call of the query tells why.
        """
        hasty = dataclasses.replace(self._options, broker_timeout_ms=0)  # one that is away must not hold the others up
        brokers = dict(enumerate(connect(hasty)))
        call = calls.claim_renew(self._keys, self.group, self._owner, self._lease_ms)
        while not self._ending.wait(self._lease_ms / 1000 / BEATS_IN_A_LEASE):
            for partition, broker in list(brokers.items()):
                try:
                    broker.call(call)
                except BrokerRefusal:
                    del brokers[partition]
                except BrokerUnavailable:
                    continue
        for broker in brokers.values():
            broker.close()


def connect(options: SourceOptions) -> list[BlockingBroker]:
    """A client for each partition's broker; nothing is sent yet."""
    return [broker_at(address, options) for address in options.brokers]


def new_group() -> str:
    """A name that no other query has: random behind the time, so that an operator can tell old ones."""
    return f"spark-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:16]}"
