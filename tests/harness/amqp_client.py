"""A client of our own engine, over a socket: says what a test wants to say, also what no SDK would."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from partitionedqueue_gateway.amqp.engine import decoding, events, outcomes, sections, terminus
from partitionedqueue_gateway.amqp.engine.amqp_session import AmqpSession
from partitionedqueue_gateway.amqp.engine.connection import Connection, ConnectionSettings, Role
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.events import MessageReceived
from partitionedqueue_gateway.amqp.engine.link import Link, ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.outcomes import Outcome
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError
from partitionedqueue_gateway.amqp.engine.values import Array, Described, Symbol, UInt, ULong, Value

SECONDS = 10.0
DELIVERY_COUNT = 4
UNSETTLED, SETTLED = 0, 1


class Refused(Exception):
    """A link was not given, or taken away."""

    def __init__(self, error: AmqpError | None) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def condition(self) -> str:
        return self.error.condition if self.error is not None else ""

    @property
    def words(self) -> str:
        return (self.error.description if self.error is not None else None) or ""


class Answered(NamedTuple):
    """What a management node or $cbs answered."""

    properties: Mapping[str, Value]
    body: Value
    correlation_id: bytes

    @property
    def status(self) -> int:
        return int(self.properties.get("statusCode", self.properties.get("status-code")))

    @property
    def condition(self) -> str | None:
        return self.properties.get("errorCondition")

    @property
    def words(self) -> str:
        return str(self.properties.get("statusDescription", self.properties.get("status-description")))


class Got:
    """A message as it came over a receiver."""

    def __init__(self, event: MessageReceived) -> None:
        self.link = event.link
        self.delivery_id = event.delivery_id
        self.tag = event.delivery_tag
        self.settled = event.settled
        self.sections = dict(sections.split(event.payload))

    def section(self, code: int) -> Value:
        return decoding.decode(self.sections[code]) if code in self.sections else None

    @property
    def body(self) -> bytes:
        return bytes(self.section(sections.DATA))

    @property
    def delivery_count(self) -> int:
        return int(self.section(sections.HEADER)[DELIVERY_COUNT])

    @property
    def annotations(self) -> dict[str, Value]:
        found: dict[str, Value] = self.section(sections.MESSAGE_ANNOTATIONS)
        return found

    @property
    def application_properties(self) -> dict[str, Value]:
        return self.section(sections.APPLICATION_PROPERTIES) or {}

    @property
    def lock_token(self) -> Value:
        return self.section(sections.DELIVERY_ANNOTATIONS)["x-opt-lock-token"]

    @property
    def sequence_number(self) -> int:
        return int(self.annotations["x-opt-sequence-number"])


def message(
    body: bytes = b"",
    *,
    message_id: Value = None,
    session_id: str | None = None,
    annotations: Mapping[str, Value] | None = None,
    application: Mapping[str, Value] | None = None,
    ttl_ms: int | None = None,
) -> bytes:
    """One encoded."""
    parts = []
    if ttl_ms is not None:
        parts.append(sections.encode(sections.HEADER, [None, None, UInt(ttl_ms)]))
    if annotations:
        keyed = {Symbol(name): value for name, value in annotations.items()}
        parts.append(sections.encode(sections.MESSAGE_ANNOTATIONS, keyed))
    if message_id is not None or session_id is not None:
        parts.append(sections.encode(sections.PROPERTIES, [message_id, *[None] * 9, session_id]))
    if application:
        parts.append(sections.encode(sections.APPLICATION_PROPERTIES, dict(application)))
    return b"".join(parts) + sections.encode(sections.DATA, body)


def batch(*messages: bytes, annotations: Mapping[str, Value] | None = None) -> bytes:
    """The payload of a batch."""
    envelope = b""
    if annotations:
        keyed = {Symbol(name): value for name, value in annotations.items()}
        envelope = sections.encode(sections.MESSAGE_ANNOTATIONS, keyed)
    return envelope + b"".join(sections.encode(sections.DATA, one) for one in messages)


class Client(asyncio.Protocol):
    """One connection. Everything that came is kept until somebody asks for it."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._loop = asyncio.get_running_loop()
        self.engine = Connection(settings, self._loop.time(), role=Role.CLIENT)
        self.transport: asyncio.Transport | None = None
        self.ended: AmqpError | None = None
        self.over = asyncio.Event()
        self.changed = asyncio.Event()
        self.got: dict[Link, list[Got]] = {}
        self.outcomes: dict[tuple[Link, int], bytes] = {}
        self.detached: dict[Link, AmqpError | None] = {}
        self.drained: set[Link] = set()
        self._names = itertools.count(1)
        self._pairs: dict[tuple[str, AmqpSession], tuple[SendingLink, ReceivingLink]] = {}

    # The socket.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.flush()

    def data_received(self, data: bytes) -> None:
        for event in self.engine.receive_data(data, self._loop.time()):
            self._take(event)
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()
        self.changed.set()

    def flush(self) -> None:
        assert self.transport is not None
        self.transport.writelines(self.engine.data_to_send())

    def _take(self, event: Any) -> None:
        match event:
            case events.MessageReceived():
                self.got.setdefault(event.link, []).append(Got(event))
            case events.Dispositions():
                for link, delivery_id, _ in event.deliveries:
                    self.outcomes[link, delivery_id] = event.state
                    if not event.settled and isinstance(link, SendingLink):
                        link.settle(delivery_id, event.state)
            case events.Detached():
                self.detached[event.link] = event.error
            case events.Drained():
                self.drained.add(event.link)
            case events.ConnectionEnded():
                self.ended = event.error
                self.over.set()
        self.changed.set()

    async def until(self, so: Any, seconds: float = SECONDS) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(seconds):
            while not so():
                self.changed.clear()
                await self.changed.wait()

    # What tests say.

    def begin(self) -> AmqpSession:
        return self.engine.begin()

    def _name(self, name: str | None) -> str:
        return name or f"link-{next(self._names)}"

    async def sender(
        self, address: str, *, session: AmqpSession | None = None, name: str | None = None, **attach: Any
    ) -> SendingLink:
        """A link to send over. Raises Refused."""
        made = (session or self.begin()).sender(
            self._name(name),
            source=terminus.source("me"),
            target=attach.pop("target", terminus.target(address)),
            **attach,
        )
        await self._attached(made)
        await self.until(lambda: made.credit > 0 or made in self.detached)
        return made

    async def receiver(
        self,
        address: str,
        *,
        session: AmqpSession | None = None,
        name: str | None = None,
        filters: Mapping[Any, Value] | None = None,
        seconds: float = SECONDS,
        **attach: Any,
    ) -> ReceivingLink:
        """A link to receive over, without credit. Raises Refused."""
        attach.setdefault("snd_settle_mode", UNSETTLED)
        made = (session or self.begin()).receiver(
            self._name(name),
            source=terminus.source(address, filters=filters),
            target=attach.pop("target", terminus.target("me")),
            **attach,
        )
        await self._attached(made, seconds)
        return made

    async def session_receiver(self, address: str, session_id: str | None, **more: Any) -> ReceivingLink:
        """One that holds a session. Raises Refused."""
        return await self.receiver(address, filters=terminus.session_filter(session_id), **more)

    async def _attached(self, link: Link, seconds: float = SECONDS) -> None:
        self.flush()
        await self.until(lambda: link.attached or link in self.detached or self.over.is_set(), seconds)
        if link.attached and (link.source is None or link.target is None):
            await self.until(lambda: link in self.detached)  # a refusal is an attach with nothing, then a detach
        if link in self.detached:
            raise Refused(self.detached[link])
        if not link.attached:
            raise Refused(self.ended)

    def put(self, link: SendingLink, payload: bytes, *, message_format: int = 0, settled: bool = False) -> int:
        """Send without waiting."""
        delivery_id = link.send(payload, b"tag", settled=settled, message_format=message_format)
        self.flush()
        return delivery_id

    async def outcome(self, link: Link, delivery_id: int, seconds: float = SECONDS) -> Outcome | None:
        """What became of a delivery of ours, or of our outcome for one of theirs."""
        await self.until(lambda: (link, delivery_id) in self.outcomes or link in self.detached, seconds)
        if (link, delivery_id) not in self.outcomes:
            raise Refused(self.detached[link])
        return outcomes.read(self.outcomes[link, delivery_id])

    async def send(self, link: SendingLink, payload: bytes, *, message_format: int = 0) -> Outcome | None:
        """Send and wait for the outcome."""
        return await self.outcome(link, self.put(link, payload, message_format=message_format))

    async def receive(self, link: ReceivingLink, count: int = 1, seconds: float = SECONDS) -> list[Got]:
        """Give credit for so many and wait for them."""
        link.grant(count)
        self.flush()
        return await self.come(link, count, seconds)

    async def come(self, link: ReceivingLink, count: int, seconds: float = SECONDS) -> list[Got]:
        """Wait for so many."""
        await self.until(lambda: len(self.got.get(link, [])) >= count or link in self.detached, seconds)
        if link in self.detached:
            raise Refused(self.detached[link])
        taken, self.got[link] = self.got[link][:count], self.got[link][count:]
        return taken

    async def drain(self, link: ReceivingLink, count: int, seconds: float = SECONDS) -> list[Got]:
        """What is there now, at most so many."""
        self.drained.discard(link)
        link.grant(count, drain=True)
        self.flush()
        await self.until(lambda: link in self.drained, seconds)
        return self.got.pop(link, [])

    def say(self, got: Got, state: bytes, *, settled: bool = False) -> None:
        """An outcome, without waiting."""
        got.link.settle(got.delivery_id, state, settled=settled)
        self.flush()

    async def settle(self, got: Got, state: bytes) -> Outcome | None:
        """An outcome, and what the server answers."""
        self.outcomes.pop((got.link, got.delivery_id), None)
        self.say(got, state)
        return await self.outcome(got.link, got.delivery_id)

    async def pair(self, node: str, session: AmqpSession | None = None) -> tuple[SendingLink, ReceivingLink]:
        """Links to a node that answers, made once an AMQP session."""
        session = session or self.begin()
        asking = await self.sender(node, session=session)
        answers = await self.receiver(node, session=session, target=terminus.target(f"{node}-{asking.name}"))
        answers.grant(1_000)
        return asking, answers

    async def ask(
        self,
        pair: tuple[SendingLink, ReceivingLink],
        body: Value,
        *,
        message_id: Value = None,
        reply_to: str | bool = True,
        settled: bool = False,
        seconds: float = SECONDS,
        **properties: Value,
    ) -> Answered:
        """Ask and wait for the answer. `reply_to` True: to the address of the link for answers; False: not said."""
        asking, answers = pair
        message_id = message_id or ULong(next(self._names))
        address = terminus.address_of(answers.target) if reply_to is True else reply_to or None
        named = {name.replace("_", "-"): value for name, value in properties.items()}
        payload = (
            sections.encode(sections.PROPERTIES, [message_id, None, None, None, address])
            + sections.encode(sections.APPLICATION_PROPERTIES, named)
            + sections.encode(sections.VALUE, body)
        )
        self.put(asking, payload, settled=settled)
        (got,) = await self.come(answers, 1, seconds)
        items = [*sections.slices(got.sections[sections.PROPERTIES])]
        assert items[5] == encode(message_id)
        return Answered(got.section(sections.APPLICATION_PROPERTIES), got.section(sections.VALUE), items[5])

    async def manage(
        self, pair: tuple[SendingLink, ReceivingLink], operation: str, body: Mapping[str, Value], **more: Any
    ) -> Answered:
        """An operation of a management node."""
        return await self.ask(pair, dict(body), operation=f"com.microsoft:{operation}", **more)

    async def close(self) -> None:
        self.engine.close()
        self.flush()
        async with asyncio.timeout(SECONDS):
            await self.over.wait()

    def cut(self) -> None:
        """As a cable is."""
        assert self.transport is not None
        self.transport.abort()


@asynccontextmanager
async def connected(
    port: int, *, mechanisms: Sequence[str] = ("ANONYMOUS",), sasl_response: bytes = b"", **settings: Any
) -> AsyncIterator[Client]:
    """A connection for an `async with` block."""
    loop = asyncio.get_running_loop()
    told = ConnectionSettings(
        container_id="test", hostname="localhost", mechanisms=tuple(mechanisms), sasl_response=sasl_response, **settings
    )
    transport, client = await loop.create_connection(lambda: Client(told), "127.0.0.1", port)
    try:
        yield client
    finally:
        transport.abort()


__all__ = ["Array", "Client", "Described", "Refused", "batch", "connected", "message"]
