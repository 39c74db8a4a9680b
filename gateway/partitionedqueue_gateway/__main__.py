"""`python -m partitionedqueue_gateway`: serve until SIGTERM, then leave in good order."""

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits, secret_files
from partitionedqueue_gateway.access.access import Access
from partitionedqueue_gateway.access.policies import PolicyFolder
from partitionedqueue_gateway.amqp.conversation import Conversation, Services
from partitionedqueue_gateway.catalog_sources.folder import FolderSource
from partitionedqueue_gateway.catalog_sources.folder_requests import FolderRequests
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog, CatalogSource
from partitionedqueue_gateway.entities.changes import NoChanges, QueueChanges
from partitionedqueue_gateway.entities.entities import Entities
from partitionedqueue_gateway.entities.totals import Standings
from partitionedqueue_gateway.front_door import sockets
from partitionedqueue_gateway.front_door.certificate import Certificate
from partitionedqueue_gateway.front_door.conversations import Conversations
from partitionedqueue_gateway.front_door.door import FrontDoor
from partitionedqueue_gateway.front_door.processes import Processes
from partitionedqueue_gateway.front_door.sockets import Entrance
from partitionedqueue_gateway.front_door.websocket import WebSockets
from partitionedqueue_gateway.rest.administration.administration import Administration
from partitionedqueue_gateway.rest.administration.queues import Queues
from partitionedqueue_gateway.rest.authorization import Authorization
from partitionedqueue_gateway.rest.data_plane.room import DataPlane
from partitionedqueue_gateway.rest.health import Health
from partitionedqueue_gateway.rest.server import Answered, Room, for_everybody, for_operations, serving
from partitionedqueue_gateway.settings import WORKER, InvalidSetting, Settings

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
_log = logging.getLogger("partitionedqueue_gateway")
Listening = Mapping[Entrance, socket.socket]


class Gateway:
    """One process that serves."""

    def __init__(self, settings: Settings) -> None:
        """Raises InvalidSetting and what its source, policies and certificate raise, before anything is served."""
        self._settings = settings
        self._source, self._changes = _source_of(settings)
        self._reading: dict[str, Callable[[], bool]] = {}
        self._access = self._access_of(settings)
        self._certificate = None
        if settings.tls is not None:
            self._certificate = Certificate(settings.tls)
            self._reading["the certificate"] = self._certificate.read

    def _access_of(self, settings: Settings) -> Access:
        if settings.anonymous:
            _log.warning("PQ_GATEWAY_ANONYMOUS is true: everybody who reaches a port may do everything")
            return Access(None, default_namespace=settings.default_namespace)
        if settings.policies is None:
            raise InvalidSetting(
                "PQ_GATEWAY_POLICIES names no folder with access policies, so nobody could come in; "
                "PQ_GATEWAY_ANONYMOUS=true lets everybody do everything"
            )
        folder = PolicyFolder(settings.policies, default_namespace=settings.default_namespace)
        folder.read()
        self._reading["access policies"] = folder.read
        if not len(folder.policies):
            _log.warning("%s has no access policy yet: nobody can come in", settings.policies)
        return Access(folder.policies, default_namespace=settings.default_namespace)

    async def serve(self, listening: Listening) -> None:
        """Until SIGTERM or SIGINT; a second one ends it at once."""
        settings, asked_to_end = self._settings, _asked_to_end(worker=self._settings.worker)
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(limits.NAME_LOOKUPS_AT_ONCE_MAX, thread_name_prefix="name"))
        catalog = Catalog()
        health = Health(catalog)
        async with (
            asyncio.TaskGroup() as tasks,
            Brokers(catalog, self._source) as brokers,
            Entities(catalog, brokers, default_namespace=settings.default_namespace) as entities,
        ):
            keeping = [tasks.create_task(self._source.feed(catalog))]
            keeping += [tasks.create_task(secret_files.keep_reading(*each)) for each in self._reading.items()]
            standings = Standings(catalog, brokers)
            services = Services(entities, self._access)
            conversations = Conversations(lambda wire: Conversation(wire, services))
            answered, upgrades = Answered(), WebSockets(conversations).routes()
            data_plane = DataPlane(entities, Authorization(self._access))
            administration = Administration(
                Queues(catalog, standings, self._changes),
                standings,
                Authorization(self._access),
                default_namespace=settings.default_namespace,
            )
            rooms: tuple[Room, ...] = (data_plane, administration)
            operations = for_operations(catalog, standings, health, answered, upgrades, rooms=rooms)
            everybody = for_everybody(answered, upgrades, rooms=rooms)
            try:
                async with serving(operations) as inner, serving(everybody) as outer:
                    door = FrontDoor(conversations, self._certificate)
                    for entrance, one in listening.items():
                        door.open(entrance, one, inner if entrance.operations else outer)
                        _log.info("%s: listening on port %d", entrance.name, sockets.port_of(one))
                    await asked_to_end.wait()
                    await self._leave(health, door, conversations, data_plane)
            finally:
                await services.close()
                await standings.close()
                for task in keeping:
                    task.cancel()
        _log.info("ended")

    async def _leave(
        self, health: Health, door: FrontDoor, conversations: Conversations, data_plane: DataPlane
    ) -> None:
        loop = asyncio.get_running_loop()
        for which in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(which)
        health.draining = True
        _log.info("ending: /readyz says no from now on; answering for another %g s", self._settings.drain_s)
        await asyncio.sleep(self._settings.drain_s)
        await door.close()
        data_plane.drain()
        await conversations.drain()


