"""Keeps an embedded namespace's brokers running and sweeps them: one keeper a partition, one supervisor a folder."""

import asyncio
import contextlib
import random
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from partitionedqueue.broker import calls
from partitionedqueue.broker.bell import Bell
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.broker.sweeper import Sweeper
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_cli import children, gateway, limits, redis_server
from partitionedqueue_cli.append_only_file import AppendOnlyFile
from partitionedqueue_cli.failures import AppendOnlyFileDamaged, BrokerDidNotStart, CommandFailed, FolderRefused
from partitionedqueue_cli.gateway import GatewayKeeper
from partitionedqueue_cli.namespace import LOOPBACK, BrokerRecord, Namespace
from partitionedqueue_cli.redis_server import RedisServer

Say = Callable[[str], None]


class Keeper:
    """Starts one partition's redis-server, and starts it again whenever it ends."""

    def __init__(self, supervisor: "Supervisor", spec: QueueSpec, partition: int, record: BrokerRecord) -> None:
        self._supervisor = supervisor
        self._spec = spec
        self._partition = partition
        self._record = record
        self._folder = supervisor.namespace.broker_folder(spec.name, partition)
        self._files = AppendOnlyFile(
            self.name, self._folder, spec.durability, supervisor.redis_path, supervisor.child_ends
        )
        self._server: RedisServer | None = None

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"partition {self._partition} of queue {self._spec.name}"

    async def look(self) -> None:
        """See whether it may be started over its folder. Raises FolderRefused."""
        await self._files.look()

    async def start(self, *, torn_end_may_go: bool) -> None:
        """Start and wait until it answers and has the library. Raises BrokerDidNotStart."""
        server = await self._started()
        if server.ended() and not server.was_killed():
            if torn_end_may_go and (done := await self._files.cut()):
                self._supervisor.say(f"{self.name}: {done}")
                server = await self._started()
            if server.ended():
                await self._files.examine()
        if server.ended():
            raise BrokerDidNotStart(f"{self.name}: redis-server {server.how_it_ended()}: {server.last_words()}")
        await self._set_up(self._record.port)

    async def _started(self) -> RedisServer:
        """A server that has read its files, or that has ended for another reason than its port."""
        for _ in range(limits.PORTS_TRIED_MAX):
            port = self._record.port or self._supervisor.free_port()
            try:
                server = redis_server.start(self._supervisor.redis_path, self._spec, self._folder, port)
            except OSError as error:
                raise BrokerDidNotStart(f"{self.name}: {self._folder} cannot be used: {error.strerror}") from error
            self._server = server
            self._record.port, self._record.pid = port, server.pid
            if await self._is_up(server) or not server.lost_its_port():
                return server
            self._record.port = 0
        raise BrokerDidNotStart(f"{self.name}: {limits.PORTS_TRIED_MAX} ports were lost to other programs")

    async def keep(self) -> None:
        """Start it again whenever it ends; returns only when it ends too often or its file is damaged."""
        restarts, loop = 0, asyncio.get_running_loop()
        try:
            while True:
                server, began = self._server, loop.time()
                if server is None:
                    return
                await self._sweep_until_it_ends(server)
                self._record.pid = 0
                if loop.time() - began > limits.STEADY_SECONDS:
                    restarts = 0
                how = f"redis-server (process {server.pid}) {server.how_it_ended()}"
                self._supervisor.say(f"{self.name}: {how}; starting it again")
                restarts = await self._bring_back(restarts, was_killed=server.was_killed())
        except BrokerDidNotStart as error:
            self._supervisor.say(str(error))
            self._supervisor.say(f"{self.name}: it is given up; the other partitions go on")

    async def _bring_back(self, restarts: int, *, was_killed: bool) -> int:
        """Start it again, ever more slowly; how often it has been by now. Raises BrokerDidNotStart to give it up."""
        said = ""
        while restarts < limits.RESTARTS_IN_A_ROW_MAX:
            restarts += 1
            if restarts > 1:
                delay = limits.RESTART_DELAY_SECONDS_FIRST * 2 ** (restarts - 2)
                await asyncio.sleep(min(delay, limits.RESTART_DELAY_SECONDS_MAX))
            try:
                await self._start_again(was_killed=was_killed)
            except AppendOnlyFileDamaged:
                raise
            except BrokerDidNotStart as error:
                # What refuses the folder may be mended meanwhile: a full disk above all. All its lines once.
                headline, *rest = str(error).splitlines()
                words = "\n".join([f"{headline}; trying again", *(rest if headline != said else ())])
                said = headline
                self._supervisor.say(words)
            else:
                return restarts
        raise BrokerDidNotStart(f"{self.name}: {restarts} restarts in a row did not help")

    async def stop(self) -> None:
        """End it in good order, by force if it takes too long."""
        server = self._server
        if server is None or server.ended():
            return
        server.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(limits.STOP_SECONDS_MAX):
                await self._supervisor.child_ends.of(server.process)
        except TimeoutError:
            server.process.kill()
            server.process.wait(limits.STOP_SECONDS_MAX)
        self._record.pid = 0

    async def _start_again(self, *, was_killed: bool) -> None:
        await self.look()
        # One that was killed may have torn what it wrote just then: with durability Always that had no reply yet.
        await self.start(torn_end_may_go=was_killed or self._supervisor.torn_end_may_go)
        self._supervisor.brokers_have_changed()
        self._supervisor.say(f"{self.name}: is back (process {self._record.pid}, {LOOPBACK}:{self._record.port})")

    async def _is_up(self, server: RedisServer) -> bool:
        try:
            async with asyncio.timeout(limits.START_SECONDS_MAX):
                while not server.is_ready():
                    if server.ended():
                        return False
                    await asyncio.sleep(limits.READY_POLL_SECONDS)
        except TimeoutError:
            await self.stop()
            seconds = limits.START_SECONDS_MAX
            raise BrokerDidNotStart(f"{self.name}: redis-server was not ready within {seconds:g} s") from None
        return True

    async def _set_up(self, port: int) -> None:
        """Give it the library, its place, and what its queue's manifest says."""
        client = BrokerClient(BrokerAddress(LOOPBACK, port), timeout_s=limits.TIMEOUT_SECONDS)
        try:
            await client.load_library()
            told = calls.configure(
                QueueKeys(self._spec.name),
                partition=self._partition,
                partitions=self._spec.partitions,
                settings=BrokerSettings.of(self._spec),
            )
            await client.call(told)
        except PartitionedQueueError as error:
            await self.stop()
            raise BrokerDidNotStart(f"{self.name}: it cannot be set up: {error}") from error
        finally:
            await client.close()

    async def _sweep_until_it_ends(self, server: RedisServer) -> None:
        """Do its due work when nobody calls, for as long as it runs."""
        address = BrokerAddress(LOOPBACK, self._record.port)
        client = BrokerClient(address, timeout_s=limits.TIMEOUT_SECONDS)
        bell = Bell(address, timeout_s=limits.TIMEOUT_SECONDS)
        try:
            async with asyncio.TaskGroup() as group:
                sweeping = group.create_task(Sweeper(client, bell, [QueueKeys(self._spec.name)]).run())
                await self._supervisor.child_ends.of(server.process)
                sweeping.cancel()
        finally:
            await bell.close()
            await client.close()


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
        self._keepers = [
            Keeper(self, queue.spec(), partition, broker)
            for queue in namespace.queues.values()
            if queue.up
            for partition, broker in enumerate(queue.brokers)
        ]

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
            await asyncio.gather(*(keeper.stop() for keeper in self._keepers))
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                loop.remove_signal_handler(number)

    async def _start_all(self, asked_to_end: asyncio.Event) -> bool:
        places = asyncio.Semaphore(limits.STARTS_AT_ONCE_MAX)

        async def start(keeper: Keeper) -> None:
            async with places:
                await keeper.start(torn_end_may_go=self.torn_end_may_go)

        async def all_of_them() -> None:
            await self._look_at_all(places)
            if self._gateway is not None:
                self._gateway.begin()
            async with asyncio.TaskGroup() as group:
                for keeper in self._keepers:
                    group.create_task(start(keeper))
            if self._gateway is not None:
                await self._gateway.serve()

        try:
            return await _unless(asked_to_end, all_of_them())
        except ExceptionGroup as errors:
            failed = [error for error in errors.exceptions if isinstance(error, PartitionedQueueError)]
            raise (failed[0] if failed else errors.exceptions[0]) from None

    async def _look_at_all(self, places: asyncio.Semaphore) -> None:
        """Before the first broker starts: whatever folders are refused are said together. Raises FolderRefused."""

        async def refusal(keeper: Keeper) -> FolderRefused | None:
            try:
                async with places:
                    await keeper.look()
            except FolderRefused as refused:
                return refused
            return None

        async with asyncio.TaskGroup() as group:
            looks = [group.create_task(refusal(keeper)) for keeper in self._keepers]
        refused = [str(one) for one in (look.result() for look in looks) if one is not None]
        if refused:
            as_well = [f"    Refused as well: {words.splitlines()[0]}" for words in refused[1:]]
            raise FolderRefused("\n".join([refused[0], *as_well]))

    async def _keep_all(self, asked_to_end: asyncio.Event) -> None:
        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as group:
                for keeper in self._keepers:
                    group.create_task(keeper.keep())
                if self._gateway is not None:
                    group.create_task(self._gateway.keep())
            await asyncio.Event().wait()  # every partition was given up: still up, and `pq status` says so

        await _unless(asked_to_end, all_of_them())


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
