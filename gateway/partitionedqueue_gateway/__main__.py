"""`python -m partitionedqueue_gateway`: serve until SIGTERM, then leave in good order."""

import asyncio
import logging
import os
import resource
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.catalog_sources.api_server import ApiServer
from partitionedqueue_gateway.catalog_sources.cluster import ClusterSource
from partitionedqueue_gateway.catalog_sources.folder import FolderSource
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog, CatalogSource
from partitionedqueue_gateway.entities.totals import Standings
from partitionedqueue_gateway.rest.health import Health
from partitionedqueue_gateway.rest.server import application, serving
from partitionedqueue_gateway.settings import Settings

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
_log = logging.getLogger("partitionedqueue_gateway")


async def serve(settings: Settings, source: CatalogSource) -> None:
    """Until SIGTERM or SIGINT; a second one ends it at once."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(limits.NAME_LOOKUPS_AT_ONCE_MAX, thread_name_prefix="name"))
    asked_to_end = asyncio.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(which, asked_to_end.set)
    catalog = Catalog()
    health = Health(catalog)
    async with asyncio.TaskGroup() as tasks, Brokers(catalog, source) as brokers:
        feeding = tasks.create_task(source.feed(catalog))
        standings = Standings(catalog, brokers)
        try:
            async with serving(application(catalog, standings, health), settings.bind, settings.port) as port:
                _log.info("listening on port %d", port)
                await asked_to_end.wait()
                for which in (signal.SIGTERM, signal.SIGINT):
                    loop.remove_signal_handler(which)
                health.draining = True
                _log.info("ending: /readyz says no from now on; answering for another %g s", settings.drain_s)
                await asyncio.sleep(settings.drain_s)
        finally:
            await standings.close()
            feeding.cancel()
    _log.info("ended")


def _source_of(settings: Settings) -> CatalogSource:
    if settings.folder is not None:
        return FolderSource(settings.folder)
    return ClusterSource(ApiServer.found(), settings.namespaces)


def main() -> int:
    """0: it was asked to end. 1: it failed. 2: its environment cannot be right."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection to each of thousands of brokers
    try:
        settings = Settings.of(os.environ)
        source = _source_of(settings)
    except PartitionedQueueError as error:
        _log.error("%s", error)
        return EXIT_BAD_INPUT
    try:
        asyncio.run(serve(settings, source))
    except ExceptionGroup as errors:
        known, defects = errors.split(OSError)
        if defects is not None or known is None:
            raise
        _log.error("cannot serve: %s", "; ".join(map(str, known.exceptions)))
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
