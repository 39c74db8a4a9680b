"""What an embedded namespace's folder holds: who runs there, which queues, and where their brokers listen.

DIR/lock                        held (flock) by the supervisor as long as it lives
DIR/namespace.json              this module's record, always written whole
DIR/_gateway/                   the gateway's: its root policy, its queues, what it asks for, its log
DIR/<queue>/partition-<nn>/     one broker's working folder: redis.conf, redis.log, appendonlydir/
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_cli.failures import FolderUnusable, NamespaceDown, NoSuchQueue, QueueDiffers

FORMAT = 1
LOOPBACK = "127.0.0.1"
IMMUTABLE = {
    "enable_partitioning": "enablePartitioning",
    "size_gb": "sizeGB",
    "partition_layout": "partitionLayout",
    "requires_session": "requiresSession",
    "requires_duplicate_detection": "requiresDuplicateDetection",
}


@dataclass(slots=True)
class BrokerRecord:
    """Where a partition listens. `port` is 0 before its first start, `pid` is 0 while it does not run."""

    port: int = 0
    pid: int = 0


@dataclass(slots=True)
class GatewayRecord:
    """Where the gateway listens. `port` is 0 before its first start, `pid` is 0 while it does not run."""

    port: int = 0
    pid: int = 0


@dataclass(slots=True)
class QueueRecord:
    """One queue of the folder, with its brokers in partition order; `up`: the supervisor runs it.

    `administered`: it was made over the administration API, so that it is up whatever file is. `deleting`: it goes,
    whatever happens, or is not there yet. Times are in ms since 1970; 0: an older version has made it.
    """

    manifest: Mapping[str, Any]
    brokers: list[BrokerRecord]
    up: bool = False
    administered: bool = False
    deleting: bool = False
    created_ms: int = 0
    updated_ms: int = 0

    def spec(self) -> QueueSpec:
        """The queue itself. Raises InvalidManifest if somebody has changed the record."""
        return QueueSpec.from_manifest(self.manifest, source="namespace.json")

    def addresses(self) -> list[BrokerAddress]:
        """Where each partition listens, in partition order."""
        return [BrokerAddress(LOOPBACK, broker.port) for broker in self.brokers]


@dataclass(slots=True)
class Namespace:
    """The folder's record."""

    folder: Path
    supervisor_pid: int = 0
    ready: bool = False
    gateway: GatewayRecord = field(default_factory=GatewayRecord)
    queues: dict[str, QueueRecord] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the record is kept."""
        return self.folder / "namespace.json"

    @property
    def gateway_folder(self) -> Path:
        """The gateway's working folder; no queue can have this name."""
        return self.folder / "_gateway"

    @property
    def policies_folder(self) -> Path:
        """Where it finds who may come in."""
        return self.gateway_folder / "policies"

    def broker_folder(self, queue: str, partition: int) -> Path:
        """One partition's working folder."""
        return self.folder / queue / f"partition-{partition:02}"

    def queue_up(self, name: str) -> QueueRecord:
        """A queue that runs. Raises NoSuchQueue."""
        record = self.queues.get(name)
        if record is None or not record.up:
            running = ", ".join(sorted(name for name, queue in self.queues.items() if queue.up)) or "none"
            twin = next(
                (f"; it is called {one}" for one in self.queues if one != name and one.lower() == name.lower()), ""
            )
            raise NoSuchQueue(f"no queue {name} is running in {self.folder}{twin}; running: {running}")
        return record

    def adopt(self, manifests: Iterable[Mapping[str, Any]]) -> list[str]:
        """Take the queues of a manifest in, and mark them as up; names of those that are new.

        No others are, but those that were made over the administration API.
        Raises QueueDiffers, and changes nothing, where one would change an immutable property of a queue that is here.
        """
        wanted = {str(manifest["metadata"]["name"]): QueueRecord(manifest, []) for manifest in manifests}
        for name, record in wanted.items():
            if name in self.queues:
                self.refuse_a_change(name, record.spec())
        new = [name for name in wanted if name not in self.queues]
        for name, record in wanted.items():
            self.queues[name] = self._renewed(name, record.manifest) if name in self.queues else made(record.manifest)
        for name, record in self.queues.items():
            record.up = name in wanted or record.administered
        return new

    def change(self, name: str, manifest: Mapping[str, Any]) -> None:
        """Give a queue another manifest. Raises QueueDiffers, without a word of the folder, and InvalidManifest."""
        if words := self.difference(name, QueueSpec.from_manifest(manifest, source=name)):
            raise QueueDiffers(f"queue {name} {words}")
        self.queues[name] = self._renewed(name, manifest)

    def _renewed(self, name: str, manifest: Mapping[str, Any]) -> QueueRecord:
        here = self.queues[name]
        same = here.manifest == manifest
        # It only rises, so that those who read of two changes know which is the later one.
        updated_ms = here.updated_ms if same else max(_now_ms(), here.updated_ms + 1)
        return replace(here, manifest=manifest, updated_ms=updated_ms)

    def refuse_a_change(self, name: str, wanted: QueueSpec) -> None:
        """Raises QueueDiffers where an immutable property of a queue that is here would become another."""
        if words := self.difference(name, wanted):
            raise QueueDiffers(
                f"queue {name} in {self.folder} {words}; take another folder, or remove this one if its messages may go"
            )

    def difference(self, name: str, wanted: QueueSpec) -> str:
        """What of an immutable property would become another; empty where nothing would."""
        here = self.queues[name].spec()
        for attribute, word in IMMUTABLE.items():
            old, new = getattr(here, attribute), getattr(wanted, attribute)
            if old != new:
                return f"was made with {word}: {json.dumps(old)} and cannot become {json.dumps(new)}"
        return ""

    def save(self) -> None:
        """Write the record whole: a reader sees the old one or the new one."""
        record = {
            "format": FORMAT,
            "supervisor_pid": self.supervisor_pid,
            "ready": self.ready,
            "gateway": {"port": self.gateway.port, "pid": self.gateway.pid},
            "queues": {
                name: {
                    "manifest": queue.manifest,
                    "up": queue.up,
                    "administered": queue.administered,
                    "deleting": queue.deleting,
                    "created_ms": queue.created_ms,
                    "updated_ms": queue.updated_ms,
                    "brokers": [{"port": broker.port, "pid": broker.pid} for broker in queue.brokers],
                }
                for name, queue in self.queues.items()
            },
        }
        write_whole(self.path, json.dumps(record, indent=1) + "\n")


