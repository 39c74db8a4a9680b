"""The two clients against real brokers that are killed, hang, and come back."""

import asyncio
import signal
import socket
import threading
from pathlib import Path

import pytest

from harness.patience import eventually
from harness.redis_servers import Broker, free_port, running_broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.library import library_layout, library_text, library_version
from partitionedqueue.broker.logins import Credentials, fixed
from partitionedqueue.model import limits
from partitionedqueue.model.errors import BrokerFault, BrokerTooNew, BrokerUnavailable, LoginRefused
from partitionedqueue.model.placement import BrokerAddress

KEYS = QueueKeys("q")


def test_blocking_says_that_a_broker_cannot_be_reached() -> None:
    with (
        BlockingBroker(BrokerAddress("127.0.0.1", free_port())) as broker,
        pytest.raises(BrokerUnavailable, match="cannot be reached") as refusal,
    ):
        broker.call(calls.totals(KEYS))
    assert not refusal.value.outcome_unknown


def test_blocking_connects_anew_after_a_restart(server: Broker) -> None:
    with BlockingBroker(server.address) as broker:
        broker.call(calls.send(KEYS, [b"kept"]))
        server.kill()
        server.start()
        assert broker.call(calls.totals(KEYS)).messages == 1


def test_blocking_does_not_repeat_what_could_happen_twice(server: Broker) -> None:
    with BlockingBroker(server.address) as broker:
        broker.call(calls.totals(KEYS))
        server.kill()
        with pytest.raises(BrokerUnavailable) as refusal:
            broker.call(calls.send(KEYS, [b"x"]))
        assert refusal.value.outcome_unknown


def test_blocking_waits_for_a_broker_that_is_away(server: Broker) -> None:
    with BlockingBroker(server.address, patience_s=20) as broker:
        broker.call(calls.send(KEYS, [b"kept"]))
        server.kill()
        back = threading.Timer(0.4, server.start)
        back.start()
        assert broker.call(calls.totals(KEYS)).messages == 1
        back.join()


def test_blocking_gives_up_on_a_broker_that_hangs(server: Broker) -> None:
    with BlockingBroker(server.address, timeout_s=0.2) as broker:
        broker.call(calls.totals(KEYS))
        server.pause()
        with pytest.raises(BrokerUnavailable, match=r"did not answer within 0\.2 s"):
            broker.call(calls.receive(KEYS, most=1, lock_ms=0))
        server.resume()

        def answers() -> bool:
            try:
                return broker.call(calls.totals(KEYS)).messages == 0
            except BrokerUnavailable:  # a busy machine may be as slow as one that hangs
                return False

        eventually(answers, "it does not come back", 20)


def test_load_library_loads_what_is_missing(server: Broker) -> None:
    with BlockingBroker(server.address) as broker:
        broker.raw(("FUNCTION", "FLUSH"))
        with pytest.raises(BrokerUnavailable, match="no library"):
            broker.call(calls.about())
        broker.load_library()
        assert broker.call(calls.about()).layout == library_layout()


def another_library(version: str, layout: int) -> str:
    """The library as if it were of another version."""
    text = library_text().replace(f"LIBRARY_VERSION = '{library_version()}'", f"LIBRARY_VERSION = '{version}'")
    return text.replace(f"LAYOUT_VERSION = {library_layout()}", f"LAYOUT_VERSION = {layout}")


@pytest.mark.parametrize("version", ["0.1.9", "0.0.100", "none"])
async def test_load_library_replaces_an_older_one(server: Broker, version: str) -> None:
    client = BrokerClient(server.address)
    with BlockingBroker(server.address) as broker:
        for load in (client.load_library, lambda: asyncio.to_thread(broker.load_library)):
            broker.raw(("FUNCTION", "LOAD", "REPLACE", another_library(version, 1)))
            await load()
            about = broker.call(calls.about())
            assert (about.library, about.layout) == (library_version(), library_layout())
    await client.close()


