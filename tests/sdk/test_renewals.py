"""Locks are renewed as often as anybody likes: Azure's own partitioned queues were reported to fail after 20 minutes.

Twelve hours of renewals in half a minute: the brokers' clock is the test's, and is moved between two renewals by as
much as a client would have waited. All else is real: the brokers, the gateway, and Microsoft's SDK.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from azure.servicebus import ServiceBusMessage

from harness.clock import START_MS, Clock, clocked_library
from harness.redis_servers import running_broker
from partitionedqueue.broker.blocking import BlockingBroker
from sdk.gateways import PARTITIONS, Bench, bench
from sdk.python.place import own, receive, receive_one

LOCK_S = 60
STEP_S = 50
HOURS = 12
MESSAGES = 3  # in three partitions


class Clocks:
    """Those of all partitions, which show the same."""

    def __init__(self, clocks: list[Clock]) -> None:
        self._clocks = clocks

    def advance(self, seconds: int) -> None:
        for clock in self._clocks:
            clock.advance(seconds * 1000)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clocks[0].now_ms / 1000, UTC)


@pytest.fixture
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, Clocks]]:
    folder = tmp_path_factory.mktemp("renewals")
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(running_broker(folder / f"broker-{n:02}", fsync="no", library=clocked_library))
            for n in range(PARTITIONS)
        ]
        clients = [stack.enter_context(BlockingBroker(server.address)) for server in brokers]
        clocks = Clocks([Clock(client, START_MS) for client in clients])
        found = stack.enter_context(bench(brokers, folder))
        found.make("orders", lockDuration=f"PT{LOCK_S}S")
        found.make("carts", lockDuration=f"PT{LOCK_S}S", requiresSession=True)
        found.start_gateway()
        yield found, clocks


@pytest.mark.timeout(400)
def test_twelve_hours_of_renewals_of_message_locks_and_of_a_session_lock_none_fails(
    clocked: tuple[Bench, Clocks],
) -> None:
    queues, clocks = clocked
    session = own("session")
    with queues.client() as client:
        with client.get_queue_sender("orders") as sender:
            for number in range(MESSAGES):
                sender.send_messages(ServiceBusMessage(f"{number}"))
        with client.get_queue_sender("carts") as sender:
            sender.send_messages(ServiceBusMessage("held", session_id=session))
        with (
            client.get_queue_receiver("orders") as orders,
            client.get_queue_receiver("carts", session_id=session) as cart,
        ):
            messages = receive(orders, MESSAGES)
            held = receive_one(cart)
            for _ in range(HOURS * 3600 // STEP_S):
                clocks.advance(STEP_S)
                for message in messages:
                    until = orders.renew_message_lock(message)
                    assert (until - clocks.now).total_seconds() == pytest.approx(LOCK_S, abs=1)
                until = cart.session.renew_lock()
                assert (until - clocks.now).total_seconds() == pytest.approx(LOCK_S, abs=1)
            for message in messages:
                orders.complete_message(message)
            cart.complete_message(held)
            assert not orders.peek_messages(1, sequence_number=1)
            assert not cart.peek_messages(1, sequence_number=1)
