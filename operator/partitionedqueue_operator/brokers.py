"""Speaks to the brokers: tells each what its queue's owner has set, gives it this program's library, and counts.

Partitions are seen to independently of each other: one that does not answer costs its own time limit and nobody else's.
"""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from partitionedqueue.broker import access, calls, logins
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.errors import (
    BrokerUnavailable,
    ImmutableSetting,
    LoginRefused,
    Misplaced,
    PartitionedQueueError,
)
from partitionedqueue.model.placement import BROKER_PORT, BrokerAddress
from partitionedqueue_operator.loops import LATE_S, Pulse
from partitionedqueue_operator.observed import Key, Pod, Report
from partitionedqueue_operator.reconcile import BrokerTarget

ASK_S_MAX: Final = 3.0  # a broker that is well answers in milliseconds
ASKED_AT_ONCE_MAX: Final = 48
TROUBLED_AT_ONCE_MAX: Final = 16  # more, of those that have not answered: thousands of them must not hold up the others
CONNECTIONS_MAX: Final = 1_024  # kept open; the longest unused is closed for one more
ROUND_S_MIN: Final = 5.0  # between two countings of a queue that changes
ROUND_S_MAX: Final = 10.0  # and of one where nothing happens, where there are few
PARTITION_S: Final = (
    0.004  # where there are many: each is asked so seldom that all of them cost a quarter of a processor
)
RETRY_S_MIN: Final = 1.0
RETRY_S_MAX: Final = 15.0
USERS_S: Final = 150.0
"""After so long a changed Secret has reached the pods' files: the kubelet looks once a minute, by a cache as old."""
UNREACHABLE: Final = "Unreachable"
_TROUBLES: Final[Mapping[type[PartitionedQueueError], str]] = {
    LoginRefused: "LoginRefused",
    BrokerUnavailable: UNREACHABLE,
    Misplaced: "Misplaced",
    ImmutableSetting: "ImmutableSetting",
}


class Pods(Protocol):
    """Where the pods of a queue are looked up."""

    def __call__(self, key: Key, /) -> Mapping[int, Pod]:
        """Running or not, by partition."""


@dataclass(slots=True)
class _Watched:
    """A queue whose brokers are seen to."""

    target: BrokerTarget
    password: str
    users: str = ""  # the file of users in the Secret
    reports: dict[int, Report] = field(default_factory=dict)
    pause_s: float = ROUND_S_MIN
    failures: int = 0
    poked: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    users_since: float = field(default_factory=time.monotonic)  # when this operator found that file there
    users_read: dict[int, str] = field(default_factory=dict)  # incarnations that have read it once more since then