@pytest.mark.parametrize("version", ["0.10.0", "1.0.0", "12.0.1"])
async def test_load_library_leaves_a_newer_one_of_the_same_layout_and_refuses_one_of_another(
    server: Broker, version: str
) -> None:
    client = BrokerClient(server.address)
    with BlockingBroker(server.address) as broker:
        broker.raw(("FUNCTION", "LOAD", "REPLACE", another_library(version, library_layout())))
        await client.load_library()
        broker.load_library()
        assert broker.call(calls.about()).library == version
        broker.raw(("FUNCTION", "LOAD", "REPLACE", another_library(version, library_layout() + 1)))
        with pytest.raises(BrokerTooNew, match="install a newer one"):
            await client.load_library()
        with pytest.raises(BrokerTooNew, match=version):
            broker.load_library()
        assert broker.call(calls.about()).library == version
    await client.close()


async def test_many_calls_in_flight_are_answered_each_with_its_own(server: Broker) -> None:
    client = BrokerClient(server.address)
    results = await asyncio.gather(*(client.call(calls.send(KEYS, [b"x"])) for _ in range(6000)))
    assert sorted(r.first for r in results) == list(range(1, 6001))
    await client.close()


async def test_a_call_waits_for_a_broker_that_is_away(server: Broker) -> None:
    client = BrokerClient(server.address)
    await client.call(calls.totals(KEYS))
    server.kill()
    waiting = asyncio.create_task(client.call(calls.totals(KEYS), patience_s=20))
    await asyncio.sleep(0.2)
    await asyncio.to_thread(server.start)
    assert (await waiting).messages == 0
    await client.close()


async def test_a_broker_that_hangs_fails_all_calls_in_flight(server: Broker) -> None:
    client = BrokerClient(server.address, timeout_s=0.3)
    await client.call(calls.totals(KEYS))
    server.pause()
    outcomes = await asyncio.gather(*(client.call(calls.send(KEYS, [b"x"])) for _ in range(5)), return_exceptions=True)
    server.resume()
    assert all(isinstance(o, BrokerUnavailable) and o.outcome_unknown for o in outcomes)
    assert (await client.call(calls.about())).layout == library_layout()
    await client.close()


async def test_a_refusal_fails_its_own_call_only(server: Broker) -> None:
    client = BrokerClient(server.address)
    bad = asyncio.create_task(client.call(calls.receive(KEYS, most=0, lock_ms=0)))
    good = asyncio.create_task(client.call(calls.totals(KEYS)))
    with pytest.raises(BrokerFault):
        await bad
    assert (await good).messages == 0
    await client.close()


async def test_a_wrong_password_is_said(server: Broker) -> None:
    with BlockingBroker(server.address) as broker:
        broker.raw(("CONFIG", "SET", "requirepass", "secret"))
        with BlockingBroker(server.address, password="wrong") as wrong, pytest.raises(BrokerUnavailable):
            wrong.call(calls.about())
        client = BrokerClient(server.address, login=fixed("wrong"))
        with pytest.raises(BrokerUnavailable):
            await client.call(calls.about())
        await client.close()
        right = BrokerClient(server.address, login=fixed("secret"))
        assert (await right.call(calls.about())).layout == library_layout()
        await right.close()


