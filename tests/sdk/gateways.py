"""Brokers and gateways of a test's own, which it may kill: a queue as pods have it, spoken to by azure-servicebus."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from azure.servicebus import ServiceBusClient

from harness.gateway_process import Gateway, end, manifest, start, write
from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.queue_spec import QueueSpec
from sdk.python.place import QuickClient

PARTITIONS: Final = 16


@dataclass
class Bench:
    """Queues over the same brokers, and the gateways that serve them."""

    brokers: Sequence[Broker]
    folder: Path
    gateways: list[Gateway]

    def make(self, name: str, **spec: Any) -> str:
        """A queue, known to every partition and to gateways that start later."""
        described = manifest(name, self.brokers, **{"sizeGB": len(self.brokers) // PARTITIONS, **spec})
        settings = BrokerSettings.of(QueueSpec.from_manifest(described, source=name))
        for partition, server in enumerate(self.brokers):
            with BlockingBroker(server.address) as broker:
                count = len(self.brokers)
                broker.call(calls.configure(QueueKeys(name), partition=partition, partitions=count, settings=settings))
        write(self.folder / "queues" / f"{name}.yaml", described)
        return name

    def start_gateway(self) -> Gateway:
        folder = self.folder / f"gateway-{len(self.gateways)}"
        folder.mkdir()
        gateway = start(folder, PQ_GATEWAY_FOLDER=str(self.folder / "queues"))
        self.gateways.append(gateway)
        gateway.wait_ready()
        return gateway

    def kill_gateway(self, which: int) -> None:
        """Kill -9."""
        process = self.gateways[which].process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def connection(self, which: int = 0) -> str:
        """To one of the gateways, where anybody may come in."""
        return (
            f"Endpoint=sb://127.0.0.1:{self.gateways[which].port};SharedAccessKeyName=anybody;"
            "SharedAccessKey=bm9ib2R5IGxvb2tzIGF0IGl0;UseDevelopmentEmulator=true"
        )

    def client(self, which: int = 0, **options: Any) -> ServiceBusClient:
        return QuickClient.from_connection_string(self.connection(which), **options)

    def end(self) -> None:
        for gateway in self.gateways:
            end(gateway)

    def make_whole(self) -> None:
        """All brokers run again."""
        for broker in self.brokers:
            if broker.process is None:
                broker.start()
            broker.resume()


@contextmanager
def bench(brokers: Sequence[Broker], folder: Path) -> Iterator[Bench]:
    """For a `with` block; its gateways end with it."""
    with ExitStack() as stack:
        found = Bench(brokers, folder, [])
        stack.callback(found.end)
        yield found


def partition_of_number(sequence_number: int | None) -> int:
    """The partition that a sequence number names."""
    assert sequence_number is not None
    return sequence_number >> 48
