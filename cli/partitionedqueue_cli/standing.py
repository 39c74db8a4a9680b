"""`pq status`: how every partition of every queue stands."""

import argparse
import asyncio
import json
from dataclasses import asdict, dataclass
from typing import Any

from partitionedqueue.broker import calls
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue_cli import gateway, namespace
from partitionedqueue_cli.tables import print_table

COUNTS = ("messages", "ready", "locked", "claimed", "deferred", "scheduled", "dead_letters", "bytes")
_HEADINGS = tuple(name.upper().replace("_", "-") for name in COUNTS)


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """What the partitions of one queue said, in order; a sick one's words instead of its counts."""

    name: str
    addresses: list[BrokerAddress]
    partitions: list[Totals | str]

    @property
    def sick(self) -> list[int]:
        """The partitions that do not answer."""
        return [number for number, one in enumerate(self.partitions) if isinstance(one, str)]

    @property
    def availability(self) -> str:
        """Available: all answer; Limited: some; Unavailable: none."""
        if not self.sick:
            return "Available"
        return "Unavailable" if len(self.sick) == len(self.partitions) else "Limited"

    def count(self, name: str) -> int:
        """One count, added up over the partitions that answer."""
        return sum(getattr(one, name) for one in self.partitions if isinstance(one, Totals))

    def as_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "queue": self.name,
            "availability": self.availability,
            "partitionsReady": len(self.partitions) - len(self.sick),
            "partitionsTotal": len(self.partitions),
            **{name: self.count(name) for name in COUNTS},
            "partitions": [
                {
                    "partition": number,
                    "address": str(address),
                    **({"error": one} if isinstance(one, str) else asdict(one)),
                }
                for number, (address, one) in enumerate(zip(self.addresses, self.partitions, strict=True))
            ],
        }


def status(arguments: argparse.Namespace) -> int:
    """Ask every partition and print a table; 0 where every queue is Available, 1 otherwise."""
    record = namespace.load_running(arguments.data_dir)
    gateway_serves = asyncio.run(_gateway_serves(record.gateway.port, arguments.timeout))
    up = {name: queue.addresses() for name, queue in record.queues.items() if queue.up}
    standings = asyncio.run(_ask_all(up, arguments.timeout))
    if arguments.json:
        print(json.dumps([one.as_json() for one in standings], indent=1))
    else:
        _print(standings, each_partition=arguments.partitions)
        if asleep := sorted(name for name, queue in record.queues.items() if not queue.up):
            print(
                f"Not up, their data stays in {record.folder}: {', '.join(asleep)} (pq up with their file starts them)"
            )
        if record.gateway.port:
            where = f"{namespace.LOOPBACK}:{record.gateway.port}"
            print(f"The gateway on {where} {'serves' if gateway_serves else 'does not answer'}")
    return 0 if gateway_serves and all(one.availability == "Available" for one in standings) else 1


async def _gateway_serves(port: int, timeout_s: float) -> bool:
    """Whether it answers, where there is one."""
    return port == 0 or await gateway.says_ready(port, within_s=timeout_s)


async def _ask_all(queues: dict[str, list[BrokerAddress]], timeout_s: float) -> list[QueueStanding]:
    return [
        QueueStanding(
            name, addresses, await asyncio.gather(*(_ask(address, QueueKeys(name), timeout_s) for address in addresses))
        )
        for name, addresses in queues.items()
    ]


async def _ask(address: BrokerAddress, keys: QueueKeys, timeout_s: float) -> Totals | str:
    client = BrokerClient(address, timeout_s=timeout_s)
    try:
        return await client.call(calls.totals(keys))
    except PartitionedQueueError as error:
        return str(error)
    finally:
        await client.close()


def _print(standings: list[QueueStanding], *, each_partition: bool) -> None:
    rows = [("QUEUE", "PARTITIONS", "AVAILABILITY", *_HEADINGS)]
    for one in standings:
        ready = f"{len(one.partitions) - len(one.sick)}/{len(one.partitions)}"
        rows.append((one.name, ready, one.availability, *(str(one.count(name)) for name in COUNTS)))
    print_table(rows)
    for one in standings:
        for number in one.sick:
            print(f"{one.name}: partition {number} does not answer: {one.partitions[number]}")
        if each_partition:
            _print_partitions(one)


def _print_partitions(standing: QueueStanding) -> None:
    print()
    rows = [(standing.name, "ADDRESS", *_HEADINGS)]
    for number, (address, one) in enumerate(zip(standing.addresses, standing.partitions, strict=True)):
        counts = ("-",) * len(COUNTS) if isinstance(one, str) else tuple(str(getattr(one, name)) for name in COUNTS)
        rows.append((str(number), str(address), *counts))
    print_table(rows)