async def test_a_client_outlives_a_change_of_its_password(server: Broker) -> None:
    asked: list[Credentials | None] = []

    async def login(refused: Credentials | None) -> Credentials:
        asked.append(refused)
        return Credentials("default", "newer" if refused else "older")

    with BlockingBroker(server.address) as broker:
        broker.raw(("CONFIG", "SET", "requirepass", "older"), ("AUTH", "default", "older"))
        client = BrokerClient(server.address, login=login)
        await client.call(calls.about())
        broker.raw(("CONFIG", "SET", "requirepass", "newer"), ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
        while client.connected:  # noqa: ASYNC110 -- it says so to nobody
            await asyncio.sleep(0.01)
        await client.call(calls.about())
        assert asked == [None, None, Credentials("default", "older")]
        await client.close()


async def test_what_a_login_raises_is_what_its_calls_get(server: Broker) -> None:
    async def login(_refused: Credentials | None) -> Credentials:
        raise LoginRefused("the password's Secret is not there")

    client = BrokerClient(server.address, login=login)
    with pytest.raises(LoginRefused, match="Secret is not there"):
        await client.call(calls.about())
    await client.close()


def test_an_interrupted_blocking_call_does_not_shift_the_replies(server: Broker) -> None:
    class Interrupt(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupt

    with BlockingBroker(server.address) as broker:
        broker.call(calls.send(KEYS, [b"x"]))
        server.pause()
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Interrupt):
            broker.call(calls.receive(KEYS, most=1, lock_ms=1000))
        signal.signal(signal.SIGALRM, before)
        server.resume()
        assert broker.raw(("PING",)) == [b"PONG"]


async def test_a_cancelled_call_does_not_shift_the_replies_and_keeps_its_place(server: Broker) -> None:
    client = BrokerClient(server.address)
    await client.call(calls.totals(KEYS))
    server.pause()
    leaving = [asyncio.create_task(client.call(calls.totals(KEYS))) for _ in range(limits.CALLS_IN_FLIGHT_MAX)]
    await asyncio.sleep(0.05)
    for task in leaving:
        task.cancel()
    waiting = asyncio.create_task(client.call(calls.about()))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    server.resume()
    assert (await waiting).layout == library_layout()
    await client.close()


async def test_calls_that_wait_for_one_connection_fail_together() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = BrokerAddress("127.0.0.1", deaf.getsockname()[1])
        client = BrokerClient(address, timeout_s=0.5)
        async with asyncio.timeout(3):
            outcomes = await asyncio.gather(*(client.call(calls.about()) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(outcome, BrokerUnavailable) for outcome in outcomes)
        await client.close()
        with pytest.raises(BrokerUnavailable, match="closed"):
            await client.call(calls.about())


def joined_to_itself() -> tuple[socket.socket, BrokerAddress]:
    """A port on which nobody listens, and whose next connection comes from that very port."""
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.connect(one.getsockname())
    return one, BrokerAddress(*one.getsockname())


async def test_a_connection_to_itself_is_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel does this by chance, about once in 28,000 attempts; here it is made to.
    made, address = joined_to_itself()
    monkeypatch.setattr(socket, "create_connection", lambda *_: made)
    with BlockingBroker(address) as broker, pytest.raises(BrokerUnavailable, match="nobody listens") as refusal:
        broker.call(calls.about())
    assert not refusal.value.outcome_unknown
    monkeypatch.undo()

    made, address = joined_to_itself()
    made.setblocking(False)
    loop = asyncio.get_running_loop()
    real = loop.create_connection
    monkeypatch.setattr(loop, "create_connection", lambda factory, *_: real(factory, sock=made))
    client = BrokerClient(address)
    with pytest.raises(BrokerUnavailable, match="nobody listens") as refusal:
        await client.call(calls.about())
    assert not refusal.value.outcome_unknown
    await client.close()


async def test_a_full_broker_takes_a_library_all_the_same(tmp_path: Path) -> None:
    with running_broker(tmp_path) as server, BlockingBroker(server.address) as blocking:
        client = BrokerClient(server.address)
        for loads in (client.load_library, lambda: asyncio.to_thread(blocking.load_library)):
            blocking.raw(("FUNCTION", "FLUSH"), ("CONFIG", "SET", "maxmemory", "1mb"))
            await loads()
            assert (await client.call(calls.about())).library == library_version()
            assert blocking.raw(("CONFIG", "GET", "maxmemory")) == [[b"maxmemory", b"1048576"]]
        await client.close()
