"""One port for every protocol: what is spoken is told by the first byte, and nobody who knocks can hurt the others.

Behind the door stands a conversation that says back what it hears; the real one has tests of its own.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from harness.own_certificate import write_certificate
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.front_door import sockets
from partitionedqueue_gateway.front_door.certificate import Certificate, CertificateUnusable
from partitionedqueue_gateway.front_door.conversation import Wire
from partitionedqueue_gateway.front_door.conversations import Conversations
from partitionedqueue_gateway.front_door.door import FrontDoor
from partitionedqueue_gateway.front_door.sockets import Entrance
from partitionedqueue_gateway.front_door.websocket import WebSockets
from partitionedqueue_gateway.rest.server import serving

HEADER = b"AMQP\x03\x01\x00\x00"


class Echo:
    """Says back what it hears; `flood` makes it say a lot, `bye` makes it close."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.opened = False
        self.heard = b""
        self.calls: list[str] = []

    def data_received(self, data: bytes) -> None:
        self.heard += data
        if data.endswith(b"open"):
            self.opened = True
        if data.endswith((b"flood", b"flood on")):
            self.flood()
        elif data.endswith(b"bye"):
            self.wire.write([b"good", b"bye"])
            self.wire.close()
        else:
            self.wire.write([data])

    def flood(self) -> None:
        pauses = self.calls.count("pause")
        while self.calls.count("pause") == pauses:
            self.wire.write([bytes(1 << 16)])

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")
        if self.heard.endswith(b"flood on"):
            self.flood()

    def connection_lost(self) -> None:
        self.calls.append("lost")

    async def drain(self) -> None:
        self.calls.append("drain")
        if self.heard.endswith(b"stay"):
            await asyncio.sleep(3600)
        self.wire.write([b"elsewhere"])
        self.wire.close()


