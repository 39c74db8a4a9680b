"""Leader election: of several operators one acts. A Lease names it; whoever cannot renew it in time stops acting.

Clocks of different machines are never compared: a Lease is over when it has not changed for its duration, by the clock
of the one who looks.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from partitionedqueue_operator.cluster.api import CONFLICT, Api, ApiFault
from partitionedqueue_operator.cluster.kinds import LEASES

DURATION_S: Final = 15
RENEW_S: Final = 2.0
GIVE_UP_S: Final = 10.0  # the leader stops so long after its last renewal: well before another may begin
_log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """This operator leads no longer, and must not act."""


class Lease:
    """Takes part for `holder`, a name that no other process has."""

    def __init__(self, api: Api, *, namespace: str, name: str, holder: str) -> None:
        self._api = api
        self._namespace, self._name, self._holder = namespace, name, holder
        self._leads = False
        self._seen: tuple[str, float] = ("", 0.0)  # the version that was seen last, and when first

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait to lead, do the work while leading, and wait again: until cancelled, when the Lease is given back."""
        while True:
            asked = asyncio.get_running_loop().time()
            if not await self._tried():
                await asyncio.sleep(RENEW_S)
                continue
            _log.info("%s leads", self._holder)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._renew(asked))
                    group.create_task(_never_ending(work))
            except* LeaseLost as lost:
                self._leads = False
                _log.error("%s leads no longer: %s", self._holder, lost.exceptions[0])
            finally:
                if self._leads:
                    await self._give_back()

    async def _renew(self, renewed: float) -> None:
        """Its time runs from when it was asked for: an answer may have come late."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout_at(renewed + GIVE_UP_S):
                    await asyncio.sleep(RENEW_S)
                    asked = loop.time()
                    if not await self._tried():
                        raise LeaseLost("another operator has taken the Lease")
                    renewed = asked
            except TimeoutError:
                raise LeaseLost(f"the Lease could not be renewed for {GIVE_UP_S:g} s") from None

    async def _tried(self) -> bool:
        """Take or renew the Lease; whether it is ours now. While leading it is tried again where nobody answers."""
        try:
            body = await self._api.get(LEASES, self._namespace, self._name)
            spec = (body or {}).get("spec") or {}
            if body is None:
                await self._api.create(LEASES, self._written({}, {}))
            elif spec.get("holderIdentity") not in (self._holder, "", None) and not self._over(body):
                return False
            else:
                await self._api.replace(LEASES, self._written(body["metadata"], spec))
        except ApiFault as fault:
            if fault.status != CONFLICT:
                _log.warning("the Lease cannot be read or written: %s", fault)
                if self._leads:
                    await asyncio.sleep(1.0)
                    return await self._tried()
            return False
        self._leads = True
        return True

    def _over(self, body: dict[str, Any]) -> bool:
        loop = asyncio.get_running_loop()
        version = body["metadata"]["resourceVersion"]
        if self._seen[0] != version:
            self._seen = (version, loop.time())
        return loop.time() - self._seen[1] > (body["spec"].get("leaseDurationSeconds") or DURATION_S)

    def _written(self, metadata: dict[str, Any], spec: dict[str, Any], *, holder: str | None = None) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = spec.get("holderIdentity") == self._holder
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.name,
            "metadata": {**metadata, "name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._holder if holder is None else holder,
                "leaseDurationSeconds": DURATION_S,
                "renewTime": now,
                "acquireTime": spec.get("acquireTime", now) if mine else now,
                "leaseTransitions": (spec.get("leaseTransitions") or 0) + (0 if mine else 1),
            },
        }

    async def _give_back(self) -> None:
        """So that another operator begins at once."""
        try:
            async with asyncio.timeout(RENEW_S):
                await self._release()
        except (ApiFault, TimeoutError) as fault:
            _log.warning("the Lease is not given back: %s", fault)

    async def _release(self) -> None:
        body = await self._api.get(LEASES, self._namespace, self._name)
        if body is not None and (body.get("spec") or {}).get("holderIdentity") == self._holder:
            await self._api.replace(LEASES, self._written(body["metadata"], body["spec"], holder=""))


async def _never_ending(work: Callable[[], Awaitable[None]]) -> None:
    await work()
    raise LeaseLost("the work has ended by itself")
