"""`$management` over AMQP: each operation, and what is refused."""

import asyncio
import dataclasses
import random
import time
from uuid import UUID, uuid4

import pytest

from harness.amqp_client import Client, Got, connected, message
from harness.amqp_door import served
from harness.redis_servers import Broker
from partitionedqueue_gateway.amqp.engine import decoding, outcomes, sections, terminus
from partitionedqueue_gateway.amqp.engine.outcomes import Modified
from partitionedqueue_gateway.amqp.engine.values import Array, Described, Int, Symbol, Timestamp, UInt, ULong, Value
from partitionedqueue_gateway.amqp.management import OFFERS

SESSIONS = {"requires_session": True}
NODE = "orders/$management"
ANY_TIME = Timestamp(253_402_300_800_000)


def inside(shown: Value) -> dict[int, bytes]:
    """The sections of a message in an answer."""
    return dict(sections.split(shown["message"]))


def annotations(shown: Value) -> dict[str, Value]:
    found: dict[str, Value] = decoding.decode(inside(shown)[sections.MESSAGE_ANNOTATIONS])
    return found


def body(shown: Value) -> bytes:
    return bytes(decoding.decode(inside(shown)[sections.DATA]))


async def put(client: Client, count: int = 1, **more: Value) -> None:
    sender = await client.sender("orders")
    for number in range(count):
        await client.send(sender, message(b"%d" % number, **more))


async def one(client: Client) -> Got:
    (got,) = await client.receive(await client.receiver("orders"))
    return got


def scheduled(at_ms: int, text: bytes = b"", **more: Value) -> dict[str, Value]:
    encoded = message(text, annotations={"x-opt-scheduled-enqueue-time": Timestamp(at_ms)}, **more)
    return {"message-id": uuid4().hex, "message": encoded}


def soon_ms(seconds: float) -> int:
    return int((time.time() + seconds) * 1000)


async def test_locks_are_renewed(brokers: list[Broker]) -> None:
    async with served(brokers, orders={"lock_duration_ms": 5_000}) as door, connected(door.port) as client:
        await put(client, 2)
        receiver = await client.receiver("orders")
        found = await client.receive(receiver, 2)
        node = await client.pair(NODE)
        await asyncio.sleep(1)
        answer = await client.manage(node, "renew-lock", {"lock-tokens": Array.of_uuids([g.lock_token for g in found])})
        assert answer.status == 200
        expirations = answer.body["expirations"]
        assert isinstance(expirations, Array)
        assert expirations.code == 0x83
        assert all(
            until > got.annotations["x-opt-locked-until"] for until, got in zip(expirations.items, found, strict=True)
        )


