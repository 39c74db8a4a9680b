"""The `pq` command: its arguments, and one clear sentence for everything that can go wrong."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from partitionedqueue.model import durations
from partitionedqueue.model.errors import InvalidManifest, InvalidMessage, PartitionedQueueError
from partitionedqueue_cli import connecting, limits, moving, peeking, receiving, running, sending, standing
from partitionedqueue_cli.failures import FolderRefused

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


def default_folder() -> Path:
    """$PQ_DATA_DIR, else the place that the XDG base directory specification names."""
    if chosen := os.environ.get("PQ_DATA_DIR"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "partitionedqueue"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _duration_ms(text: str) -> int:
    length = durations.milliseconds(text)
    if length is None and text.isascii() and text.isdigit():
        length = int(text) * 1000
    if not length:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write seconds, or as in a manifest, such as PT10M")
    return length


def _moment_ms(text: str) -> int:
    """A time, or how long it is until then."""
    try:
        return int(time.time() * 1000) + _duration_ms(text)
    except argparse.ArgumentTypeError:
        pass
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)  # without an offset it is local time
    except (ValueError, OverflowError):
        words = f"{text!r} is no time and no duration: write 2030-01-31T12:00:00Z, or PT10M"
        raise argparse.ArgumentTypeError(words) from None


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(
        prog="pq", description="Partitioned queues on this machine, from the same YAML as in a cluster."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--data-dir",
        type=Path,
        default=None,
        metavar="DIR",
        help="the namespace's folder (default: $PQ_DATA_DIR, else ~/.local/share/partitionedqueue)",
    )
    up = commands.add_parser(
        "up",
        parents=[common],
        help="start the queues of a manifest and stay; Ctrl-C ends them",
        epilog="With PQ_TORN_END=cut in the environment, a write that the last crash tore is kept beside and cut off.",
    )
    up.add_argument("-f", "--file", type=Path, required=True, help="a YAML file of PartitionedQueue manifests")
    up.set_defaults(run=running.up)
    down = commands.add_parser("down", parents=[common], help="end what is running; the data stays")
    down.set_defaults(run=running.down)
    status = commands.add_parser(
        "status", parents=[common], help="how every queue stands; exit code 0: all are Available"
    )
    status.add_argument("--partitions", action="store_true", help="every partition by itself as well")
    _add_json(status)
    _add_timeout(status, limits.STATUS_TIMEOUT_SECONDS)
    status.set_defaults(run=standing.status)
    brokers = commands.add_parser(
        "brokers", parents=[common], help="where a queue's brokers listen, for Spark's option"
    )
    brokers.add_argument("queue")
    brokers.set_defaults(run=running.brokers)
    connection = commands.add_parser(
        "connection-string", parents=[common], help="what an SDK of Azure Service Bus is given to come in here"
    )
    connection.add_argument("queue", nargs="?", help="name this queue in it, as its EntityPath")
    connection.set_defaults(run=connecting.connection_string)
    _add_send(commands.add_parser("send", parents=[common], help="send one message, or one for each line"))
    _add_receive(commands.add_parser("receive", parents=[common], help="take messages, print and complete them"))
    _add_peek(commands.add_parser("peek", parents=[common], help="show messages without taking them"))
    _add_purge(commands.add_parser("purge", parents=[common], help="remove messages for good"))
    _add_resubmit(commands.add_parser("resubmit", parents=[common], help="move dead letters back to their queue"))
    return top


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_timeout(command: argparse.ArgumentParser, default: float = limits.TIMEOUT_SECONDS) -> None:
    command.add_argument(
        "--timeout",
        type=_seconds,
        default=default,
        metavar="SECONDS",
        help=f"wait so long for a broker (default {default:g})",
    )


def _add_send(command: argparse.ArgumentParser) -> None:
    command.add_argument("queue")
    source = command.add_mutually_exclusive_group()
    source.add_argument("--body", metavar="TEXT", help="one message with this body")
    source.add_argument("--file", type=Path, help="one message for each line of this file (default: of standard input)")
    command.add_argument(
        "--json-lines", action="store_true", help="lines are JSON objects: body, partition_key, properties, ..."
    )
    command.add_argument("--batch", action="store_true", help="all in one send, all or none; they must have one key")
    command.add_argument(
        "--time-to-live",
        type=_duration_ms,
        metavar="DURATION",
        help="gone, or a dead letter, after so long: seconds or PT10M",
    )
    command.add_argument(
        "--schedule", type=_moment_ms, metavar="TIME", help="not to be seen before this time, or for this DURATION"
    )
    for name in sending.OPTIONS:
        command.add_argument("--" + name.replace("_", "-"))
    command.add_argument(
        "--property", action="append", default=[], metavar="NAME=VALUE", help="an application property"
    )
    _add_timeout(command)
    command.set_defaults(run=sending.send)


def _add_receive(command: argparse.ArgumentParser) -> None:
    _add_entity(command)
    command.add_argument("-n", "--number", "--count", type=_count, default=1, help="messages at most (default 1)")
    whose = command.add_mutually_exclusive_group()
    whose.add_argument("--session", metavar="ID", help="of this session")
    whose.add_argument("--next-session", action="store_true", help="of a session that has some and that nobody holds")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--delete", action="store_true", help="receive-and-delete: without a lock, gone once handed out")
    how.add_argument("--no-complete", action="store_true", help="lock, print, and give back; the delivery counts")
    _add_json(command)
    _add_timeout(command)
    command.set_defaults(run=receiving.receive)


def _add_peek(command: argparse.ArgumentParser) -> None:
    _add_entity(command)
    command.add_argument("-n", "--number", "--count", type=_count, default=10, help="messages at most (default 10)")
    command.add_argument("--session", metavar="ID", help="of this session")
    command.add_argument(
        "--from", dest="start", type=_count, metavar="SEQ", help="from this sequence number on, partition by partition"
    )
    _add_json(command)
    _add_timeout(command)
    command.set_defaults(run=peeking.peek)


def _add_entity(command: argparse.ArgumentParser) -> None:
    command.add_argument("queue", help="a queue, or a sub-queue such as 'letters/$DeadLetterQueue'")
    command.add_argument("--dead-letters", action="store_true", help="the queue's dead-letter queue instead")


def _add_purge(command: argparse.ArgumentParser) -> None:
    _add_entity(command)
    command.add_argument(
        "--state", action="append", choices=moving.STATES, help="only messages in this state; may be repeated"
    )
    _add_timeout(command)
    command.set_defaults(run=moving.purge)


def _add_resubmit(command: argparse.ArgumentParser) -> None:
    command.add_argument("queue")
    command.add_argument(
        "sequence_number", type=_count, nargs="*", help="of dead letters, as peek shows them (default: all of them)"
    )
    _add_timeout(command)
    command.set_defaults(run=moving.resubmit)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 1: it could not be done; 2: what was given cannot be right."""
    arguments = parser().parse_args(words)
    arguments.data_dir = (arguments.data_dir or default_folder()).expanduser().absolute()
    try:
        return int(arguments.run(arguments))
    except (InvalidManifest, InvalidMessage) as error:
        return _complain(error, EXIT_BAD_INPUT)
    except FolderRefused as error:
        print(f"pq: {error}", file=sys.stderr)  # in its own lines: what is wrong, and what to do
        return EXIT_FAILED
    except PartitionedQueueError as error:
        return _complain(error, EXIT_FAILED)
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not try to flush into it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        return _complain("interrupted", EXIT_FAILED)


def _complain(error: object, code: int) -> int:
    words = " ".join(line.strip() for line in str(error).splitlines())  # YAML's own words come in several lines
    print(f"pq: {words}", file=sys.stderr)
    return code
