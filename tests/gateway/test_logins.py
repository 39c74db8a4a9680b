"""Passwords: read once, read again when a broker no longer takes them, and never asked for too often."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker import calls
from partitionedqueue.model.errors import LoginRefused
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.failures import NoCredentials, QueueGone
from partitionedqueue_gateway.entities.queue import Queue


class Passwords:
    """A source of passwords that a test changes, and that counts how often it is asked."""

    def __init__(self) -> None:
        self.password_now: str | None = None
        self.asked = 0

    async def feed(self, catalog: Catalog) -> None:
        raise AssertionError("nobody feeds here")

    async def password(self, queue: Queue) -> str | None:
        self.asked += 1
        await asyncio.sleep(0.01)
        if self.password_now is None:
            raise NoCredentials(f"Secret of {queue.name} is not there yet")
        return self.password_now


def set_password(broker: Broker, password: str) -> None:
    """As the operator does when it makes users; connections that stand go on."""
    with closing(broker.connect()) as connection:
        connection.execute_command(  # type: ignore[no-untyped-call]  # redis-py's
            "ACL", "SETUSER", "gateway", "on", "resetpass", f">{password}", "~pq:*", "+@all"
        )


def drop_connections(broker: Broker) -> None:
    with closing(broker.connect()) as connection:
        connection.execute_command("CLIENT", "KILL", "USER", "gateway")  # type: ignore[no-untyped-call]  # redis-py's


def queue_over(broker: Broker, *, uid: str = "1") -> Queue:
    return Queue(spec=QueueSpec(name="letters"), uid=uid, brokers=(broker.address,))


async def test_many_who_ask_at_once_read_one_password(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        set_password(broker, "sesame")
        catalog, source, queue = Catalog(), Passwords(), queue_over(broker)
        source.password_now = "sesame"
        catalog.put(queue)
        async with Brokers(catalog, source) as brokers:
            await asyncio.gather(*(brokers.ask(queue, 0, calls.totals(queue.keys)) for _ in range(50)))
        assert source.asked == 1


async def test_a_password_that_was_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PASSWORD_AGAIN_S_MIN", 0.0)
    with running_broker(tmp_path) as broker:
        set_password(broker, "sesame")
        catalog, source, queue = Catalog(), Passwords(), queue_over(broker)
        source.password_now = "sesame"
        catalog.put(queue)
        async with Brokers(catalog, source) as brokers:
            await brokers.ask(queue, 0, calls.totals(queue.keys))
            set_password(broker, "rosebud")
            source.password_now = "rosebud"
            await brokers.ask(queue, 0, calls.totals(queue.keys))  # over the connection that stands
            drop_connections(broker)
            await asyncio.gather(*(brokers.ask(queue, 0, calls.totals(queue.keys)) for _ in range(20)))
        assert source.asked == 2


async def test_a_password_that_stays_wrong_is_not_read_all_the_time(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        set_password(broker, "sesame")
        catalog, source, queue = Catalog(), Passwords(), queue_over(broker)
        source.password_now = "wrong"
        catalog.put(queue)
        async with Brokers(catalog, source) as brokers:
            for _ in range(10):
                with pytest.raises(LoginRefused):
                    await brokers.ask(queue, 0, calls.totals(queue.keys))
        assert source.asked == 1


async def test_a_secret_that_is_not_there_yet_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_broker(tmp_path) as broker:
        set_password(broker, "sesame")
        catalog, source, queue = Catalog(), Passwords(), queue_over(broker)
        catalog.put(queue)
        async with Brokers(catalog, source) as brokers:
            for _ in range(10):
                with pytest.raises(NoCredentials, match="is not there yet"):
                    await brokers.ask(queue, 0, calls.totals(queue.keys))
            assert source.asked == 1
            source.password_now = "sesame"
            monkeypatch.setattr(limits, "PASSWORD_AGAIN_S_MIN", 0.0)
            await brokers.ask(queue, 0, calls.totals(queue.keys))


async def test_a_queue_that_has_gone_is_not_asked_and_keeps_no_connection(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        set_password(broker, "sesame")
        catalog, source, queue = Catalog(), Passwords(), queue_over(broker)
        source.password_now = "sesame"
        catalog.put(queue)
        async with Brokers(catalog, source) as brokers:
            await brokers.ask(queue, 0, calls.totals(queue.keys))
            catalog.put(queue_over(broker, uid="2"))  # another queue of the same name
            with pytest.raises(QueueGone):
                await brokers.ask(queue, 0, calls.totals(queue.keys))
            await asyncio.sleep(0.05)
            with closing(broker.connect()) as connection:
                assert [one["user"] for one in connection.client_list()] == ["default"]
