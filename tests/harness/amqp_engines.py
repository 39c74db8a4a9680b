"""Two AMQP engines back to back: what one says, the other hears, in pieces of any size."""

from collections.abc import Iterator
from typing import Any, TypeVar

from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import terminus
from partitionedqueue_gateway.amqp.engine.connection import Connection, ConnectionSettings, Role
from partitionedqueue_gateway.amqp.engine.events import Event
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink, SendingLink

E = TypeVar("E", bound=Event)
Settings = dict[str, Any]


class Engines:
    """A server and a client; `step` is how many bytes are handed over at a time, 0 for all."""

    def __init__(
        self, *, step: int = 0, server: dict[str, Any] | None = None, client: dict[str, Any] | None = None
    ) -> None:
        self.step = step
        self.now_s = 100.0
        self.server = Connection(ConnectionSettings(**{"container_id": "server", **(server or {})}), self.now_s)
        self.client = Connection(
            ConnectionSettings(**{"container_id": "client", "mechanisms": ("ANONYMOUS",), **(client or {})}),
            self.now_s,
            role=Role.CLIENT,
        )
        self.at_server: list[Event] = []
        self.at_client: list[Event] = []
        self.sent = bytearray()
        """By the client."""
        self.lets_in = True

    def turn(self) -> "Engines":
        """Until nobody has anything to say; the events of this turn are then in at_server and at_client."""
        self.at_server, self.at_client = [], []
        for _ in range(1000):
            asked, answered = b"".join(self.client.data_to_send()), b"".join(self.server.data_to_send())
            if not asked and not answered:
                return self
            self.sent += asked
            self.tell_server(asked)
            for piece in self._pieces(answered):
                self.at_client += self.client.receive_data(piece, self.now_s)
        raise AssertionError("the two never come to an end")

    def tell_server(self, data: bytes) -> list[Event]:
        """As from the client; the server lets it in. Gives what has happened there."""
        found: list[Event] = []
        for piece in self._pieces(data):
            for event in self.server.receive_data(piece, self.now_s):
                found.append(event)
                if isinstance(event, happened.SaslInit):
                    found += self.server.sasl_outcome(ok=self.lets_in)
        self.at_server += found
        return found

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        step = self.step or max(len(data), 1)
        return (data[start : start + step] for start in range(0, len(data), step))

    def the(self, kind: type[E]) -> E:
        """The one event of this kind in the last turn, at either end."""
        (found,) = (event for event in self.at_server + self.at_client if isinstance(event, kind))
        return found

    def all(self, kind: type[E]) -> list[E]:
        """All events of this kind in the last turn, the server's first."""
        return [event for event in self.at_server + self.at_client if isinstance(event, kind)]

    def sending_client(
        self, *, credit: int = 100, name: str = "link", **attach: Any
    ) -> tuple[SendingLink, ReceivingLink]:
        """An AMQP session and a link over which the client sends: its end, and the server's."""
        ours = self.client.begin().sender(name, source=terminus.source(None), target=terminus.target("queue"), **attach)
        theirs = self._requested(ReceivingLink)
        theirs.attach(source=theirs.source, target=theirs.target)
        theirs.keep_granted(credit)
        self.turn()
        return ours, theirs

    def receiving_client(
        self, *, credit: int = 100, name: str = "link", **attach: Any
    ) -> tuple[ReceivingLink, SendingLink]:
        """An AMQP session and a link over which the client receives: its end, and the server's."""
        ours = self.client.begin().receiver(
            name, source=terminus.source("queue"), target=terminus.target(None), **attach
        )
        theirs = self._requested(SendingLink)
        theirs.attach(source=theirs.source, target=theirs.target)
        self.turn()
        ours.grant(credit)
        self.turn()
        return ours, theirs

    def _requested(self, kind: type[Any]) -> Any:
        link = self.turn().the(happened.AttachRequested).link
        assert isinstance(link, kind)
        return link
