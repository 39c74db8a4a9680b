"""Looks after objects whose end no watch has told: a watch that had to begin anew knows only what is still there."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from partitionedqueue_operator.cluster.api import FORBIDDEN, Api, ApiFault
from partitionedqueue_operator.cluster.kinds import QUEUES, WATCHED, Kind
from partitionedqueue_operator.controller import Controller

AFTER_A_LIST_S: Final = 10.0
EVERY_S: Final = 900.0
LOOK_AGAIN_S: Final = 0.5
LOOKS: Final = 20
STUCK_MAX: Final = 12
"""So many times (of ten seconds) what is missing may not grow less; then an operator begins without it."""
NAMED_MAX: Final = 5
_log = logging.getLogger(__name__)


class Census:
    """Compares names with the API server after a list, and now and then."""

    def __init__(
        self, api: Api, controller: Controller, selector_of: Callable[[Kind], str], namespaces: tuple[str, ...]
    ) -> None:
        self._api = api
        self._controller = controller
        self._selector_of = selector_of
        self._namespaces = namespaces or ("",)
        self._asked: set[Kind] = set()
        self._wake = asyncio.Event()
        self.waits_for = f"{QUEUES.plural}.{QUEUES.group} to be installed"
        self.complete = asyncio.Event()  # all that was there at the beginning is known

    def ask_for(self, kind: Kind) -> None:
        """A watch has begun anew."""
        self._asked.add(kind)
        self._wake.set()

    async def await_all(self) -> None:
        """Wait until the watches have told of everything there is: nobody may act on half of the cluster.

        What they will not tell of is named in the log, and is waited for no longer than two minutes: one object must
        not keep all queues without an operator. Before anything is made or deleted the API server is asked anyway.
        """
        for kind in WATCHED:
            await self._await(kind)
        self.complete.set()

    async def _await(self, kind: Kind) -> None:
        fewest, stuck = float("inf"), 0
        self.waits_for = f"a list of {kind.plural}"
        while stuck < STUCK_MAX:
            try:
                missing = await self._missing(kind)
            except ApiFault as fault:
                self.waits_for = f"a list of {kind.plural}: {fault}"
                _log.warning("%s cannot be listed: %s", kind.plural, fault)
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            if not missing:
                return
            stuck = stuck + 1 if len(missing) >= fewest else 0
            fewest = min(fewest, len(missing))
            named = ", ".join(f"{namespace}/{name}" for namespace, name, _ in sorted(missing)[:NAMED_MAX])
            _log.warning("%d %s are not known yet: %s", len(missing), kind.plural, named)
        _log.error("no watch tells of %d %s; beginning without", fewest, kind.plural)

    async def _missing(self, kind: Kind) -> set[tuple[str, str, str]]:
        there = await self._there(kind)
        for _ in range(LOOKS):
            if not there - set(self._controller.cache.held(kind)):
                break
            await asyncio.sleep(LOOK_AGAIN_S)  # some of them may have gone meanwhile: then they are listed anew
        return there - set(self._controller.cache.held(kind))

    async def _there(self, kind: Kind) -> set[tuple[str, str, str]]:
        """All there is, except in namespaces where the operator has no rights, while it has them in another.

        There it is blind, and goes on with what it knew last.
        """
        there: set[tuple[str, str, str]] = set()
        refused: list[tuple[str, ApiFault]] = []
        for namespace in self._namespaces:
            try:
                there |= await self._api.names(kind, namespace, self._selector_of(kind))
            except ApiFault as fault:
                if fault.status != FORBIDDEN:
                    raise
                refused.append((namespace, fault))
        if len(refused) == len(self._namespaces):
            raise refused[0][1]
        for namespace, refusal in refused:
            _log.error("namespace %s is not looked after: %s", namespace, refusal)
            there |= {held for held in self._controller.cache.held(kind) if held[0] == namespace}
        return there

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._wake.wait()
            except TimeoutError:
                self._asked.update(WATCHED)
            await asyncio.sleep(AFTER_A_LIST_S)
            self._wake.clear()
            asked, self._asked = self._asked, set()
            for kind in asked:
                await self._count(kind)

    async def _count(self, kind: Kind) -> None:
        held = set(self._controller.cache.held(kind))
        try:
            there = await self._there(kind)
        except ApiFault as fault:
            _log.warning("%s cannot be listed: %s", kind.plural, fault)
            self.ask_for(kind)
            return
        for namespace, name, uid in held - there:
            # The list may be older than what the watch has told: each is asked for before it is given up.
            if await self._is_gone(kind, namespace, name, uid):
                _log.info("%s %s/%s has gone unnoticed", kind.name, namespace, name)
                self._controller.lost(kind, namespace, name, uid)

    async def _is_gone(self, kind: Kind, namespace: str, name: str, uid: str) -> bool:
        try:
            body = await self._api.get(kind, namespace, name)
        except ApiFault as fault:
            _log.warning("%s %s/%s cannot be read: %s", kind.name, namespace, name, fault)
            self.ask_for(kind)
            return False
        return body is None or body["metadata"]["uid"] != uid
