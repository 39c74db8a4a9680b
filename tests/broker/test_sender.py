"""Sending to real brokers of which some are killed: nothing acknowledged is lost, and nothing is stored twice."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.redis_servers import Broker, running_brokers
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import Totals
from partitionedqueue.broker.sender import QueueSender
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model import limits, partitioning, stored_message
from partitionedqueue.model.errors import (
    BatchKeyConflict,
    BrokerUnavailable,
    InvalidMessage,
    MessageNotFound,
    QueueFull,
    SessionRequired,
)
from partitionedqueue.model.identifiers import sequence_number, split_sequence_number
from partitionedqueue.model.message import Message
from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.storable import Storable, storable

KEYS = QueueKeys("q")
PARTITIONS = 4


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Broker]]:
    with running_brokers(tmp_path, PARTITIONS) as brokers:
        yield brokers


@pytest.fixture
async def clients(servers: list[Broker]) -> AsyncIterator[list[BrokerClient]]:
    several = [BrokerClient(server.address) for server in servers]
    yield several
    for client in several:
        await client.close()


def key_of(partition: int, partitions: int) -> str:
    """A key that belongs to a partition."""
    return next(str(n) for n in range(1000) if partitioning.partition_of(str(n), partitions) == partition)


def drained(servers: list[Broker]) -> list[list[str]]:
    """The bodies that each partition holds, in order."""
    found: list[list[str]] = []
    for server in servers:
        with BlockingBroker(server.address) as broker:
            here: list[str] = []
            while runs := broker.call(calls.receive(KEYS, most=1000, lock_ms=0)).runs:
                here += [stored_message.decode(one).body.decode() for run in runs for one in run.messages]
            found.append(here)
    return found


async def test_keyed_messages_go_to_their_partition_in_order(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS)
    sent = [Message(body=b"%d" % n, partition_key=f"key-{n % 7}") for n in range(500)]
    numbers = await asyncio.gather(*(sender.send(m) for m in sent))
    for message, number in zip(sent, numbers, strict=True):
        assert number is not None
        assert split_sequence_number(number)[0] == partitioning.partition_of(message.partition_key or "", PARTITIONS)
    for here in drained(servers):
        for key in range(7):
            of_key = [int(body) for body in here if int(body) % 7 == key]
            assert of_key == sorted(of_key)
    await sender.close()


async def test_where_there_is_one_partition_a_batch_may_have_any_keys(clients: list[BrokerClient]) -> None:
    sender = QueueSender(clients[:1], KEYS)
    assert await sender.send_batch([Message(body=b"a", partition_key="a"), Message(body=b"b", partition_key="b")])
    await sender.close()


async def test_keyless_messages_spread_and_pass_over_a_partition_that_is_down(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS, operation_timeout_s=20)
    servers[2].kill()
    async with asyncio.timeout(15):
        await asyncio.gather(*(sender.send(Message(body=b"%d" % n)) for n in range(400)))
        await asyncio.gather(*(sender.send(Message(body=b"%d" % n)) for n in range(400, 800)))
    await sender.close()
    servers[2].start()
    found = drained(servers)
    assert sorted(int(body) for here in found for body in here) == list(range(800))
    assert min(len(found[i]) for i in (0, 1, 3)) > 150


async def test_a_keyed_message_to_a_partition_that_stays_down_fails_in_time(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS, operation_timeout_s=0.5)
    key = key_of(1, PARTITIONS)
    servers[1].kill()
    async with asyncio.timeout(10):
        with pytest.raises(BrokerUnavailable, match=r"partition 1 .* is down"):
            await sender.send(Message(body=b"x", partition_key=key))
    await sender.close()


async def test_brokers_killed_in_the_middle_lose_and_double_nothing(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS, operation_timeout_s=60)
    count, in_flight = 12_000, asyncio.Semaphore(500)

    async def one(n: int) -> None:
        async with in_flight:
            await sender.send(Message(body=b"%d" % n, partition_key=str(n) if n % 5 else None))

    async def killer() -> None:
        for server in (servers[0], servers[3], servers[0]):
            await asyncio.sleep(0.15)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    await asyncio.gather(killer(), *(one(n) for n in range(count)))
    await sender.close()
    found = Counter(int(body) for here in drained(servers) for body in here)
    assert len(found) == count
    assert set(found.values()) == {1}


async def test_a_full_partition_refuses_keyed_messages_and_keyless_ones_go_elsewhere(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS)
    with BlockingBroker(servers[0].address) as broker:
        broker.raw(("CONFIG", "SET", "maxmemory", "1"))
    key = key_of(0, PARTITIONS)
    with pytest.raises(QueueFull):
        await sender.send(Message(body=b"x", partition_key=key))
    numbers = await asyncio.gather(*(sender.send(Message(body=b"x")) for _ in range(1000)))
    assert {split_sequence_number(number)[0] for number in numbers if number} == {1, 2, 3}
    await sender.close()


async def test_a_batch_is_one_partitions_and_two_keys_are_refused(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS)
    first = await sender.send_batch([Message(body=b"%d" % n, partition_key="a") for n in range(50)])
    assert first is not None
    assert [len(here) for here in drained(servers)].count(50) == 1
    with pytest.raises(BatchKeyConflict):
        await sender.send_batch([Message(body=b"", partition_key="a"), Message(body=b"", partition_key="b")])
    await sender.close()


@contextlib.asynccontextmanager
async def swallowing_proxy(server: Broker) -> AsyncIterator[tuple[BrokerAddress, asyncio.Event]]:
    """Forwards to a broker; once, when told to, drops the connection instead of handing a reply back."""
    swallow = asyncio.Event()
    open_writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_broker = await asyncio.open_connection(server.address.host, server.address.port)
        open_writers.extend((writer, to_broker))

        async def back() -> None:
            while data := await there.read(65536):
                if swallow.is_set():
                    swallow.clear()
                    break
                writer.write(data)
            writer.close()

        task = asyncio.create_task(back())
        while data := await reader.read(65536):
            to_broker.write(data)
        to_broker.close()
        await task

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield BrokerAddress("127.0.0.1", proxy.sockets[0].getsockname()[1]), swallow
    finally:
        proxy.close()
        for writer in open_writers:
            writer.close()
        await asyncio.sleep(0.05)


async def test_a_send_whose_reply_was_lost_before_the_partition_filled_up_is_stored_once(servers: list[Broker]) -> None:
    async with swallowing_proxy(servers[0]) as (address, swallow):
        clients = [BrokerClient(address), BrokerClient(servers[1].address)]
        sender = QueueSender(clients, KEYS, operation_timeout_s=30)
        await sender.send(Message(body=b"first", partition_key=key_of(0, 2)))
        swallow.set()
        sending = asyncio.create_task(sender.send(Message(body=b"once", partition_key=key_of(0, 2))))
        with BlockingBroker(servers[0].address) as broker:
            while broker.call(calls.totals(KEYS)).messages < 2:  # noqa: ASYNC110 -- another process counts
                await asyncio.sleep(0.001)
            broker.raw(("CONFIG", "SET", "maxmemory", "1"))
            await asyncio.sleep(0.5)
            assert not sending.done()
            broker.raw(("CONFIG", "SET", "maxmemory", "0"))
        assert await sending is None
        assert [len(here) for here in drained(servers)] == [2, 0, 0, 0]
        await sender.close()
        for client in clients:
            await client.close()


async def test_a_broker_that_hangs_holds_only_its_own_messages_up(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS, operation_timeout_s=1.5)
    await asyncio.gather(*(sender.send(Message(body=b"x")) for _ in range(8)))
    servers[1].pause()
    keyed = asyncio.create_task(sender.send(Message(body=b"x", partition_key=key_of(1, PARTITIONS))))
    await asyncio.sleep(1.1)
    async with asyncio.timeout(1):
        await asyncio.gather(*(sender.send(Message(body=b"x")) for _ in range(100)))
    with pytest.raises(BrokerUnavailable, match=r"partition 1 .* is down") as refusal:
        await keyed
    assert refusal.value.outcome_unknown
    servers[1].resume()
    await sender.close()


async def test_a_message_whose_sender_has_left_before_it_went_is_not_sent(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS)
    servers[0].pause()
    key = key_of(0, PARTITIONS)
    first = asyncio.create_task(sender.send(Message(body=b"first", partition_key=key)))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(sender.send(Message(body=b"second", partition_key=key)))
    await asyncio.sleep(0.05)
    second.cancel()
    servers[0].resume()
    await first
    await sender.send(Message(body=b"third", partition_key=key))
    assert drained(servers)[0] == ["first", "third"]
    await sender.close()
    with pytest.raises(BrokerUnavailable, match="closed"):
        await sender.send(Message(body=b"late"))


# ---- duplicates, schedules, sessions


def configure(servers: list[Broker], **settings: Any) -> None:
    for partition, server in enumerate(servers):
        with BlockingBroker(server.address) as broker:
            told = BrokerSettings(**settings)
            broker.call(calls.configure(KEYS, partition=partition, partitions=len(servers), settings=told))


def totals_of(server: Broker) -> Totals:
    with BlockingBroker(server.address) as broker:
        return broker.call(calls.totals(KEYS))


async def test_a_duplicate_is_accepted_and_dropped(servers: list[Broker], clients: list[BrokerClient]) -> None:
    configure(servers, dedupe_ms=600_000)
    sender = QueueSender(clients, KEYS, requires_duplicate_detection=True)
    assert await sender.send(Message(body=b"first", message_id="id")) is not None
    assert await sender.send(Message(body=b"second", message_id="id")) is None
    assert await sender.send(Message(body=b"another key", message_id="id", partition_key="k")) is not None
    assert await sender.send(Message(body=b"no id")) is not None
    assert await sender.send(Message(body=b"no id")) is not None
    await sender.close()
    assert sorted(body for here in drained(servers) for body in here) == ["another key", "first", "no id", "no id"]


async def test_each_of_many_that_travel_together_has_its_own_number_though_some_are_duplicates(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    configure(servers, dedupe_ms=600_000)
    sender = QueueSender(clients, KEYS, requires_duplicate_detection=True)
    ids = ["a", "b", "a", None, "c", "b", "d", "a"]
    sent = [Message(body=b"%d" % n, message_id=one, partition_key="k") for n, one in enumerate(ids)]
    numbers = await asyncio.gather(
        sender.send(sent[0]),
        sender.send_batch(sent[1:4]),
        sender.send(sent[4]),
        sender.send_batch([sent[2], sent[5]]),
        sender.send_batch([sent[5], sent[6], sent[7]]),
    )
    again = await sender.schedule([sent[0], *sent[3:5]], 2_000_000_000_000)
    await sender.close()
    partition = partitioning.partition_of("k", PARTITIONS)
    first, *_ = locals_ = [split_sequence_number(number)[1] if number else None for number in numbers]
    assert first is not None
    assert locals_ == [first, first + 1, first + 3, None, first + 4]
    assert again == [None, sequence_number(partition, first + 5), None]
    with BlockingBroker(servers[partition].address) as broker:
        here = broker.call(calls.receive(KEYS, most=100, lock_ms=0)).runs
    stored = {run.first + n: stored_message.decode(one).body for run in here for n, one in enumerate(run.messages)}
    assert stored == {first: b"0", first + 1: b"1", first + 2: b"3", first + 3: b"4", first + 4: b"6"}


async def test_a_repeat_of_a_send_whose_reply_was_lost_is_no_duplicate_of_itself(servers: list[Broker]) -> None:
    configure(servers[:1], dedupe_ms=600_000)
    async with swallowing_proxy(servers[0]) as (address, swallow):
        client = BrokerClient(address)
        sender = QueueSender([client], KEYS, operation_timeout_s=20, requires_duplicate_detection=True)
        await sender.send(Message(body=b"first", message_id="0"))
        swallow.set()
        assert await sender.send(Message(body=b"once", message_id="1")) is None
        assert drained(servers)[0] == ["first", "once"]
        await sender.close()
        await client.close()


async def test_scheduled_messages_have_numbers_that_cancel_them(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS)
    at_ms = totals_of(servers[0]).now_ms + 3_600_000
    numbers = [
        number
        for key in ("a", "b", "c")
        for number in await sender.schedule([Message(body=b"%d" % n, partition_key=key) for n in range(3)], at_ms)
        if number is not None
    ]
    assert len(numbers) == 9
    assert sum(totals_of(server).scheduled for server in servers) == 9
    await sender.cancel_scheduled(numbers[1:])
    assert sum(totals_of(server).scheduled for server in servers) == 1
    with pytest.raises(MessageNotFound):
        await sender.cancel_scheduled(numbers[:2])
    assert sum(totals_of(server).scheduled for server in servers) == 1, "all in one partition, or none"
    with pytest.raises(MessageNotFound, match="partition 9"):
        await sender.cancel_scheduled([sequence_number(9, 1)])
    with pytest.raises(InvalidMessage):
        await sender.schedule([Message(body=b"")], 0)
    await sender.close()


async def test_a_scheduled_message_is_there_when_its_time_has_come(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS)
    at_ms = totals_of(servers[0]).now_ms + 300
    await sender.schedule([Message(body=b"later", partition_key=key_of(0, PARTITIONS))], at_ms)
    await sender.close()
    assert (totals_of(servers[0]).ready, totals_of(servers[0]).scheduled) == (0, 1)
    await asyncio.sleep(0.4)
    assert drained(servers)[0] == ["later"]


async def test_messages_of_many_sessions_sent_at_once_keep_the_order_of_each(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    configure(servers, sessions=True)
    sender = QueueSender(clients, KEYS, requires_session=True)
    count = 300
    sent = [Message(body=b"%d" % n, session_id=f"session {n % 150}") for n in range(4 * count)]
    numbers = await asyncio.gather(*(sender.send(message) for message in sent))
    assert None not in numbers
    assert len(set(numbers)) == 4 * count
    with pytest.raises(SessionRequired):
        await sender.send(Message(body=b"without"))
    await sender.close()
    by_session: dict[str, list[int]] = {}
    for server in servers:
        with BlockingBroker(server.address) as broker:
            runs = broker.call(calls.peek(KEYS, most=1000, bytes_most=1 << 24)).runs
        for message in (stored_message.decode(one) for run in runs for one in run.messages):
            by_session.setdefault(message.session_id or "", []).append(int(message.body))
    assert by_session == {f"session {n}": list(range(n, 4 * count, 150)) for n in range(150)}


async def test_sessions_survive_a_broker_that_is_killed_once_each_and_in_order(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    configure(servers[:1], sessions=True)
    sender = QueueSender(clients[:1], KEYS, requires_session=True, operation_timeout_s=60)

    async def one_session(name: str) -> None:
        for n in range(40):
            await sender.send(Message(body=b"%d" % n, session_id=name))

    async def killer() -> None:
        for _ in range(2):
            await asyncio.sleep(0.1)
            await asyncio.to_thread(servers[0].kill)
            await asyncio.to_thread(servers[0].start)

    await asyncio.gather(killer(), *(one_session(f"s{n}") for n in range(80)))
    await sender.close()
    found: dict[str, list[int]] = {}
    with BlockingBroker(servers[0].address) as broker:
        at = 1
        while at:
            peeked = broker.call(calls.peek(KEYS, from_sequence=at, most=1000, bytes_most=1 << 24))
            for message in (stored_message.decode(one) for run in peeked.runs for one in run.messages):
                found.setdefault(message.session_id or "", []).append(int(message.body))
            at = peeked.next
    assert found == {f"s{n}": list(range(40)) for n in range(80)}


# ---- without a task of one's own


def one(body: bytes = b"x", **fields: Any) -> Storable:
    return storable(Message(body=body, **fields))


async def test_what_is_submitted_is_told_by_a_future(servers: list[Broker], clients: list[BrokerClient]) -> None:
    sender = QueueSender(clients, KEYS)
    futures = [sender.submit([one(b"%d" % n, partition_key="k")]) for n in range(300)]
    numbers = [await future for future in futures]
    assert [number.first for number in numbers] == list(range(1, 301))
    assert {number.partition for number in numbers} == {partitioning.partition_of("k", len(clients))}
    assert drained(servers)[numbers[0].partition] == [str(n) for n in range(300)]
    await sender.close()


async def test_what_cannot_be_submitted_is_refused_at_once(clients: list[BrokerClient]) -> None:
    sender = QueueSender(clients, KEYS)
    with pytest.raises(InvalidMessage):
        sender.submit([])
    with pytest.raises(BatchKeyConflict):
        sender.submit([one(partition_key="a"), one(partition_key="b")])
    await sender.close()
    with pytest.raises(BrokerUnavailable):
        sender.submit([one()])


async def test_a_submitted_message_waits_for_as_long_as_it_is_told(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    sender = QueueSender(clients, KEYS)
    servers[0].kill()
    began = asyncio.get_running_loop().time()
    with pytest.raises(BrokerUnavailable, match=r"partition 0 .* is down"):
        await sender.submit([one(partition_key=key_of(0, len(clients)))], within_s=0.3)
    assert asyncio.get_running_loop().time() - began < 5
    await sender.close()


async def test_an_empty_key_is_a_key_and_an_empty_session_a_session(
    servers: list[Broker], clients: list[BrokerClient]
) -> None:
    at = partitioning.partition_of("", len(clients))
    sender = QueueSender(clients, QueueKeys("another"))
    assert {(await sender.submit([one(partition_key="")])).partition for _ in range(4)} == {at}
    await sender.close()
    configure(servers, sessions=True)
    sender = QueueSender(clients, KEYS, requires_session=True)
    futures = [sender.submit([one(b"%d" % n + bytes(2000), session_id="")]) for n in range(50)]
    assert {(await future).partition for future in futures} == {at}
    accepted = (await clients[at].call(calls.accept_session(KEYS, ""))).session
    received = await clients[at].call(calls.receive(KEYS, most=100, session=accepted))
    assert sum(len(run.messages) for run in received.runs) == 50
    await sender.close()


async def test_a_batch_of_thousands_goes_in_one_call(servers: list[Broker], clients: list[BrokerClient]) -> None:
    sender = QueueSender(clients, KEYS)
    numbers = await sender.submit([one(b"%d" % n) for n in range(limits.BATCHED_MESSAGES_MAX)])
    assert len(drained(servers)[numbers.partition]) == limits.BATCHED_MESSAGES_MAX
    await sender.close()
