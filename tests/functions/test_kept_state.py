"""What a command leaves to the next one in Lua is used only where it is what is stored."""

from harness.clock import Clock
from harness.deliveries import bodies, configure, numbers, receive, send, settlements
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys

COMMANDS_KEPT = 512


def dumped(broker: BlockingBroker) -> list[tuple[bytes, bytes]]:
    names = broker.raw(("KEYS", "pq:*"))[0]
    return list(zip(names, broker.raw(*(("DUMP", name) for name in names)), strict=True))


def restore(broker: BlockingBroker, data: list[tuple[bytes, bytes]]) -> None:
    broker.raw(("FLUSHALL",), *(("RESTORE", name, 0, dump) for name, dump in data))


def test_an_emptied_broker_has_forgotten_what_was_configured(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, quota_bytes=1_000_000)
    broker.raw(("FLUSHALL",))
    assert broker.call(calls.totals(keys)).quota == 0
    configure(broker, keys, quota_bytes=2_000_000)
    broker.raw(("FLUSHALL",))
    configure(broker, keys)
    assert broker.call(calls.totals(keys)).quota == 0


def test_data_that_was_put_back_is_read_anew(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    send(broker, keys, 3)
    before = dumped(broker)
    held = receive(broker, keys, 2)
    assert broker.call(calls.complete(keys, settlements(held))) == []
    restore(broker, before)
    assert numbers(receive(broker, keys, 3)) == [1, 2, 3]


def test_a_lock_is_found_however_many_commands_ago_it_was_given(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 1)
    held = receive(broker, keys, 1)
    for _ in range(COMMANDS_KEPT + 1):
        broker.call(calls.send(keys, bodies(1)))
    assert broker.call(calls.complete(keys, settlements(held))) == []
    assert broker.call(calls.totals(keys)).messages == COMMANDS_KEPT + 1


def test_queues_of_one_broker_do_not_take_each_others_state(broker: BlockingBroker, keys: QueueKeys) -> None:
    other = QueueKeys("hotels")
    configure(broker, keys, lock_ms=5_000)
    configure(broker, other, lock_ms=9_000)
    for queue, lock_ms in ((keys, 5_000), (other, 9_000), (keys, 5_000), (keys, 5_000)):
        send(broker, queue, 1)
        received = receive(broker, queue, 1, lock_ms=-1)
        assert received.locked_until_ms - received.now_ms == lock_ms
        assert broker.call(calls.complete(queue, settlements(received))) == []
    assert broker.call(calls.totals(keys)).messages == broker.call(calls.totals(other)).messages == 0
