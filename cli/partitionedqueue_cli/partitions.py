"""The brokers of one queue, or of one of its sub-queues, as a command speaks to them."""

import argparse
import sys
from types import TracebackType
from typing import Self, TypeVar

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import DEAD_LETTERS, TRANSFERS, QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.errors import BrokerUnavailable
from partitionedqueue.model.identifiers import split_sequence_number
from partitionedqueue_cli import namespace
from partitionedqueue_cli.failures import CommandFailed, NoSuchQueue

T = TypeVar("T")
_SUB_QUEUES = {path.lower(): path for path in ("", DEAD_LETTERS, TRANSFERS, TRANSFERS + DEAD_LETTERS)}


def entity_of(path: str, *, dead_letters: bool = False) -> tuple[str, QueueKeys]:
    """The queue of a path such as `letters/$DeadLetterQueue`, in any case as Azure takes it, and the entity's keys.

    `dead_letters` takes its dead-letter queue, unless it is one. Raises NoSuchQueue.
    """
    name, slash, rest = path.partition("/")
    sub_queue = _SUB_QUEUES.get((slash + rest).lower())
    if sub_queue is None:
        known = ", ".join(repr(name + one) for one in _SUB_QUEUES.values() if one)
        raise NoSuchQueue(f"there is no {path!r}; the sub-queues of {name} are {known}")
    keys = QueueKeys(name + sub_queue)
    return name, keys.dead_letters if dead_letters and not sub_queue.endswith(DEAD_LETTERS) else keys


class Partitions:
    """The partitions of what `arguments.queue` names. One that is down is left out, and named at the end."""

    def __init__(self, arguments: argparse.Namespace, *, dead_letters: bool = False) -> None:
        name, self.keys = entity_of(arguments.queue, dead_letters=dead_letters)
        queue = namespace.load_running(arguments.data_dir).queue_up(name)
        self.spec = queue.spec()
        self.down: dict[int, str] = {}
        self._clients = [BrokerClient(address, timeout_s=arguments.timeout) for address in queue.addresses()]

    def __len__(self) -> int:
        return len(self._clients)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        for client in self._clients:
            await client.close()

    @property
    def has_sessions(self) -> bool:
        """Whether messages are received by session: those of a sub-queue are not."""
        return self.spec.requires_session and self.keys.name == self.spec.name

    async def call(self, partition: int, call: Call[T]) -> T | None:
        """One call; None where the partition is down."""
        try:
            return await self._clients[partition].call(call)
        except BrokerUnavailable as error:
            self.down[partition] = str(error)
            return None

    async def totals(self, partition: int) -> Totals | None:
        """How one partition stands."""
        call: Call[Totals] = calls.totals(self.keys)
        return await self.call(partition, call)

    def place_of(self, number: int) -> tuple[int, int]:
        """The partition of a sequence number, and its own number there. Raises CommandFailed where there is none."""
        try:
            partition, local = split_sequence_number(number)
        except ValueError as error:
            raise CommandFailed(str(error)) from error
        if partition >= len(self):
            raise CommandFailed(f"{number} is of partition {partition}; the queue has partitions 0 to {len(self) - 1}")
        return partition, local

    def complain(self) -> int:
        """Name what is down; the exit code."""
        for partition, words in sorted(self.down.items()):
            print(f"pq: partition {partition} of queue {self.spec.name} is down: {words}", file=sys.stderr)
        return 1 if self.down else 0
