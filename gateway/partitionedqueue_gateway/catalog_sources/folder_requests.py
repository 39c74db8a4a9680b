"""Changes to the queues of a folder: asked of whoever runs their brokers, by a file each way.

FOLDER/<id>.request   what is wanted, written whole: {"do": "create", "name": …, "manifest": …}; or "change" and "spec";
                      or "delete"
FOLDER/<id>.answer    {"generation": …}; or {"refused": "exists", "missing", "bad" or "unavailable", "words": …}
"""

import asyncio
import json
import logging
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.changes import ChangeRefused, QueueExists, SourceUnavailable
from partitionedqueue_gateway.entities.failures import EntityNotFound
from partitionedqueue_gateway.entities.queue import Queue, QueueName

_log = logging.getLogger(__name__)
REQUEST: Final = ".request"
ANSWER: Final = ".answer"


class FolderRequests:
    """There is one Kubernetes namespace in a folder: the gateway's default."""

    def __init__(self, folder: Path, default_namespace: str) -> None:
        self._folder = folder
        self._namespace = default_namespace

    async def create(self, name: QueueName, manifest: Mapping[str, Any]) -> None:
        """As `QueueChanges` has it."""
        if name.namespace != self._namespace:
            raise ChangeRefused(
                f"'{name}' would be in the namespace {name.namespace}, and there is only {self._namespace} here; "
                f"a name of several parts stands behind it: {self._namespace}/{name}."
            )
        await self._ask({"do": "create", "name": name.name, "manifest": manifest})

    async def change(self, queue: Queue, spec: Mapping[str, Any]) -> int:
        """As `QueueChanges` has it."""
        return await self._ask({"do": "change", "name": queue.spec.name, "spec": spec})

    async def delete(self, queue: Queue, *, refused: bool = False) -> None:
        """As `QueueChanges` has it."""
        await self._ask({"do": "delete", "name": queue.spec.name})

    async def _ask(self, wanted: Mapping[str, Any]) -> int:
        number = uuid.uuid4().hex
        request, answer = self._folder / f"{number}{REQUEST}", self._folder / f"{number}{ANSWER}"
        try:
            await asyncio.to_thread(_write_whole, request, json.dumps(wanted))
            try:
                async with asyncio.timeout(limits.CHANGE_ANSWER_S_MAX):
                    while not answer.exists():
                        if not request.exists():  # whoever answers takes them all away when it ends
                            raise SourceUnavailable("what runs the brokers is ending; try again")
                        await asyncio.sleep(limits.CHANGE_LOOK_S)
                return _outcome(json.loads(await asyncio.to_thread(answer.read_text, encoding="utf-8")), wanted)
            finally:
                request.unlink(missing_ok=True)
                answer.unlink(missing_ok=True)
        except TimeoutError:
            raise SourceUnavailable(f"{wanted['name']}: what runs the brokers has not answered; try again") from None
        except (OSError, ValueError, KeyError) as error:
            _log.warning("what runs the brokers cannot be asked: %r", error)
            raise SourceUnavailable("what runs the brokers cannot be asked just now; try again") from error


def _outcome(answer: Mapping[str, Any], wanted: Mapping[str, Any]) -> int:
    match answer.get("refused"):
        case None:
            return int(answer["generation"])
        case "exists":
            raise QueueExists(answer["words"])
        case "missing":
            raise EntityNotFound(str(wanted["name"]))
        case "unavailable":
            raise SourceUnavailable(answer["words"])
        case _:
            raise ChangeRefused(answer["words"])


def _write_whole(path: Path, words: str) -> None:
    """Nobody sees a part of it."""
    beside = path.with_suffix(".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(words)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
