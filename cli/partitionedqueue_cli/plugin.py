"""`kubectl pq`: how the queues of a cluster stand, with the sick partition named. It needs the API server alone."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_cli import limits

EXIT_FAILED = 1


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(prog="kubectl pq", description="Partitioned queues of a cluster.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--kubeconfig", type=Path, metavar="FILE", help="as kubectl's (default: $KUBECONFIG)")
    common.add_argument("--context", metavar="NAME", help="as kubectl's: a cluster and a user of the kubeconfig")
    common.add_argument("--json", action="store_true", help="print JSON")
    common.add_argument(
        "--timeout",
        type=_seconds,
        default=limits.TIMEOUT_SECONDS,
        metavar="SECONDS",
        help=f"wait so long for an answer (default {limits.TIMEOUT_SECONDS:g})",
    )
    status = commands.add_parser(
        "status",
        parents=[common],
        help="how queues stand, from what the operator writes; exit code 0: all are Available",
    )
    status.add_argument("name", nargs="?", help="of one queue (default: all)")
    where = status.add_mutually_exclusive_group()
    _add_namespace(where)
    where.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    partitions = commands.add_parser(
        "partitions", parents=[common], help="each partition of a queue: its pod, and its counts as a gateway sees them"
    )
    partitions.add_argument("name", help="the queue")
    _add_namespace(partitions)
    partitions.add_argument(
        "--gateway",
        type=_service,
        metavar="NAMESPACE/SERVICE",
        help="the Service of the gateway to ask (default: the first that knows the queue)",
    )
    return top


def _add_namespace(command: argparse._ActionsContainer) -> None:
    command.add_argument("-n", "--namespace", metavar="NAME", help="default: that of the kubeconfig's context")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _service(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} is no Service: write NAMESPACE/SERVICE")
    return namespace, name


def main(words: Sequence[str] | None = None) -> int:
    """Run one command. 0: done, and all is well; 1: not so; 2: what was given cannot be right."""
    commands = parser()
    arguments = commands.parse_args(words)
    if arguments.command == "status" and arguments.name and arguments.all_namespaces:
        commands.error("a name is that of one queue: leave it out, or say its namespace instead of -A")
    try:
        from partitionedqueue_cli import plugin_api, plugin_partitions, plugin_status  # noqa: PLC0415 -- an extra's
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"kubernetes", "urllib3"}:
            raise
        return _complain("this needs kubernetes' client: install partitionedqueue with its extra [cluster]")
    try:
        api = plugin_api.connect(arguments.kubeconfig, arguments.context, timeout_s=arguments.timeout)
        namespace = arguments.namespace or api.namespace
        if arguments.command == "partitions":
            return plugin_partitions.partitions(api, namespace, arguments)
        return plugin_status.status(api, None if arguments.all_namespaces else namespace, arguments)
    except PartitionedQueueError as error:
        return _complain(error)
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not try to flush into it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        return _complain("interrupted")


def _complain(error: object) -> int:
    words = " ".join(line.strip() for line in str(error).splitlines())
    print(f"kubectl pq: {words}", file=sys.stderr)
    return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
