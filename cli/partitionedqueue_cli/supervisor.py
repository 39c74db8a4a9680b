"""Keeps an embedded namespace running: one keeper a partition, one for the gateway, one supervisor a folder."""

import asyncio
import contextlib
import random
import shutil
import signal
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_cli import children, gateway, limits
from partitionedqueue_cli.broker_keeper import BrokerKeeper
from partitionedqueue_cli.failures import CommandFailed, FolderRefused
from partitionedqueue_cli.gateway import GatewayKeeper
from partitionedqueue_cli.namespace import LOOPBACK, Namespace, QueueRecord, made
from partitionedqueue_cli.queue_requests import QueueRequests

Say = Callable[[str], None]


class Supervisor:
    """All brokers of the queues that are up in one folder."""

    def __init__(self, namespace: Namespace, redis_path: str, say: Say, *, torn_end_may_go: bool) -> None:
        self.namespace = namespace
        self.redis_path = redis_path
        self.say = say
        self.torn_end_may_go = torn_end_may_go
        self.child_ends = children.Ends()
        self._gateway = GatewayKeeper(self) if gateway.is_installed() else None
        self._ports = {broker.port for queue in namespace.queues.values() for broker in queue.brokers if broker.port}
        self._ports.add(namespace.gateway.port)
        self._keepers = {name: self._keepers_of(queue) for name, queue in namespace.queues.items() if queue.up}
        self._places = asyncio.Semaphore(limits.STARTS_AT_ONCE_MAX)
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup

    def free_port(self) -> int:
        """A loopback port that is free now, and that no broker of this folder has had."""
        for _ in range(limits.PORTS_TRIED_MAX):
            # Not one that the kernel gives to outgoing connections: a broker that restarts must find its port free.
            port = random.randrange(limits.PORT_LOWEST, limits.PORT_HIGHEST)
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind((LOOPBACK, port))
                if port not in self._ports:
                    self._ports.add(port)
                    return port
        raise CommandFailed("no free port was found on the loopback interface")

    def brokers_have_changed(self) -> None:
        """One of them was started again, on another port perhaps."""
        self.namespace.save()
        if self._gateway is not None:
            self._gateway.tell()

    async def add(self, name: str, manifest: Mapping[str, Any]) -> None:
        """Make a queue that is there from now on: all of its brokers start and it is written down, or it never was.

        Raises BrokerDidNotStart, InvalidManifest, OSError, and CommandFailed, which says nothing of the folder.
        """
        folder = self.namespace.folder / name
        if folder.exists():
            raise CommandFailed(f"the folder of this namespace has something called {name} that is no queue's")
        queue = self.namespace.queues[name] = made(manifest, administered=True)
        keepers = self._keepers[name] = self._keepers_of(queue)
        queue.deleting = True  # until it is there: what this supervisor leaves should it be killed is taken away
        try:
            self.namespace.save()
            await _all(self._start(keeper) for keeper in keepers)
            queue.up, queue.deleting = True, False
            self.brokers_have_changed()
        except BaseException:
            del self.namespace.queues[name], self._keepers[name]
            await asyncio.gather(*(keeper.stop() for keeper in keepers))
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # it may be the record alone that tells of it
                self.brokers_have_changed()
            raise
        self._keep(name)
        self.say(f"queue {name} was made over the administration API, {len(keepers)} partitions")

    async def change(self, name: str, manifest: Mapping[str, Any]) -> None:
        """Give a queue other settings, each partition by itself. Raises QueueDiffers, InvalidManifest, OSError."""
        before = self.namespace.queues[name]
        self.namespace.change(name, manifest)
        try:
            self.brokers_have_changed()
        except OSError:
            self.namespace.queues[name] = before
            raise
        spec = self.namespace.queues[name].spec()
        await asyncio.gather(*(keeper.change(spec) for keeper in self._keepers[name]))
        self.say(f"queue {name} was changed over the administration API")

    async def remove(self, name: str) -> None:
        """Delete a queue with its messages. Raises OSError: then nothing has happened, or it goes on when asked again.

        Once the record says that it goes, it does: the next `pq up` takes away what is left.
        """
        queue = self.namespace.queues[name]
        if not queue.deleting:
            queue.up, queue.deleting = False, True
            try:
                self.namespace.save()
            except OSError:
                queue.up, queue.deleting = True, False
                raise
        if self._gateway is not None:
            self._gateway.tell()  # before the brokers end: who uses it is told
        if keeping := self._keeping.pop(name, None):
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        await asyncio.gather(*(keeper.stop() for keeper in self._keepers.get(name, ())))
        await asyncio.to_thread(shutil.rmtree, self.namespace.folder / name)
        self._keepers.pop(name, None)
        del self.namespace.queues[name]
        self.namespace.save()
        self.say(f"queue {name} was deleted over the administration API")

    async def run(self, ready: Callable[[], None]) -> None:
        """Start everything, call `ready`, and keep it running until SIGTERM or SIGINT. Raises BrokerDidNotStart."""
        loop, asked_to_end = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, asked_to_end.set)
        loop.add_signal_handler(signal.SIGCHLD, self.child_ends.tell)
        try:
            if await self._start_all(asked_to_end):
                self.namespace.ready = True
                self.namespace.save()
                ready()
                await self._keep_all(asked_to_end)
        finally:
            self.namespace.ready = False
            if self._gateway is not None:
                await self._gateway.stop()  # before the brokers: who is connected is told
            await asyncio.gather(*(keeper.stop() for keeper in self._every_keeper()))
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                loop.remove_signal_handler(number)

    def _keepers_of(self, queue: QueueRecord) -> list[BrokerKeeper]:
        spec = queue.spec()
        return [BrokerKeeper(self, spec, partition, broker) for partition, broker in enumerate(queue.brokers)]

    def _every_keeper(self) -> list[BrokerKeeper]:
        return [keeper for keepers in self._keepers.values() for keeper in keepers]

    async def _start(self, keeper: BrokerKeeper) -> None:
        async with self._places:
            await keeper.start(torn_end_may_go=self.torn_end_may_go)

    async def _start_all(self, asked_to_end: asyncio.Event) -> bool:
        async def all_of_them() -> None:
            await self._look_at_all()
            if self._gateway is not None:
                self._gateway.begin()
            await _all(self._start(keeper) for keeper in self._every_keeper())
            if self._gateway is not None:
                await self._gateway.serve()

        return await _unless(asked_to_end, all_of_them())

    async def _look_at_all(self) -> None:
        """Before the first broker starts: whatever folders are refused are said together. Raises FolderRefused."""

        async def refusal(keeper: BrokerKeeper) -> FolderRefused | None:
            try:
                async with self._places:
                    await keeper.look()
            except FolderRefused as refused:
                return refused
            return None

        async with asyncio.TaskGroup() as group:
            looks = [group.create_task(refusal(keeper)) for keeper in self._every_keeper()]
        refused = [str(one) for one in (look.result() for look in looks) if one is not None]
        if refused:
            as_well = [f"    Refused as well: {words.splitlines()[0]}" for words in refused[1:]]
            raise FolderRefused("\n".join([refused[0], *as_well]))

    async def _keep_all(self, asked_to_end: asyncio.Event) -> None:
        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as self._group:
                for name in self._keepers:
                    self._keep(name)
                if self._gateway is not None:
                    self._group.create_task(self._gateway.keep())
                    self._group.create_task(QueueRequests(self, self._gateway.requests).serve())
            await asyncio.Event().wait()  # every partition was given up: still up, and `pq status` says so

        await _unless(asked_to_end, all_of_them())

    def _keep(self, name: str) -> None:
        self._keeping[name] = self._group.create_task(_all(keeper.keep() for keeper in self._keepers[name]))


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do them side by side; the first that fails ends the others, and is what is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as errors:
        failed = [error for error in errors.exceptions if isinstance(error, PartitionedQueueError)]
        raise (failed[0] if failed else errors.exceptions[0]) from None


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do the work unless, and until, the event happens; whether it was done."""
    task, asked = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((task, asked), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
            return True
        return False
    finally:
        for one in (task, asked):
            one.cancel()
        await asyncio.gather(task, asked, return_exceptions=True)
