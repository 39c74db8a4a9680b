"""`pq up`, `pq down` and `pq brokers`: an embedded namespace from its start to its end."""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_cli import append_only_file, children, gateway, limits, manifests, namespace, redis_server
from partitionedqueue_cli.failures import CommandFailed, FolderUnusable, NamespaceUp, QueueDiffers
from partitionedqueue_cli.namespace import Namespace
from partitionedqueue_cli.supervisor import Supervisor

_NOT_YET = {
    "auto_delete_on_idle_ms": "autoDeleteOnIdle",
    "forward_to": "forwardTo",
    "forward_dead_lettered_messages_to": "forwardDeadLetteredMessagesTo",
    "user_metadata": "userMetadata",
    "deletion_policy": "deletionPolicy",
    "broker": "broker",
    "storage": "storage",
}


def up(arguments: argparse.Namespace) -> int:
    """Start the queues of a file and stay; everything is checked before anything is made."""
    folder: Path = arguments.data_dir
    wanted = manifests.read(arguments.file)
    redis_path, torn_end_may_go = redis_server.find(), append_only_file.torn_end_may_go()
    for one in wanted:
        _say_what_is_not_acted_on(QueueSpec.from_manifest(one, source=str(arguments.file)))
    with _made(folder) as held:
        if held is None:
            return _is_up_already(folder, [QueueSpec.from_manifest(one, source=str(arguments.file)) for one in wanted])
        record = namespace.load(folder)
        _finish_deleting(record)
        new = record.adopt(wanted)
        record.supervisor_pid, record.ready = os.getpid(), False
        record.save()
        _end_leftovers(record)
        if not gateway.is_installed():
            record.gateway.port = 0
            _warn("the gateway is not started: it needs more: install partitionedqueue with its extra [gateway]")
        return asyncio.run(_supervise(Supervisor(record, redis_path, _warn, torn_end_may_go=torn_end_may_go), new))


def _say_what_is_not_acted_on(spec: QueueSpec) -> None:
    """Say which fields are kept, but not acted on by this version."""
    plain = QueueSpec(name=spec.name)
    ignored = [words for name, words in _NOT_YET.items() if getattr(spec, name) != getattr(plain, name)]
    if ignored:
        _warn(f"queue {spec.name}: this version keeps, but does not act on: {', '.join(ignored)}")


async def _supervise(supervisor: Supervisor, new: list[str]) -> int:
    record = supervisor.namespace
    unrecorded = [name for name in new if (record.folder / name).exists()]
    queues = {name: queue for name, queue in record.queues.items() if queue.up}
    brokers = sum(len(queue.brokers) for queue in queues.values())
    _say(f"Starting {brokers} {'broker' if brokers == 1 else 'brokers'} in {record.folder} ...")
    began = time.monotonic()
    served = False

    def ready() -> None:
        nonlocal served
        served = True
        for name, queue in queues.items():
            ports = sorted(broker.port for broker in queue.brokers)
            partitions = f"{len(ports)} {'partition' if len(ports) == 1 else 'partitions'}"
            listening = f"ports {ports[0]} to {ports[-1]}" if len(ports) > 1 else f"port {ports[0]}"
            _say(
                f"Ready: queue {name}, {partitions} on {namespace.LOOPBACK} ({listening}), "
                f"after {time.monotonic() - began:.1f} s"
            )
        if record.gateway.pid:
            where = f"{namespace.LOOPBACK}:{record.gateway.port}"
            _say(f"Ready: gateway for Azure's SDKs on {where}; pq connection-string --data-dir {record.folder}")
        name, queue = next(iter(queues.items()))
        where = f"--data-dir {record.folder}"
        to, of = ("--session-id me ", "--next-session ") if queue.spec().requires_session else ("", "")
        _say(f"Try: pq send {name} {to}--body hello {where}; pq receive {name} {of}{where}; pq status {where}")
        _say(f"End it with Ctrl-C, or: pq down {where}")

    try:
        await supervisor.run(ready)
    finally:
        record.supervisor_pid = 0
        if not served:
            _forget(record, new, but_not_data_of=unrecorded)
        with suppress(OSError):
            record.save()
    if not served:
        _warn("was ended before it was ready")
        return 1
    _say("Stopped; the data stays in " + str(record.folder))
    return 0


