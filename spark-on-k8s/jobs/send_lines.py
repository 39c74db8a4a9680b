"""Sends one message for each line of standard input, from a pod that may reach the brokers.

    python send_lines.py --queue flights [--namespace NAME] [--key FIELD] < flights.jsonl

With --key each line is a JSON object, and that field of it the partition key: what has one key stays in order. The
password of the brokers' user `spark-sender` comes by PQ_SENDER_PASSWORD. It ends when every message is on disk.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.logins import fixed
from partitionedqueue.broker.sender import QueueSender
from partitionedqueue.model.message import Message
from partitionedqueue_spark.discovery import located
from partitionedqueue_spark.sink_options import SinkOptions

IN_FLIGHT_MAX: Final = 2048  # each of many partitions has its next batch waiting; some MB


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--namespace", default=os.environ.get("NAMESPACE", "default"))
    parser.add_argument("--key", help="the field that is the partition key")
    return parser.parse_args(argv)


def messages(lines: TextIO, key: str | None) -> Iterator[Message]:
    """A message a line; empty lines are none."""
    for line in lines:
        body = line.rstrip("\n")
        if body:
            found = json.loads(body).get(key) if key else None
            yield Message(body=body.encode(), partition_key=str(found) if found else None)


async def send(options: SinkOptions, source: Iterator[Message]) -> int:
    """Send them all, many at a time; how many."""
    login = fixed(options.password, options.username)
    clients = [BrokerClient(at, login=login) for at in options.brokers]
    sender, sent = QueueSender(clients, QueueKeys(options.queue)), 0

    async def one_after_the_other() -> None:
        nonlocal sent
        for message in source:
            await sender.send(message)
            sent += 1

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT_MAX):
                group.create_task(one_after_the_other())
    finally:
        await sender.close()
        for client in clients:
            await client.close()
    return sent


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the end of standard input."""
    given = arguments(argv)
    options = located(SinkOptions.parse({"queue": given.queue, "namespace": given.namespace}))
    sent = asyncio.run(send(options, messages(sys.stdin, given.key)))
    sys.stdout.write(f"Sent {sent} messages to queue {given.queue}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