def made(manifest: Mapping[str, Any], *, administered: bool = False) -> QueueRecord:
    """The record of a new queue. Raises InvalidManifest."""
    partitions = QueueSpec.from_manifest(manifest, source="a new queue").partitions
    brokers, now_ms = [BrokerRecord() for _ in range(partitions)], _now_ms()
    return QueueRecord(manifest, brokers, administered=administered, created_ms=now_ms, updated_ms=now_ms)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def load(folder: Path) -> Namespace:
    """The folder's record; an empty one where there is none. Raises FolderUnusable where it cannot be understood."""
    namespace = Namespace(folder)
    try:
        record = json.loads(namespace.path.read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise FolderUnusable(f"{namespace.path} has format {record['format']}; this pq knows format {FORMAT}")
        namespace.supervisor_pid = int(record["supervisor_pid"])
        namespace.ready = bool(record["ready"])
        gateway = record.get("gateway", {"port": 0, "pid": 0})  # which older versions did not have
        namespace.gateway = GatewayRecord(int(gateway["port"]), int(gateway["pid"]))
        for name, queue in record["queues"].items():
            brokers = [BrokerRecord(int(broker["port"]), int(broker["pid"])) for broker in queue["brokers"]]
            administered = bool(queue.get("administered", False))  # which older versions did not have, nor the times
            namespace.queues[name] = QueueRecord(
                queue["manifest"],
                brokers,
                bool(queue["up"]),
                administered=administered,
                deleting=bool(queue.get("deleting", False)),
                created_ms=int(queue.get("created_ms", 0)),
                updated_ms=int(queue.get("updated_ms", 0)),
            )
    except (FileNotFoundError, NotADirectoryError):
        return namespace
    except OSError as error:
        raise FolderUnusable(f"{namespace.path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FolderUnusable(f"{namespace.path} is damaged: {error}") from error
    return namespace


def load_running(folder: Path) -> Namespace:
    """The record of a namespace that is up. Raises NamespaceDown."""
    if not is_locked(folder):
        raise NamespaceDown(f"nothing is running in {folder}; start it with: pq up -f FILE --data-dir {folder}")
    namespace = load(folder)
    if not namespace.ready:
        raise NamespaceDown(f"the namespace in {folder} is still starting, or ending; try again in a moment")
    return namespace


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once, on the disk as well."""
    beside = path.with_name(path.name + ".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def lock(folder: Path) -> IO[str] | None:
    """Take the folder for this process and as long as it lives; None where another has it. Raises OSError."""
    file = (folder / "lock").open("a", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_ino != (folder / "lock").stat().st_ino:
            raise BlockingIOError  # whoever held it has taken the file away meanwhile
    except (BlockingIOError, FileNotFoundError):
        file.close()
        return None
    except BaseException:
        file.close()
        raise
    return file


def is_locked(folder: Path) -> bool:
    """Whether a supervisor lives in the folder."""
    with contextlib.suppress(OSError), (folder / "lock").open(encoding="utf-8") as file:
        try:
            # A shared lock: two that merely ask do not take each other for a supervisor.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