def _is_up_already(folder: Path, wanted: list[QueueSpec]) -> int:
    here = namespace.load(folder)
    names = {spec.name for spec in wanted}
    running = {
        name: queue.spec()
        for name, queue in here.queues.items()
        if queue.up and (name in names or not queue.administered)
    }
    if running == {spec.name: spec for spec in wanted}:
        _say(f"Already up: queue {', '.join(running)} in {folder} (process {here.supervisor_pid})")
        return 0
    for spec in wanted:
        if spec.name in running and running[spec.name] != spec:
            raise QueueDiffers(
                f"{folder} is up with another manifest of queue {spec.name}; end it first: pq down --data-dir {folder}"
            )
    raise NamespaceUp(
        f"{folder} is up with queue {', '.join(running) or 'another'}; end it first (pq down), or take another "
        "folder (--data-dir)"
    )


@contextmanager
def _made(folder: Path) -> Iterator[IO[str] | None]:
    """The folder, made where needed and held for this process; None where another holds it.

    What was made here goes again where no queue has come of it.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    made: list[Path] = []
    held: IO[str] | None = None
    try:
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            made.append(one)
        for _ in range(10):  # somebody who merely asks whether it is locked holds it for a moment
            held = namespace.lock(folder)
            if held is not None:
                break
            time.sleep(0.02)
        yield held
    except OSError as error:
        raise FolderUnusable(f"folder {folder} cannot be used: {error.strerror or error}") from error
    finally:
        if held is not None:
            _tidy(folder)
            held.close()
        for one in reversed(made):
            with suppress(OSError):
                one.rmdir()


def _tidy(folder: Path) -> None:
    """A folder that holds no queue holds nothing of ours."""
    with suppress(OSError, FolderUnusable):
        record = namespace.load(folder)
        if not record.queues:
            shutil.rmtree(record.gateway_folder, ignore_errors=True)
            (folder / "namespace.json").unlink(missing_ok=True)
            (folder / "lock").unlink(missing_ok=True)


def _forget(record: Namespace, new: list[str], *, but_not_data_of: list[str]) -> None:
    """A queue whose first start failed was never there; but a folder that was is somebody's data, its record lost."""
    for name in new:
        del record.queues[name]
        if name not in but_not_data_of:
            shutil.rmtree(record.folder / name, ignore_errors=True)


def _finish_deleting(record: Namespace) -> None:
    """Whatever a supervisor had begun to delete, or to make, when it ended."""
    for name in [name for name, queue in record.queues.items() if queue.deleting]:
        _end_brokers(record, name)
        for _ in range(limits.DELETES_MAX):  # a broker that was being made may be ending still, and writes once more
            shutil.rmtree(record.folder / name, ignore_errors=True)
            if not (record.folder / name).exists():
                break
            time.sleep(limits.DELETE_AGAIN_SECONDS)
        del record.queues[name]


def _end_brokers(record: Namespace, name: str) -> None:
    for partition, broker in enumerate(record.queues[name].brokers):
        children.end_leftover(broker.pid, record.broker_folder(name, partition))
        broker.pid = 0


def _end_leftovers(record: Namespace) -> None:
    for name in record.queues:
        _end_brokers(record, name)
    children.end_leftover(record.gateway.pid, record.gateway_folder)
    record.gateway.pid = 0


def down(arguments: argparse.Namespace) -> int:
    """End a running namespace and wait for it."""
    folder: Path = arguments.data_dir
    if not namespace.is_locked(folder):
        print(f"Nothing is running in {folder}")
        return 0
    pid = namespace.load(folder).supervisor_pid
    if pid <= 0:
        raise CommandFailed(f"{folder} is held by a process that has not said which it is yet; try again in a moment")
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + limits.DOWN_SECONDS_MAX
    while namespace.is_locked(folder):
        if time.monotonic() > deadline:
            raise CommandFailed(f"process {pid} has not ended within {limits.DOWN_SECONDS_MAX:g} s")
        time.sleep(0.05)
    print(f"Stopped: {folder}; its data stays there")
    return 0


def brokers(arguments: argparse.Namespace) -> int:
    """Print where a queue's brokers listen, in partition order, as Spark's option takes it."""
    queue = namespace.load_running(arguments.data_dir).queue_up(arguments.queue)
    print(",".join(str(address) for address in queue.addresses()))
    return 0


def _say(words: str) -> None:
    with suppress(BrokenPipeError):
        print(words, flush=True)


def _warn(words: str) -> None:
    with suppress(BrokenPipeError):
        print(f"pq: {words}", file=sys.stderr, flush=True)
