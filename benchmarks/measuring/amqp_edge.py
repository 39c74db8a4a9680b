"""The gateway's AMQP engine with nothing behind it: what an AMQP server in Python costs at the least.

`python amqp_edge.py PORT`. Messages are kept in memory as they came and handed out under made-up locks, again where
they are released; nothing is looked into, nothing is checked, nobody is refused.
"""

import asyncio
import itertools
import signal
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gateway"))

from partitionedqueue.model.amqp_message import BATCH_FORMAT, batch
from partitionedqueue_gateway.amqp.engine import events, outcomes, sections
from partitionedqueue_gateway.amqp.engine.connection import Connection, ConnectionSettings
from partitionedqueue_gateway.amqp.engine.decoding import decode
from partitionedqueue_gateway.amqp.engine.link import Link, ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.terminus import address_of
from partitionedqueue_gateway.amqp.engine.values import Int, Symbol, Timestamp, UInt

WINDOW = 1_000
_KEPT: defaultdict[str, deque[bytes]] = defaultdict(deque)
_TAGS = (number.to_bytes(16) for number in itertools.count(1))
_IN_FRONT = sections.encode(sections.HEADER, [None, None, None, None, UInt(0)]) + sections.encode(
    sections.MESSAGE_ANNOTATIONS,
    {
        Symbol("x-opt-sequence-number"): 1,
        Symbol("x-opt-enqueued-time"): Timestamp(1 << 40),
        Symbol("x-opt-locked-until"): Timestamp(1 << 42),
    },
)


class Edge(asyncio.Protocol):
    """One client."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = Connection(ConnectionSettings(container_id="edge"), self._loop.time())
        self._transport: asyncio.Transport | None = None
        self._replier: SendingLink | None = None
        self._replies: deque[bytes] = deque()
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            events.SaslInit: lambda _: self._handle(self._connection.sasl_outcome(ok=True)),
            events.AttachRequested: self._attach,
            events.MessageReceived: self._message,
            events.CreditChanged: lambda event: self._hand_out(event.link),
            events.Dispositions: self._disposed,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """It has said something."""
        self._handle(self._connection.receive_data(data, self._loop.time()))
        if self._transport is not None and (buffers := self._connection.data_to_send()):
            self._transport.writelines(buffers)

    def _handle(self, told: list[events.Event]) -> None:
        for event in told:
            handler = self._handlers.get(type(event))
            if handler is not None:
                handler(event)

    def _attach(self, event: events.AttachRequested) -> None:
        link: Link = event.link
        link.context = address_of(link.target if link.is_receiver else link.source)
        if isinstance(link, SendingLink) and link.context == "$cbs":
            self._replier = link
        link.attach(source=link.source, target=link.target)
        if isinstance(link, ReceivingLink):
            link.keep_granted(WINDOW)

    def _message(self, event: events.MessageReceived) -> None:
        link, delivery_id, _, message_format, settled, _, payload = event
        if not settled:
            link.settle(delivery_id, outcomes.ACCEPTED)
        if link.context == "$cbs":
            self._reply(payload)
        elif message_format == BATCH_FORMAT:
            _KEPT[link.context].extend(batch(payload))
        else:
            _KEPT[link.context].append(payload)

    def _reply(self, request: bytes) -> None:
        its = {section.code: section.encoded for section in sections.split(request)}
        message_id = decode(next(sections.slices(its[sections.PROPERTIES])))
        answer = sections.encode(sections.APPLICATION_PROPERTIES, {"status-code": Int(202), "status-description": "OK"})
        properties = sections.encode(sections.PROPERTIES, [None] * 5 + [message_id])
        self._replies.append(properties + answer + sections.encode(sections.VALUE, None))
        if self._replier is not None:
            self._hand_out(self._replier)

    def _hand_out(self, link: SendingLink) -> None:
        if link is self._replier:
            while self._replies and link.sendable:
                link.send(self._replies.popleft(), next(_TAGS), settled=True)
            return
        kept, settled = _KEPT[link.context], link.snd_settle_mode == 1
        while kept and link.sendable:
            message = kept.popleft()
            link.send(_IN_FRONT + message, next(_TAGS), settled=settled, context=message)

    def _disposed(self, event: events.Dispositions) -> None:
        for link, delivery_id, message in event.deliveries:
            if isinstance(link, SendingLink):
                if not event.settled:
                    link.settle(delivery_id, event.state)
                if event.code == outcomes.RELEASED_CODE:  # it came too late for whoever had asked for it
                    _KEPT[link.context].append(message)
                    self._hand_out(link)


async def main(port: int) -> None:
    """Serve until SIGTERM."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    async with await loop.create_server(Edge, "127.0.0.1", port):
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
