"""The queues of a folder: every *.yaml in it, read again when one has changed. For a machine of one's own, and tests.

Where the brokers of a queue listen is in its annotation `messaging.partitionedqueue.io/brokers`, in partition order.
They ask for no password. When it was made and last changed, in ms since 1970, may be in two others.
"""

import asyncio
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from partitionedqueue.model.entity_name import shown_name
from partitionedqueue.model.errors import InvalidManifest, PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec, parse_manifests
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.queue import Queue

BROKERS_ANNOTATION: Final = "messaging.partitionedqueue.io/brokers"
CREATED_ANNOTATION: Final = "messaging.partitionedqueue.io/created-ms"
UPDATED_ANNOTATION: Final = "messaging.partitionedqueue.io/updated-ms"
_EVERYTHING: Final = ""
_log = logging.getLogger(__name__)


class FolderSource:
    """PartitionedQueue manifests in files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def feed(self, catalog: Catalog) -> None:
        """Look at the files every `limits.FOLDER_POLL_S`. While one of them makes no sense, all stays as it was."""
        loop = asyncio.get_running_loop()
        catalog.expect(_EVERYTHING, loop.time())
        read: object = None
        while True:
            catalog.try_at(_EVERYTHING, loop.time())
            try:
                stamps = await asyncio.to_thread(self._stamps)
                if stamps != read:
                    catalog.replace(_EVERYTHING, await asyncio.to_thread(self._queues), {})
                    read = stamps
                catalog.hear(_EVERYTHING, loop.time())
            except (OSError, PartitionedQueueError) as error:
                if catalog.scopes[_EVERYTHING].trouble != str(error):  # once, not at every look
                    _log.warning("the queues of %s cannot be read: %s", self._folder, error)
                catalog.miss(_EVERYTHING, str(error))
            await asyncio.sleep(limits.FOLDER_POLL_S)

    async def password(self, queue: Queue) -> str | None:
        """None."""
        return None

    def _stamps(self) -> list[tuple[str, int, int]]:
        """Changes where a file has."""
        stats = [(path.name, path.stat()) for path in self._files()]
        return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in stats]

    def _files(self) -> list[Path]:
        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is no folder")
        return sorted(self._folder.glob("*.yaml"))

    def _queues(self) -> list[Queue]:
        found: dict[object, Queue] = {}
        for path in self._files():
            if path.stat().st_size > limits.MANIFEST_BYTES_MAX:
                raise InvalidManifest(f"{path.name} has more than {limits.MANIFEST_BYTES_MAX} bytes")
            for queue in _queues_in(path):
                if queue.name in found:
                    raise InvalidManifest(f"{path.name}: there are two queues {queue.name}")
                found[queue.name] = queue
        return [*found.values()]


def _queues_in(path: Path) -> Iterator[Queue]:
    text = path.read_text(encoding="utf-8")
    specs = parse_manifests(text, source=path.name)
    documents = [document for document in yaml.safe_load_all(text) if document is not None]
    for spec, document in zip(specs, documents, strict=True):
        annotations = document["metadata"].get("annotations")
        said = annotations if isinstance(annotations, dict) else {}
        created, updated = str(said.get(CREATED_ANNOTATION, "")), _ms(said.get(UPDATED_ANNOTATION))
        yield Queue(
            spec=spec,
            uid=created,
            brokers=_brokers(spec, said, path.name),
            title=shown_name(document["metadata"]),
            created_ms=_ms(created),
            updated_ms=updated,
            generation=updated,
        )


def _ms(words: object) -> int:
    return int(str(words)) if re.fullmatch("[0-9]{1,15}", str(words)) else 0


def _brokers(spec: QueueSpec, annotations: dict[str, Any], source: str) -> tuple[BrokerAddress, ...]:
    words = annotations.get(BROKERS_ANNOTATION, "")
    addresses = tuple(BrokerAddress.parse(one) for one in str(words).split(",") if one.strip())
    if len(addresses) != spec.partitions:
        raise InvalidManifest(
            f"{source}: annotation {BROKERS_ANNOTATION} of queue {spec.name} has {len(addresses)} of "
            f"{spec.partitions} brokers; write host:port of each partition, with commas between"
        )
    return addresses
