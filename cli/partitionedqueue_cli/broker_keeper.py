"""Keeps one partition's redis-server running and sweeps it."""

import asyncio
import signal
from typing import TYPE_CHECKING

from partitionedqueue.broker import calls
from partitionedqueue.broker.bell import Bell
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.broker.sweeper import Sweeper
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_cli import limits, redis_server
from partitionedqueue_cli.append_only_file import AppendOnlyFile
from partitionedqueue_cli.failures import AppendOnlyFileDamaged, BrokerDidNotStart
from partitionedqueue_cli.namespace import LOOPBACK, BrokerRecord
from partitionedqueue_cli.redis_server import RedisServer

if TYPE_CHECKING:
    from partitionedqueue_cli.supervisor import Supervisor


class BrokerKeeper:
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

    async def change(self, spec: QueueSpec) -> None:
        """Tell it of the queue's new settings; where that does not work, it starts anew with them."""
        self._spec = spec
        if self._server is None or self._server.ended():
            return
        client = BrokerClient(BrokerAddress(LOOPBACK, self._record.port), timeout_s=limits.TIMEOUT_SECONDS)
        try:
            await client.call(self._told())
        except PartitionedQueueError as error:
            self._supervisor.say(f"{self.name}: it does not take its new settings, and starts anew: {error}")
            await self.stop()
        finally:
            await client.close()

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
            await client.call(self._told())
        except PartitionedQueueError as error:
            await self.stop()
            raise BrokerDidNotStart(f"{self.name}: it cannot be set up: {error}") from error
        finally:
            await client.close()

    def _told(self) -> Call[int]:
        return calls.configure(
            QueueKeys(self._spec.name),
            partition=self._partition,
            partitions=self._spec.partitions,
            settings=BrokerSettings.of(self._spec),
        )

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
