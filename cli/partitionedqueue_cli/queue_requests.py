"""What the gateway asks for over its administration API: queues to be made, changed and deleted.

FOLDER/<id>.request   {"do": "create", "name": …, "manifest": …}; or "change" and "spec", or "delete"
FOLDER/<id>.answer    {"generation": …}; or {"refused": "exists", "missing", "bad" or "unavailable", "words": …}
"""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from partitionedqueue.model import limits as model_limits
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_cli import limits, namespace
from partitionedqueue_cli.failures import BrokerDidNotStart, CommandFailed, NoSuchQueue

if TYPE_CHECKING:
    from partitionedqueue_cli.supervisor import Supervisor

REQUEST: Final = ".request"
ANSWER: Final = ".answer"


class QueueExists(CommandFailed):
    """There is a queue of that name."""


class QueueRequests:
    """Carries them out: those for one queue one after the other, all others side by side."""

    def __init__(self, supervisor: "Supervisor", folder: Path) -> None:
        self._supervisor = supervisor
        self._folder = folder
        self._taken: set[str] = set()
        self._busy: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def serve(self) -> None:
        """Until cancelled. The folder goes then, by which whoever waits for an answer knows."""
        async with asyncio.TaskGroup() as group:
            try:
                await self._look(group)
            finally:
                shutil.rmtree(self._folder, ignore_errors=True)

    async def _look(self, group: asyncio.TaskGroup) -> None:
        while True:
            here = {path.stem for path in self._folder.glob(f"*{REQUEST}")}
            for number in here - self._taken:
                group.create_task(self._serve(number))
            self._taken = here  # those that their asker has withdrawn are forgotten
            await asyncio.sleep(limits.REQUESTS_POLL_SECONDS)

    async def _serve(self, number: str) -> None:
        """Answer one, whatever comes of it. Nobody reads the answer of one that was withdrawn."""
        request = self._folder / f"{number}{REQUEST}"
        try:
            answer = await self._answer(await asyncio.to_thread(_read, request))
        except (OSError, BrokerDidNotStart) as error:  # whose words are for whoever sits at this machine
            self._supervisor.say(f"what was asked for over the administration API cannot be done: {error}")
            words = "What runs the brokers cannot do this just now; it says why where it was started."
            answer = {"refused": "unavailable", "words": words}
        except (ValueError, KeyError, TypeError, PartitionedQueueError) as error:
            answer = {"refused": _KINDS.get(type(error), "bad"), "words": str(error)}
        with contextlib.suppress(OSError):
            if request.exists():
                namespace.write_whole(self._folder / f"{number}{ANSWER}", json.dumps(answer))

    async def _answer(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        name = str(wanted["name"])
        busy = self._busy.setdefault(name, asyncio.Lock())
        async with busy:
            if wanted["do"] == "create":
                await self._create(name, wanted["manifest"])
            else:
                await self._change(name, wanted)
        queue = self._supervisor.namespace.queues.get(name)
        return {"generation": queue.updated_ms if queue is not None else 0}

    async def _create(self, name: str, manifest: Mapping[str, Any]) -> None:
        queues = self._supervisor.namespace.queues
        spec = QueueSpec.from_manifest(manifest, source=name)
        if spec.name != name:
            raise CommandFailed(f"the manifest of {name} is that of {spec.name}")
        if name in queues and queues[name].deleting:
            await self._supervisor.remove(name)
        if name in queues and queues[name].up:
            raise QueueExists(f"Conflict. There is a queue {name} already.")
        if name in queues:
            raise CommandFailed(
                f"{name} has data here, and is not up: it is brought up with its manifest (pq up -f FILE)"
            )
        partitioned = sum(queue.spec().enable_partitioning for queue in queues.values())
        if spec.enable_partitioning and partitioned >= model_limits.PARTITIONED_ENTITIES_MAX:
            raise CommandFailed(
                f"a namespace has at most {model_limits.PARTITIONED_ENTITIES_MAX} partitioned entities, and there are "
                f"{partitioned}; delete one of them"
            )
        await self._supervisor.add(name, manifest)

    async def _change(self, name: str, wanted: Mapping[str, Any]) -> None:
        queue = self._supervisor.namespace.queues.get(name)
        if queue is None or not (queue.up or queue.deleting):
            raise NoSuchQueue(f"there is no queue {name}")
        if wanted["do"] == "delete":
            await self._supervisor.remove(name)
            return
        if queue.deleting:
            raise NoSuchQueue(f"there is no queue {name} any more")
        spec = {**queue.manifest.get("spec", {}), **wanted["spec"]}
        manifest = {**queue.manifest, "spec": {key: value for key, value in spec.items() if value is not None}}
        await self._supervisor.change(name, manifest)


def _read(request: Path) -> Any:
    with request.open("rb") as file:
        words = file.read(limits.REQUEST_BYTES_MAX + 1)
    if len(words) > limits.REQUEST_BYTES_MAX:
        raise CommandFailed(f"the request has more than {limits.REQUEST_BYTES_MAX} bytes")
    return json.loads(words)


_KINDS: Final[Mapping[type[BaseException], str]] = {QueueExists: "exists", NoSuchQueue: "missing"}