async def test_a_lock_that_is_lost_is_not_renewed(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        got = await one(client)
        await client.settle(got, outcomes.ACCEPTED)
        node = await client.pair(NODE)
        for token in (got.lock_token, uuid4(), UUID(int=0)):
            answer = await client.manage(node, "renew-lock", {"lock-tokens": Array.of_uuids([token])})
            assert (answer.status, answer.condition) == (410, "com.microsoft:message-lock-lost")
            assert type(answer.condition) is Symbol
            assert answer.words.startswith("The lock supplied is invalid. Either the lock expired, or the message has")


async def test_messages_are_peeked_in_order_over_all_partitions(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 40)
        node = await client.pair(NODE)
        seen: list[int] = []
        start = 0
        while True:
            asked = {"from-sequence-number": start, "message-count": Int(15)}
            answer = await client.manage(node, "peek-message", asked)
            if answer.status == 204:
                assert answer.condition == "com.microsoft:message-not-found"
                break
            seen += [annotations(one)["x-opt-sequence-number"] for one in answer.body["messages"]]
            start = seen[-1] + 1
        assert len(seen) == 40
        assert seen == sorted(seen)


async def test_a_peek_shows_states_and_locks_nothing(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 1)
        await client.settle(await one(client), outcomes.modified(Modified(undeliverable_here=True)))
        await put(client, 1)
        node = await client.pair(NODE)
        await client.manage(node, "schedule-message", {"messages": [scheduled(soon_ms(60))]})
        answer = await client.manage(node, "peek-message", {"from-sequence-number": 0, "message-count": Int(10)})
        assert sorted(annotations(one)["x-opt-message-state"] for one in answer.body["messages"]) == [0, 1, 2]
        assert (await one(client)).delivery_count == 0


async def test_a_peek_without_a_partition_says_which_is_missing(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 32)
        node = await client.pair(NODE)
        brokers[3].kill()
        answer = await client.manage(node, "peek-message", {"from-sequence-number": 0, "message-count": Int(100)})
        assert answer.status == 200
        assert len(answer.body["messages"]) == 30
        assert "without partitions 3" in answer.words


async def test_scheduled_messages_have_numbers_by_which_they_are_cancelled(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        node = await client.pair(NODE)
        asked = {"messages": [scheduled(soon_ms(2), b"a"), scheduled(soon_ms(2), b"b")]}
        answer = await client.manage(node, "schedule-message", asked)
        numbers = answer.body["sequence-numbers"]
        assert isinstance(numbers, Array)
        assert (numbers.code, len(numbers.items)) == (0x81, 2)
        cancelled = {"sequence-numbers": Array.of_longs(numbers.items[:1])}
        assert (await client.manage(node, "cancel-scheduled-message", cancelled)).status == 200
        again = await client.manage(node, "cancel-scheduled-message", cancelled)
        assert (again.status, again.condition) == (404, "com.microsoft:message-not-found")
        assert (await one(client)).body == b"b"


async def test_deferred_messages_are_received_by_number_and_settled(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 4)
        receiver = await client.receiver("orders")
        found = await client.receive(receiver, 4)
        for got in found:
            await client.settle(got, outcomes.modified(Modified(undeliverable_here=True)))
        numbers = [got.sequence_number for got in found]
        node = await client.pair(NODE)
        asked = {"sequence-numbers": Array.of_longs(numbers), "receiver-settle-mode": UInt(1)}
        answer = await client.manage(node, "receive-by-sequence-number", asked)
        assert [annotations(one)["x-opt-sequence-number"] for one in answer.body["messages"]] == numbers
        tokens = [one["lock-token"] for one in answer.body["messages"]]
        delivered = decoding.decode(inside(answer.body["messages"][0])[sections.DELIVERY_ANNOTATIONS])
        assert delivered["x-opt-lock-token"] == tokens[0]

        async def say(token: UUID, status: str, **more: Value) -> int:
            told = {"lock-tokens": Array.of_uuids([token]), "disposition-status": status}
            return (await client.manage(node, "update-disposition", {**told, **more})).status

        assert await say(tokens[0], "completed") == 200
        assert await say(tokens[0], "completed") == 410
        assert await say(tokens[1], "abandoned", **{"properties-to-modify": {Symbol("a"): 1}}) == 200
        assert await say(tokens[2], "defered") == 200
        assert await say(tokens[3], "suspended", **{"deadletter-reason": "R", "deadletter-description": "D"}) == 200
        (dead,) = await client.receive(await client.receiver("orders/$DeadLetterQueue"))
        assert dead.application_properties == {"DeadLetterReason": "R", "DeadLetterErrorDescription": "D"}
        gone = await client.manage(node, "receive-by-sequence-number", asked)
        assert (gone.status, gone.condition) == (404, "com.microsoft:message-not-found")
        left = {"sequence-numbers": Array.of_longs(numbers[1:3]), "receiver-settle-mode": UInt(0)}
        deleted = await client.manage(node, "receive-by-sequence-number", left)
        assert sections.DELIVERY_ANNOTATIONS not in inside(deleted.body["messages"][0])
        assert (await client.manage(node, "receive-by-sequence-number", left)).status == 404


async def test_a_sessions_state_is_kept_and_taken_away(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        receiver = await client.session_receiver("orders", "a")
        node = await client.pair(NODE)

        async def state() -> Value:
            return (await client.manage(node, "get-session-state", {"session-id": "a"})).body["session-state"]

        assert await state() is None
        for kept, seen in ((b"half way", b"half way"), (b"", None), (b"x", b"x"), (None, None)):
            told = {"session-id": "a", "session-state": kept}
            assert (await client.manage(node, "set-session-state", told)).status == 200
            assert await state() == seen
        linked = {"associated_link_name": receiver.name}
        answer = await client.manage(node, "get-session-state", {}, **linked)
        assert answer.status == 200


async def test_a_sessions_lock_is_renewed(brokers: list[Broker]) -> None:
    short = {"requires_session": True, "lock_duration_ms": 5_000}
    async with served(brokers, orders=short) as door, connected(door.port) as client:
        receiver = await client.session_receiver("orders", "a")
        node = await client.pair(NODE)
        for _ in range(3):
            await asyncio.sleep(2)
            answer = await client.manage(node, "renew-session-lock", {"session-id": "a"})
            assert answer.status == 200
            assert answer.body["expiration"] > soon_ms(4)
        assert receiver not in client.detached


@pytest.mark.parametrize("operation", ["renew-session-lock", "get-session-state", "set-session-state"])
async def test_a_session_that_this_client_does_not_hold_is_lost_to_it(brokers: list[Broker], operation: str) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client, connected(door.port) as other:
        await other.session_receiver("orders", "a")
        node = await client.pair(NODE)
        answer = await client.manage(node, operation, {"session-id": "a", "session-state": b""})
        assert (answer.status, answer.condition) == (410, "com.microsoft:session-lock-lost")


async def test_deferred_messages_of_a_session_need_the_session(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        await put(client, 1, session_id="a")
        receiver = await client.session_receiver("orders", "a")
        (got,) = await client.receive(receiver)
        await client.settle(got, outcomes.modified(Modified(undeliverable_here=True)))
        node = await client.pair(NODE)
        asked = {"sequence-numbers": Array.of_longs([got.sequence_number]), "receiver-settle-mode": UInt(1)}
        assert (await client.manage(node, "receive-by-sequence-number", asked)).status == 410
        answer = await client.manage(node, "receive-by-sequence-number", {**asked, "session-id": "a"})
        (shown,) = answer.body["messages"]
        told = {"lock-tokens": Array.of_uuids([shown["lock-token"]]), "disposition-status": "completed"}
        assert (await client.manage(node, "update-disposition", {**told, "session-id": "a"})).status == 200


async def test_sessions_are_listed_page_by_page(brokers: list[Broker]) -> None:
    async with served(brokers, orders=SESSIONS) as door, connected(door.port) as client:
        sender = await client.sender("orders")
        names = {f"s{number:02}" for number in range(25)}
        for name in names:
            await client.send(sender, message(b"", session_id=name))
        node = await client.pair(NODE)
        seen: list[str] = []
        while True:
            asked = {"last-updated-time": ANY_TIME, "skip": Int(len(seen)), "top": Int(10)}
            answer = await client.manage(node, "get-message-sessions", asked)
            if answer.status == 204:
                break
            assert answer.body["skip"] == len(seen) + len(answer.body["sessions-ids"].items)
            seen += answer.body["sessions-ids"].items
        assert sorted(seen) == sorted(names)


async def test_messages_are_deleted_in_batches(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client, 20)
        node = await client.pair(NODE)
        asked = {"message-count": Int(12), "enqueued-time-utc": Timestamp(soon_ms(60))}
        answer = await client.manage(node, "batch-delete-messages", asked)
        assert answer.body == {"message-count": 12}
        assert (await client.manage(node, "batch-delete-messages", asked)).body == {"message-count": 8}
        assert (await client.manage(node, "batch-delete-messages", asked)).status == 204


@pytest.mark.parametrize(
    ("operation", "asked", "status", "condition"),
    [
        ("no-such-thing", {}, 501, "amqp:not-implemented"),
        ("add-rule", {"rule-name": "a"}, 400, "amqp:not-allowed"),
        ("remove-rule", {"rule-name": "a"}, 400, "amqp:not-allowed"),
        ("enumerate-rules", {"skip": 0, "top": 1}, 400, "amqp:not-allowed"),
        ("peek-message", {}, 400, "com.microsoft:argument-error"),
        ("peek-message", {"from-sequence-number": 0, "message-count": 0}, 400, "com.microsoft:argument-out-of-range"),
        ("renew-lock", {"lock-tokens": []}, 400, "com.microsoft:argument-error"),
        ("schedule-message", {"messages": [{}]}, 400, "com.microsoft:argument-error"),
        ("schedule-message", {"messages": [{"message": b"\x00"}]}, 400, "com.microsoft:argument-error"),
        ("cancel-scheduled-message", {"sequence-numbers": [5]}, 404, "com.microsoft:message-not-found"),
        ("cancel-scheduled-message", {"sequence-numbers": [1 << 62]}, 404, "com.microsoft:message-not-found"),
        ("receive-by-sequence-number", {"sequence-numbers": [5 << 48 | 1]}, 404, "com.microsoft:message-not-found"),
        ("update-disposition", {"disposition-status": "burnt"}, 400, "com.microsoft:argument-error"),
        ("get-message-sessions", {"skip": 0, "top": 1}, 400, "amqp:not-allowed"),
        ("renew-session-lock", {"session-id": "a"}, 410, "com.microsoft:session-lock-lost"),
    ],
)
async def test_what_cannot_be_is_refused_and_the_node_goes_on(
    brokers: list[Broker], operation: str, asked: dict[str, Value], status: int, condition: str
) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        node = await client.pair(NODE)
        answer = await client.manage(node, operation, asked)
        assert (answer.status, answer.condition) == (status, condition), answer.words
        assert answer.words
        again = await client.manage(node, "peek-message", {"from-sequence-number": 0, "message-count": 1})
        assert again.status == 204


NAMES = sorted(
    {
        *(
            "lock-tokens",
            "sequence-numbers",
            "receiver-settle-mode",
            "from-sequence-number",
            "message-count",
            "messages",
        ),
        *("session-id", "session-state", "disposition-status", "deadletter-reason", "deadletter-description", "skip"),
        *("properties-to-modify", "last-updated-time", "enqueued-time-utc", "top"),
    }
)
VALUES: list[Value] = [
    *(
        None,
        True,
        0,
        1,
        -1,
        1 << 62,
        -(1 << 63),
        ULong((1 << 64) - 1),
        Int(5),
        1.5,
        "",
        "a",
        "x" * 200,
        b"",
        b"\x00\x53",
    ),
    *([], [1], ["a"], [{}], [{"message": b"\xff" * 30}], [{"message": message(b"", session_id="a")}], {}, {"a": 1}),
    *({1: 2}, {"a": [1]}, Array.of_longs([1, 2]), Array.of_longs([-1]), Array.of_uuids([UUID(int=1 << 64 | 5)])),
    *(Array.of_uuids([uuid4()]), UUID(int=7), Symbol("completed"), "completed", "defered", "suspended", ANY_TIME),
    *(Timestamp(-1), Described(ULong(0x24), []), Described(Symbol("x"), "y"), Array(0x45, [[], []])),
]


@pytest.mark.parametrize("operation", sorted(OFFERS))
@pytest.mark.parametrize("sessions", [False, True])
async def test_no_request_however_odd_is_a_defect(brokers: list[Broker], operation: str, sessions: bool) -> None:
    chance = random.Random(operation)
    settings = {"requires_session": sessions}
    async with served(brokers[:2], orders=settings) as door, connected(door.port) as client:
        if sessions:
            await client.session_receiver("orders", "a")
        node = await client.pair(NODE)
        for _ in range(150):
            names = chance.sample(NAMES, chance.randrange(1, 8))
            asked = {name: chance.choice(VALUES) for name in names}
            answer = await client.manage(node, operation, asked)
            assert answer.status != 500, (asked, answer.words)


@pytest.mark.parametrize("message_id", ["1", ULong(7), UUID(int=9), b"\x01"])
@pytest.mark.parametrize("settled", [True, False])
async def test_answers_find_their_question_whatever_its_id(
    brokers: list[Broker], message_id: Value, settled: bool
) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        node = await client.pair(NODE)
        asked = {"from-sequence-number": 0, "message-count": 1}
        answer = await client.manage(node, "peek-message", asked, message_id=message_id, settled=settled)
        assert answer.status == 204


async def test_a_tracking_id_comes_back(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        node = await client.pair(NODE)
        tracking = {"com.microsoft:tracking_id": "t"}
        answer = await client.manage(node, "peek-message", {}, **tracking)
        assert answer.properties["com.microsoft:tracking-id"] == "t"


async def test_many_questions_at_once_are_all_answered(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        await put(client)
        node = await client.pair(NODE)
        asking, answers = node
        reply_to = terminus.address_of(answers.target)
        for number in range(500):
            await client.until(lambda: asking.credit > 0)
            payload = (
                sections.encode(sections.PROPERTIES, [ULong(number), None, None, None, reply_to])
                + sections.encode(sections.APPLICATION_PROPERTIES, {"operation": "com.microsoft:peek-message"})
                + sections.encode(sections.VALUE, {"from-sequence-number": 0, "message-count": 1})
            )
            client.put(asking, payload, settled=bool(number % 2))
        found = await client.come(answers, 500, seconds=20)
        assert {got.section(sections.PROPERTIES)[5] for got in found} == set(range(500))


async def test_a_node_serves_the_queue_that_has_taken_the_name_of_one_that_has_gone(brokers: list[Broker]) -> None:
    async with served(brokers) as door, connected(door.port) as client:
        pair = await client.pair(NODE)
        (queue,) = door.catalog.queues.values()
        door.catalog.replace("", [], {})
        gone = await client.manage(pair, "peek-message", {"from-sequence-number": 0, "message-count": 1})
        assert (gone.status, gone.condition) == (404, "amqp:not-found")
        door.catalog.replace("", [dataclasses.replace(queue, uid="another")], {})
        await put(client)
        found = await client.manage(pair, "peek-message", {"from-sequence-number": 0, "message-count": 1})
        assert found.status == 200


async def test_a_lock_token_of_another_queue_settles_nothing(brokers: list[Broker]) -> None:
    async with served(brokers[:1], orders={}, bills={}) as door, connected(door.port) as client:
        held = []
        for name in ("orders", "bills"):
            await client.send(await client.sender(name), message(b""))
            held += await client.receive(await client.receiver(name))
        mine, other = held
        completes = {"disposition-status": "completed", "lock-tokens": Array.of_uuids([other.lock_token])}
        refused = await client.manage(await client.pair(NODE), "update-disposition", completes)
        assert (refused.status, refused.condition) == (410, "com.microsoft:message-lock-lost")
        assert await client.settle(mine, outcomes.ACCEPTED) == outcomes.Accepted()


async def test_an_operation_ends_in_the_clients_own_time(brokers: list[Broker]) -> None:
    async with served(brokers[:1]) as door, connected(door.port) as client:
        await put(client)
        node = await client.pair(NODE)
        brokers[0].pause()
        try:
            named = {"com.microsoft:server_timeout": ULong(500)}
            began = time.monotonic()
            answer = await client.manage(node, "peek-message", {"from-sequence-number": 0, "message-count": 1}, **named)
            assert (answer.status, answer.condition) == (408, "com.microsoft:timeout")
            assert time.monotonic() - began < 2
        finally:
            brokers[0].resume()