def _asked_to_end(*, worker: bool) -> asyncio.Event:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for which in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(which, asked.set)
    if worker:  # nothing ever comes in there: it ends when the process that started this one has gone

        def parent_has_gone() -> None:
            loop.remove_reader(sys.stdin)
            asked.set()

        loop.add_reader(sys.stdin, parent_has_gone)
    return asked


def _bound(host: str | None, entrance: Entrance, *, shared: bool) -> socket.socket:
    try:
        return sockets.bound(host, entrance.port, shared=shared)
    except OSError as error:
        raise OSError(error.errno, f"port {entrance.port} ({entrance.variable}): {error.strerror}") from error


def _source_of(settings: Settings) -> tuple[CatalogSource, QueueChanges]:
    """Where queues are written down, and how that is changed."""
    if settings.folder is not None:
        changes = FolderRequests(settings.requests, settings.default_namespace) if settings.requests else NoChanges()
        return FolderSource(settings.folder), changes
    # Kubernetes' client takes longer to import than all else together, and a folder does without.
    from partitionedqueue_gateway.catalog_sources.api_server import ApiServer  # noqa: PLC0415 -- see above
    from partitionedqueue_gateway.catalog_sources.cluster import ClusterSource  # noqa: PLC0415 -- see above
    from partitionedqueue_gateway.catalog_sources.cluster_changes import ClusterChanges  # noqa: PLC0415 -- see above

    api = ApiServer.found()
    return ClusterSource(api, settings.namespaces), ClusterChanges(api)


def _run(settings: Settings, listening: Listening) -> int:
    if settings.processes == 1:
        gateway = Gateway(settings)
        asyncio.run(gateway.serve(listening))
        return 0
    told = {entrance.variable: str(sockets.port_of(one)) for entrance, one in listening.items()}
    end_s = settings.drain_s + 2 * limits.END_S_MAX
    processes = Processes(settings.processes, {**told, WORKER: "true", "PQ_GATEWAY_PROCESSES": "1"}, end_s=end_s)
    return asyncio.run(processes.run())


def main() -> int:
    """0: it was asked to end. 1: it failed. 2: its environment cannot be right."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection to each of thousands of brokers
    try:
        settings = Settings.of(os.environ)
        with ExitStack() as stack:
            shared = settings.worker or settings.processes > 1
            listening = {
                entrance: stack.enter_context(_bound(settings.bind, entrance, shared=shared))
                for entrance in settings.entrances
            }
            return _run(settings, listening)
    except PartitionedQueueError as error:
        _log.error("%s", error)
        return EXIT_BAD_INPUT
    except OSError as error:
        _log.error("cannot serve: %s", error if error.filename else error.strerror or error)
        return EXIT_FAILED
    except ExceptionGroup as errors:
        known, defects = errors.split(OSError)
        if defects is not None or known is None:
            raise
        _log.error("cannot serve: %s", "; ".join(map(str, known.exceptions)))
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
