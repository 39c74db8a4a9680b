"""The partitions of a queue under test."""

from collections.abc import Sequence
from typing import Any

from harness.deliveries import placed
from harness.redis_servers import Broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import decode, encode

QUEUE = "flights"


class Brokers:
    """A queue's partitions, to send to and to look at."""

    def __init__(self, servers: Sequence[Broker], queue: str = QUEUE) -> None:
        self.servers = servers
        self.keys = QueueKeys(queue)
        self.configure()
        self.option = ",".join(str(server.address) for server in servers)

    def configure(self, **settings: Any) -> None:
        """Say which partition each is, and some BrokerSettings."""
        told = BrokerSettings(**settings) if settings else None
        for partition, server in enumerate(self.servers):
            with BlockingBroker(server.address) as broker:
                count = len(self.servers)
                broker.call(calls.configure(self.keys, partition=partition, partitions=count, settings=told))

    def send(self, partition: int, messages: Sequence[Message]) -> None:
        with BlockingBroker(self.servers[partition].address) as broker:
            for at in range(0, len(messages), 1000):
                broker.call(calls.send(self.keys, [encode(message) for message in messages[at : at + 1000]]))

    def send_numbered(self, count: int, first: int = 0) -> None:
        """`count` messages with the bodies b"<number>", spread over the partitions."""
        for partition in range(len(self.servers)):
            numbers = range(first + partition, first + count, len(self.servers))
            self.send(partition, [Message(body=b"%d" % number) for number in numbers])

    def totals(self) -> list[Totals]:
        found = []
        for server in self.servers:
            with BlockingBroker(server.address) as broker:
                found.append(broker.call(calls.totals(self.keys)))
        return found

    def held(self) -> list[list[Message]]:
        """What each partition holds, in its order."""
        found = []
        for server in self.servers:
            here, next_ = [], 1
            with BlockingBroker(server.address) as broker:
                while next_:
                    shown = broker.call(calls.peek(self.keys, from_sequence=next_, most=1000, bytes_most=1 << 26))
                    here += [decode(one) for _, one in placed(shown.runs)]
                    next_ = shown.next
            found.append(here)
        return found

    def left(self) -> int:
        return sum(totals.messages for totals in self.totals())
