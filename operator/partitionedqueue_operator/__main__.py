"""`python -m partitionedqueue_operator`: runs until SIGTERM, or until it must not act any more."""

import asyncio
import logging
import signal
import sys
import uuid
from functools import partial

from partitionedqueue_operator import handlers
from partitionedqueue_operator.census import Census
from partitionedqueue_operator.cluster.access import Access
from partitionedqueue_operator.cluster.api import Api, ApiFault
from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.cluster import Cluster
from partitionedqueue_operator.cluster.kinds import QUEUES, WATCHED
from partitionedqueue_operator.cluster.lease import Lease
from partitionedqueue_operator.cluster.operator_key import operator_key
from partitionedqueue_operator.controller import Controller
from partitionedqueue_operator.freshness import Freshness
from partitionedqueue_operator.health import Health
from partitionedqueue_operator.loops import Pulse, another_loop, done_in
from partitionedqueue_operator.observed import OPERATOR
from partitionedqueue_operator.settings import InvalidSetting, Settings

_log = logging.getLogger("partitionedqueue_operator")
_LOOK_AGAIN_S = 2.0


async def run(settings: Settings) -> None:
    """Watch, and act while leading, until SIGTERM. Raises what ends an operator otherwise."""
    loop = asyncio.get_running_loop()
    asked_to_end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_end.set)
    access = await Access.find()
    with another_loop("in-time") as in_time:
        async with Api(access) as api:
            await _run(settings, api, access, in_time, asked_to_end)


async def _run(
    settings: Settings,
    api: Api,
    access: Access,
    in_time: asyncio.AbstractEventLoop,
    asked_to_end: asyncio.Event,
) -> None:
    loop = asyncio.get_running_loop()
    pulse = Pulse()
    controller = Controller(settings, (cache := Cache()), Cluster(api, cache), pulse)
    census = Census(api, controller, handlers.selector_of, settings.watch_namespaces)
    freshness = Freshness(
        WATCHED, lambda kind: loop.call_soon_threadsafe(partial(census.ask_for, kind)), settings.watch_namespaces
    )
    watches = handlers.Watches(settings, access, controller, freshness)
    health = Health(api, controller, freshness, census, pulse)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(work)
            for work in (
                pulse.run(),
                done_in(in_time, partial(health.serve, settings.port)),
                _watch(api, watches),
                census.run(),
                _lead(settings, api, access, in_time, controller, census),
            )
        ]
        await asked_to_end.wait()
        _log.info("asked to end")
        for task in reversed(tasks):  # first it leads no longer, so that another one can
            task.cancel()
            await asyncio.wait({task})


async def _watch(api: Api, watches: handlers.Watches) -> None:
    await _served(api)
    await watches.run()


async def _served(api: Api) -> None:
    """Wait for the custom resource: it may be installed at the same time."""
    while True:
        try:
            if await api.served(QUEUES):
                return
            _log.info("waiting for %s.%s to be installed", QUEUES.plural, QUEUES.group)
        except ApiFault as fault:
            _log.info("waiting for the API server: %s", fault)
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _lead(  # noqa: PLR0917 -- what the two loops have between them
    settings: Settings,
    api: Api,
    access: Access,
    in_time: asyncio.AbstractEventLoop,
    controller: Controller,
    census: Census,
) -> None:
    """The Lease is seen to in the loop that is always in time; what it is for is done in this one."""
    await _served(api)
    await census.await_all()
    loop = asyncio.get_running_loop()

    async def act() -> None:
        await controller.lead(await _key(settings, api))

    async def take_part() -> None:
        holder = f"{settings.pod}_{uuid.uuid4().hex[:8]}"
        async with Api(access, api.requests) as own:
            lease = Lease(own, namespace=settings.namespace, name=OPERATOR, holder=holder)
            await lease.lead(partial(done_in, loop, act))

    await done_in(in_time, take_part)


async def _key(settings: Settings, api: Api) -> bytes:
    while True:
        try:
            return await operator_key(api, settings.namespace)
        except ApiFault as fault:
            if not fault.passing:
                raise
            _log.warning("waiting for the API server: %s", fault)
            await asyncio.sleep(_LOOK_AGAIN_S)


def main() -> int:
    """The program's exit code: 0 after SIGTERM, 1 where it cannot go on, 2 for its settings."""
    try:
        settings = Settings.from_environment()
    except InvalidSetting as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr
    )
    try:
        asyncio.run(run(settings))
    except BaseExceptionGroup as ended:
        if (lost := ended.subgroup(handlers.WatchesEnded)) is None:
            raise
        _log.error("stopping: %s", _first(lost))
        return 1
    return 0


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


if __name__ == "__main__":
    sys.exit(main())
