import struct

from harness.clock import Clock
from harness.deliveries import accept, configure, locked_as, receive, send, send_one, settlements, stored
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys


def states(broker: BlockingBroker, keys: QueueKeys, first: int = 1, last: int = 2**47) -> str:
    """A letter for each message, `.` where nobody says anything of it."""
    found: dict[int, str] = {}
    while first:
        reply = broker.call(calls.states(keys, first, last))
        for stretch in reply.stretches:
            found |= {stretch.first + i: chr(letter) for i, letter in enumerate(stretch.states)}
        first = reply.next
    return "".join(found.get(number, ".") for number in range(1, max(found, default=0) + 1))


def deliveries(broker: BlockingBroker, keys: QueueKeys) -> list[int]:
    (stretch,) = broker.call(calls.states(keys, 1, 256)).stretches
    return [times for (times,) in struct.iter_unpack("<H", stretch.deliveries)]


def test_every_state_has_its_letter(broker: BlockingBroker, keys: QueueKeys, clock: Clock) -> None:
    assert broker.call(calls.states(keys, 1, 10)).stretches == []
    send(broker, keys, 6)
    broker.call(calls.send(keys, [stored(b"7", scheduled_enqueue_time_ms=clock.now_ms + 1000)]))
    assert states(broker, keys) == "aaaaaas"
    received = receive(broker, keys, 5)
    broker.call(calls.complete(keys, locked_as(received, [1])))
    broker.call(calls.defer(keys, locked_as(received, [2])))
    broker.call(calls.abandon(keys, locked_as(received, [4])))
    assert states(broker, keys) == "-dlalas"
    assert deliveries(broker, keys) == [0, 1, 0, 1, 0, 0, 0]
    broker.call(calls.claim_open(keys, "g", "owner", 1000))
    broker.call(calls.claim(keys, "g", "owner", 1000, 0, 10))
    assert states(broker, keys) == "-dlllls"
    assert states(broker, keys, 3, 4) == "..ll"


def test_a_large_queue_comes_in_several_replies(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 70 * 256)
    receive(broker, keys, 300)
    assert states(broker, keys) == "l" * 300 + "a" * (70 * 256 - 300)
    assert broker.call(calls.states(keys, 1, 2**47)).next == 64 * 256 + 1


def test_segments_that_have_gone_are_left_out(broker: BlockingBroker, keys: QueueKeys) -> None:
    send(broker, keys, 600)
    for _ in range(2):
        received = receive(broker, keys, 256)
        broker.call(calls.complete(keys, settlements(received)))
    assert states(broker, keys) == "." * 512 + "a" * 88


def test_in_sessions_what_a_receiver_holds_is_locked(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for session_id in "ababa":
        send_one(broker, keys, session_id=session_id)
    held = accept(broker, keys, "a")
    received = receive(broker, keys, 3, session=held)
    broker.call(calls.abandon(keys, locked_as(received, [3]), session=held))
    assert states(broker, keys) == "laaal"
    assert deliveries(broker, keys) == [0, 0, 1, 0, 0]
    broker.call(calls.claim_open(keys, "g", "owner", 1000))
    broker.call(calls.claim(keys, "g", "owner", 1000, 0, 1))
    assert states(broker, keys) == "llaal"


def test_much_that_is_stored_in_sessions_is_looked_at_in_several_calls(broker: BlockingBroker, keys: QueueKeys) -> None:
    configure(broker, keys, sessions=True)
    for _ in range(50):
        send_one(broker, keys, bytes(200_000), session_id="a")
    assert broker.call(calls.states(keys, 1, 2**47)).next == 22
    assert states(broker, keys) == "a" * 50