class Brokers:
    """Sees to the brokers of all queues that it is given; `changed` is called when one of them has news."""

    def __init__(self, pods: Pods, changed: Callable[[Key], None], pulse: Pulse | None = None) -> None:
        self._pods = pods
        self._pulse = pulse or Pulse()
        self._changed = changed
        self._watched: dict[Key, _Watched] = {}
        self._clients: OrderedDict[tuple[Key, int], tuple[str, BrokerClient]] = OrderedDict()
        self._places = asyncio.Semaphore(ASKED_AT_ONCE_MAX)
        self._places_of_the_troubled = asyncio.Semaphore(TROUBLED_AT_ONCE_MAX)
        self._group: asyncio.TaskGroup | None = None
        self.calls_made = 0

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for key, watched in self._watched.items():
                    watched.task = group.create_task(self._rounds(key, watched))
                await asyncio.Event().wait()
        finally:
            self._group = None
            for _, client in self._clients.values():
                await client.close()

    def see_to(self, key: Key, target: BrokerTarget, password: str, users: str) -> None:
        """From now on each broker of the queue is to have these settings, and the users of that file."""
        watched = self._watched.get(key)
        if watched is not None and watched.users != users:
            watched.users, watched.users_since = users, time.monotonic()
            watched.users_read.clear()
        if watched is None:
            watched = self._watched[key] = _Watched(target, password, users)
        elif watched.target == target and watched.password == password:
            return
        watched.target, watched.password, watched.failures = target, password, 0
        watched.poked.set()
        if watched.task is None and self._group is not None:
            watched.task = self._group.create_task(self._rounds(key, watched))

    def poke(self, key: Key) -> None:
        """Something about the pods of the queue has changed: look at once."""
        if (watched := self._watched.get(key)) is not None:
            watched.poked.set()

    def leave(self, key: Key) -> None:
        """The queue is no concern any more."""
        watched = self._watched.pop(key, None)
        if watched is not None and watched.task is not None:
            watched.task.cancel()
        for place in [place for place in self._clients if place[0] == key]:
            self._close(place)

    def reports(self, key: Key) -> Mapping[int, Report]:
        """What the brokers said last, of those whose pods are still there."""
        watched = self._watched.get(key)
        return dict(watched.reports) if watched is not None else {}

    async def _rounds(self, key: Key, watched: _Watched) -> None:
        # After a start over many queues they are not all asked in the same second.
        await asyncio.sleep(random.uniform(0, min(ROUND_S_MIN, len(self._watched) * 0.005)))
        while True:
            watched.poked.clear()
            await self._round(key, watched)
            jitter = random.uniform(0.9, 1.1)
            try:
                async with asyncio.timeout(watched.pause_s * jitter):
                    await watched.poked.wait()
            except TimeoutError:
                continue

    async def _round(self, key: Key, watched: _Watched) -> None:
        before = dict(watched.reports)
        pods = {n: pod for n, pod in self._pods(key).items() if n < watched.target.partitions and pod.running}
        for gone in before.keys() - pods.keys():
            watched.reports.pop(gone, None)
            self._close((key, gone))
        # In no order: where there are too few places for those in trouble, they are not always the same ones.
        in_no_order = random.sample(sorted(pods.items()), len(pods))
        await asyncio.gather(*(self._see_to_one(key, watched, n, pod) for n, pod in in_no_order))
        if before.keys() - watched.reports.keys():
            self._changed(key)
        troubled = any(report.trouble for report in watched.reports.values())
        moved = any(_counts(before.get(n)) != _counts(report) for n, report in watched.reports.items())
        watched.failures = watched.failures + 1 if troubled else 0
        watched.pause_s = ROUND_S_MIN if moved else min(watched.pause_s * 1.5, self._pause_s_max())
        if troubled:
            watched.pause_s = min(RETRY_S_MIN * 2 ** min(watched.failures - 1, 8), RETRY_S_MAX)

    def _pause_s_max(self) -> float:
        return max(ROUND_S_MAX, PARTITION_S * sum(watched.target.partitions for watched in self._watched.values()))

    async def _see_to_one(self, key: Key, watched: _Watched, partition: int, pod: Pod) -> None:
        before = watched.reports.get(partition)
        troubled = before is not None and bool(before.trouble) and before.incarnation == pod.incarnation
        if troubled and self._places_of_the_troubled.locked():
            return  # the round does not wait for it; there is another one in some seconds
        async with self._places_of_the_troubled if troubled else self._places:
            asked = time.monotonic()
            report = await self._ask(key, watched, partition, pod)
        if report.trouble == UNREACHABLE and self._pulse.late_s(asked) > LATE_S:
            return  # it may have answered in time, and it was this program that had no time to listen
        watched.reports[partition] = report
        if report != before:
            self._changed(key)

    async def _ask(self, key: Key, watched: _Watched, partition: int, pod: Pod) -> Report:
        target, before = watched.target, watched.reports.get(partition)
        client = self._client(key, partition, pod, watched.password)
        known = before if before is not None and before.incarnation == pod.incarnation and not before.trouble else None
        keys = QueueKeys(key.name)
        self.calls_made += 1
        try:
            async with asyncio.timeout(ASK_S_MAX):
                library = known.library if known else await _library(client)
                if known is None or known.settings != target.digest:
                    place = {"partition": partition, "partitions": target.partitions}
                    await client.call(calls.configure(keys, settings=target.settings, **place))
                if (
                    time.monotonic() > watched.users_since + USERS_S
                    and watched.users_read.get(partition) != pod.incarnation
                ):
                    await client.call(_read_users())
                    watched.users_read[partition] = pod.incarnation
                totals = await client.call(calls.totals(keys))
        except TimeoutError:
            self._close((key, partition))
            return Report(pod.incarnation, UNREACHABLE, f"no answer within {ASK_S_MAX:g} s")
        except Exception as error:  # noqa: BLE001 -- whatever a broker says, the others are seen to
            self._close((key, partition))
            return Report(pod.incarnation, _trouble(error), str(error) or type(error).__name__)
        return Report(pod.incarnation, "", "", _quiet(totals), library, target.digest)

    def _client(self, key: Key, partition: int, pod: Pod, password: str) -> BrokerClient:
        place, identity = (key, partition), f"{pod.ip} {pod.incarnation} {password}"
        held = self._clients.get(place)
        if held is not None and held[0] == identity:
            self._clients.move_to_end(place)
            return held[1]
        self._close(place)
        address = BrokerAddress(pod.ip, BROKER_PORT)
        client = BrokerClient(address, timeout_s=ASK_S_MAX, login=logins.fixed(password, access.OPERATOR))
        self._clients[place] = (identity, client)
        while len(self._clients) > CONNECTIONS_MAX:
            self._close(next(iter(self._clients)))
        return client

    def _close(self, place: tuple[Key, int]) -> None:
        held = self._clients.pop(place, None)
        if held is not None and self._group is not None:
            self._group.create_task(held[1].close())


async def _library(client: BrokerClient) -> str:
    """Give the broker this program's library unless it has it, or a later one; which it has then."""
    await client.load_library()
    return (await client.call(calls.about())).library


def _read_users() -> Call[str]:
    """Read the file of users again: an operator of another version may have written another one."""
    return Call(("ACL", "LOAD"), str, repeatable=True)


def _trouble(error: Exception) -> str:
    return next((word for kind, word in _TROUBLES.items() if isinstance(error, kind)), "Faulty")


def _quiet(totals: Totals) -> Totals:
    """Without what changes when nothing happens."""
    return Totals(**{name: getattr(totals, name) for name in _TOLD})


_TOLD: Final = tuple(name for name in Totals.__dataclass_fields__ if name not in ("now_ms", "oldest", "charge"))


def _counts(report: Report | None) -> Totals | None:
    return report.totals if report is not None else None