@dataclass
class House:
    """What stands behind the door, and where it is."""

    port: int
    tls_port: int
    conversations: Conversations
    door: FrontDoor
    talks: list[Echo] = field(default_factory=list)
    trusting: ssl.SSLContext | None = None

    async def connect(self, *, tls: bool = False, port: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = self.trusting if tls else None
        return await asyncio.open_connection("127.0.0.1", port or self.port, ssl=context)


@asynccontextmanager
async def house(certificate: Certificate | None = None) -> AsyncIterator[House]:
    talks = list[Echo]()

    def open_conversation(wire: Wire) -> Echo:
        talks.append(Echo(wire))
        return talks[-1]

    async def hello(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.scheme} {len(await request.read())}")

    conversations = Conversations(open_conversation)
    app = web.Application(client_max_size=1 << 22)
    app.router.add_routes([web.route("*", "/hello", hello), *WebSockets(conversations).routes()])
    async with serving(app) as http:
        door = FrontDoor(conversations, certificate)
        found = []
        for name, tls_only in (("all", False), ("TLS", True)):
            one = sockets.bound("127.0.0.1", 0, shared=False)
            door.open(Entrance(name=name, variable="", port=0, tls_only=tls_only), one, http)
            found.append(sockets.port_of(one))
        try:
            yield House(found[0], found[1], conversations, door, talks)
        finally:
            await door.close()
            await conversations.drain()


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
async def home(chain: Path) -> AsyncIterator[House]:
    async with house(Certificate(chain.parent)) as one:
        one.trusting = ssl.create_default_context(cafile=str(chain))
        yield one


async def until(what: Callable[[], bool], seconds: float = 10.0) -> None:
    for _ in range(int(seconds * 100)):
        if what():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("that did not happen in time")


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def is_closed(reader: asyncio.StreamReader, seconds: float = 10.0) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await reader.read(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("tls", [False, True])
async def test_one_port_serves_amqp_http_and_websockets_plain_and_inside_tls(home: House, tls: bool) -> None:
    reader, writer = await home.connect(tls=tls)
    writer.write(HEADER)
    assert await reader.readexactly(8) == HEADER
    assert home.talks[0].heard == HEADER
    assert home.talks[0].wire.encrypted is tls
    assert home.talks[0].wire.peer.startswith("127.0.0.1:")
    async with aiohttp.ClientSession(f"http{'s' if tls else ''}://127.0.0.1:{home.port}") as client:
        security = home.trusting if tls and home.trusting else True
        async with client.get("/hello", ssl=security) as answer:
            assert await answer.text() == f"http{'s' if tls else ''} 0"
        async with client.put("/hello", data=bytes(1_000_000), ssl=security) as answer:
            assert (await answer.text()).endswith(" 1000000")
        async with client.ws_connect("/$servicebus/websocket", protocols=("AMQPWSB10",), ssl=security) as websocket:
            assert websocket.protocol == "AMQPWSB10"
            await websocket.send_bytes(HEADER)
            assert await websocket.receive_bytes() == HEADER
            assert home.talks[1].wire.encrypted is tls
            assert len(home.conversations) == 2
            await websocket.send_bytes(b"bye")
            assert await websocket.receive_bytes() == b"goodbye"
            assert (await websocket.receive()).type is aiohttp.WSMsgType.CLOSE
    await until(lambda: home.talks[1].calls == ["lost"])
    await close(writer)
    await until(lambda: home.talks[0].calls == ["lost"])
    assert len(home.conversations) == 0


async def test_a_first_byte_that_comes_alone_and_late_is_enough(home: House) -> None:
    for tls in (False, True):
        reader, writer = await home.connect(tls=tls)
        await asyncio.sleep(0.1)
        for one in HEADER:
            writer.write(bytes([one]))
            await asyncio.sleep(0.01)
        assert await reader.readexactly(8) == HEADER
        await close(writer)


def test_what_is_written_is_sent_at_once() -> None:
    with sockets.bound("127.0.0.1", 0, shared=False) as listening:
        listening.listen()
        with socket.create_connection(("127.0.0.1", sockets.port_of(listening))):
            listening.setblocking(True)
            with listening.accept()[0] as connection:
                sockets.prepare(connection)
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_the_kernel_looks_whether_a_client_is_still_there(home: House) -> None:
    _, writer = await home.connect()
    ours, theirs = writer.get_extra_info("sockname")[1], writer.get_extra_info("peername")[1]
    writer.write(HEADER)

    def timers() -> set[str]:
        """Of the gateway's end of the connection (proc(5), net/tcp): 02 is keep-alive."""
        rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
        ends = (f":{theirs:04X}", f":{ours:04X}")
        return {row[5].partition(":")[0] for row in rows if (row[1][-5:], row[2][-5:]) == ends}

    await until(lambda: timers() == {"02"})
    await close(writer)


async def test_a_port_for_tls_takes_nothing_else(home: House) -> None:
    reader, writer = await home.connect(tls=True, port=home.tls_port)
    writer.write(HEADER)
    assert await reader.readexactly(8) == HEADER
    await close(writer)
    for first in (HEADER, b"GET /hello HTTP/1.1\r\n\r\n"):
        reader, writer = await home.connect(port=home.tls_port)
        writer.write(first)
        assert await is_closed(reader)
        await close(writer)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("first", [b"\x00", b"\xff" * 9, b"amqp", b"SSH-2.0-x", b"\r\n"])
async def test_what_speaks_nothing_known_is_sent_away(home: House, tls: bool, first: bytes) -> None:
    reader, writer = await home.connect(tls=tls)
    writer.write(first)
    assert await is_closed(reader)
    await close(writer)
    assert home.talks == []


async def test_without_a_certificate_who_speaks_tls_is_sent_away() -> None:
    async with house() as home:
        reader, writer = await home.connect()
        writer.write(b"\x16\x03\x01\x02\x00\x01")
        assert await is_closed(reader)
        await close(writer)


async def test_a_broken_handshake_hurts_nobody_else(home: House) -> None:
    reader, writer = await home.connect()
    writer.write(b"\x16\x03\x01\x00\x05hello")
    while await reader.read(100):  # an alert, then the end
        pass
    await close(writer)
    reader, writer = await home.connect(tls=True)
    writer.write(HEADER)
    assert await reader.readexactly(8) == HEADER
    await close(writer)


async def test_who_says_nothing_is_sent_away(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GREETING_S_MAX", 0.3)
    async with house(Certificate(chain.parent)) as home:
        home.trusting = ssl.create_default_context(cafile=str(chain))
        silent = await home.connect()
        half_a_handshake = await home.connect()
        half_a_handshake[1].write(b"\x16\x03\x01")
        silent_inside = await home.connect(tls=True)
        not_opened, opened = await home.connect(), await home.connect()
        not_opened[1].write(HEADER)
        opened[1].write(HEADER + b"open")
        await not_opened[0].readexactly(8)
        await opened[0].readexactly(12)
        for reader, writer in (silent, half_a_handshake, silent_inside, not_opened):
            assert await is_closed(reader, 3)
            await close(writer)
        opened[1].write(b"still here")
        assert await opened[0].readexactly(10) == b"still here"
        await close(opened[1])


async def test_many_who_say_nothing_keep_nobody_out(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GREETINGS_MAX", 20)
    silent = [await home.connect() for _ in range(60)]
    reader, writer = await home.connect()
    writer.write(HEADER)
    assert await reader.readexactly(8) == HEADER
    assert await is_closed(silent[0][0])
    for each in (*silent, (reader, writer)):
        await close(each[1])


async def test_connections_beyond_the_bound_are_closed_and_others_go_on(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AMQP_CONNECTIONS_MAX", 2)
    within = [await home.connect() for _ in range(2)]
    for reader, writer in within:
        writer.write(HEADER)
        await reader.readexactly(8)
    reader, writer = await home.connect()
    writer.write(HEADER)
    assert await is_closed(reader)
    await close(writer)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{home.port}") as client:
        async with client.get("/hello") as answer:
            assert answer.status == 200
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await client.ws_connect("/$servicebus/websocket", protocols=("AMQPWSB10",))
    await close(within[0][1])
    await until(lambda: len(home.conversations) == 1)
    reader, writer = await home.connect()
    writer.write(HEADER)
    assert await reader.readexactly(8) == HEADER
    await close(writer)
    await close(within[1][1])


async def test_a_websocket_of_another_protocol_is_refused(home: House) -> None:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{home.port}") as client:
        for protocols in ((), ("mqtt",)):
            with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
                await client.ws_connect("/$servicebus/websocket", protocols=protocols)
        async with client.ws_connect("/$servicebus/websocket/", protocols=("mqtt", "AMQPWSB10")) as websocket:
            await websocket.send_str("text is no AMQP")
            assert (await websocket.receive()).type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
    await until(lambda: home.talks[0].calls == ["lost"])


@pytest.mark.parametrize("tls", [False, True])
async def test_who_does_not_read_makes_a_conversation_pause_and_is_cut_off(
    home: House, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setattr(limits, "STALLED_S_MAX", 0.5)
    reader, writer = await home.connect(tls=tls)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads
    writer.write(HEADER + b"flood on")
    await until(lambda: [talk.calls[-2:] for talk in home.talks] == [["pause", "lost"]])
    await close(writer)
    assert reader is not None


async def test_who_reads_again_in_time_makes_it_resume(home: House) -> None:
    reader, writer = await home.connect()
    writer.write(HEADER + b"flood")
    await until(lambda: any("pause" in talk.calls for talk in home.talks))
    while "resume" not in home.talks[0].calls:
        await reader.read(1 << 16)
    await close(writer)


async def test_a_websocket_that_is_not_read_pauses_resumes_and_is_cut_off(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STALLED_S_MAX", 1.0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{home.port}") as client:
        async with client.ws_connect("/$servicebus/websocket", protocols=("AMQPWSB10",)) as websocket:
            await websocket.send_bytes(b"flood")
            while "resume" not in [call for talk in home.talks for call in talk.calls]:
                assert len(await websocket.receive_bytes()) <= limits.WEBSOCKET_PIECE_BYTES
        async with client.ws_connect("/$servicebus/websocket", protocols=("AMQPWSB10",)) as websocket:
            response = websocket._response.connection
            assert response is not None
            assert response.transport is not None
            monkeypatch.setattr(limits, "WRITE_BUFFER_BYTES_MAX", 32 << 20)  # beyond what kernels take in
            response.transport.pause_reading()
            await websocket.send_bytes(b"flood")
            await until(lambda: home.talks[1].calls == ["pause", "lost"])
            response.transport.abort()


async def test_a_paused_conversation_is_told_nothing_until_it_resumes(home: House) -> None:
    reader, writer = await home.connect()
    writer.write(HEADER)
    await reader.readexactly(8)
    talk = home.talks[0]
    talk.wire.pause_reading()
    writer.write(b"more")
    await asyncio.sleep(0.2)
    assert talk.heard == HEADER
    talk.wire.resume_reading()
    assert await reader.readexactly(4) == b"more"
    await close(writer)


async def test_a_reset_in_the_middle_ends_one_conversation_alone(home: House) -> None:
    with socket.create_connection(("127.0.0.1", home.port)) as one:
        one.sendall(HEADER)
        await until(lambda: len(home.talks) == 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await until(lambda: home.talks[0].calls == ["lost"])
    with socket.create_connection(("127.0.0.1", home.port)) as one:  # before it said anything
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reader, writer = await home.connect()
    writer.write(HEADER)
    assert await reader.readexactly(8) == HEADER
    await close(writer)


async def test_at_the_end_clients_are_told_to_go_elsewhere_and_who_stays_is_cut_off(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "END_S_MAX", 0.5)
    (reader, writer), (deaf, deaf_writer) = await home.connect(), await home.connect()
    writer.write(HEADER)
    deaf_writer.write(HEADER + b"stay")
    await reader.readexactly(8)
    await deaf.readexactly(12)
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{home.port}") as client,
        client.ws_connect("/$servicebus/websocket", protocols=("AMQPWSB10",)) as websocket,
    ):
        await websocket.send_bytes(HEADER)
        await websocket.receive_bytes()
        await home.door.close()
        with pytest.raises(OSError, match="Connect call failed"):
            await home.connect()
        await home.conversations.drain()
        assert await reader.read() == b"elsewhere"
        assert await websocket.receive_bytes() == b"elsewhere"
        assert await is_closed(deaf)
    await close(writer)
    await close(deaf_writer)
    await until(lambda: all(talk.calls == ["drain", "lost"] for talk in home.talks))


async def test_a_renewed_certificate_is_shown_to_new_connections_and_a_broken_one_is_not(tmp_path: Path) -> None:
    chain = write_certificate(tmp_path, name="first")
    first, second = ssl.create_default_context(cafile=str(chain)), chain.read_bytes()
    certificate = Certificate(tmp_path)
    async with house(certificate) as home:
        home.trusting = first
        old_reader, old_writer = await home.connect(tls=True)
        old_writer.write(HEADER)
        await old_reader.readexactly(8)
        assert not certificate.read()
        write_certificate(tmp_path, name="second")
        assert certificate.read()
        with pytest.raises(ssl.SSLCertVerificationError):
            await home.connect(tls=True)
        home.trusting = ssl.create_default_context(cafile=str(chain))
        reader, writer = await home.connect(tls=True)
        await close(writer)
        chain.write_bytes(second)  # of another key
        with pytest.raises(CertificateUnusable, match="has no usable tls"):
            certificate.read()
        reader, writer = await home.connect(tls=True)
        await close(writer)
        old_writer.write(b"still")
        assert await old_reader.readexactly(5) == b"still"
        await close(old_writer)
        assert reader is not None


def test_versions_of_tls_that_azure_does_not_take_are_not_spoken(chain: Path) -> None:
    assert Certificate(chain.parent).context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_key_with_a_passphrase_is_refused_and_not_asked_for(tmp_path: Path) -> None:
    chain = write_certificate(tmp_path)
    encrypted = ("pkey", "-in", str(tmp_path / "tls.key"), "-aes256", "-passout", "pass:word", "-out")
    subprocess.run(["openssl", *encrypted, str(tmp_path / "tls.key.new")], check=True, timeout=60)
    (tmp_path / "tls.key.new").replace(tmp_path / "tls.key")
    with pytest.raises(CertificateUnusable):
        Certificate(chain.parent)
