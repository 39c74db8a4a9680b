from collections.abc import Callable
from typing import Any

import pytest

from partitionedqueue.broker import calls
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.operations import (
    AbandonOperation,
    CompleteOperation,
    DeadLetterOperation,
    DeferOperation,
    SendOperation,
)
from partitionedqueue.broker.replies import SessionLock, Settlement
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.errors import InvalidMessage, MessageTooLarge
from partitionedqueue.model.message import PropertyValue
from partitionedqueue.model.stored_message import encode_changes

KEYS = QueueKeys("q")
SESSION = SessionLock("s", 7)
TWO = [Settlement(4, 1, 9), Settlement(5, 300, 300)]
CHANGES = encode_changes({"a": 1})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (calls.configure(KEYS, partition=3, partitions=16), (3, 16)),
        (
            calls.configure(KEYS, partition=0, partitions=1, settings=BrokerSettings(sessions=True, ttl_ms=0)),
            (0, 1, "ttl_ms", 0, "sessions", 1),
        ),
        (calls.send(KEYS, [b"m", b"n"]), ("", 0, b"", b"m", b"n")),
        (calls.send(KEYS, [b"m"], sender="x", number=8, fingerprints=b"f" * 12), ("x", 8, b"f" * 12, b"m")),
        (calls.receive(KEYS, most=5), (5, -1, 0, "", 0)),
        (calls.receive(KEYS, most=5, lock_ms=0, bytes_most=9, session=SESSION), (5, 0, 9, "s", 7)),
        (calls.complete(KEYS, TWO), ("", 0, 4, 1, 9, 5, 300, 300)),
        (calls.complete(KEYS, TWO[:1], session=SESSION), ("s", 7, 4, 1, 9)),
        (calls.abandon(KEYS, TWO[:1]), ("", 0, "counted", b"", 4, 1, 9)),
        (
            calls.abandon(KEYS, TWO[:1], counted=False, changes=CHANGES, session=SESSION),
            ("s", 7, "uncounted", CHANGES, 4, 1, 9),
        ),
        (calls.defer(KEYS, TWO[:1], changes=CHANGES, session=SESSION), ("s", 7, CHANGES, 4, 1, 9)),
        (calls.dead_letter(KEYS, TWO[:1]), ("", 0, b"", 4, 1, 9)),
        (calls.renew_lock(KEYS, TWO[:1]), (-1, 4, 1, 9)),
        (calls.receive_deferred(KEYS, [5, 6], lock_ms=10, session=SESSION), ("s", 7, 10, 5, 6)),
        (calls.cancel_scheduled(KEYS, [5, 6]), (5, 6)),
        (calls.peek(KEYS, most=3, bytes_most=4), (1, 3, 4, "")),
        (calls.peek(KEYS, from_sequence=2, most=3, bytes_most=4, states="ds", session="s"), (2, 3, 4, "ds", "s")),
        (calls.accept_session(KEYS), ("", -1, "next")),
        (calls.accept_session(KEYS, ""), ("", -1)),
        (calls.accept_session(KEYS, "s", lock_ms=10), ("s", 10)),
        (calls.renew_session(KEYS, SESSION), ("s", 7, -1)),
        (calls.release_session(KEYS, SESSION), ("s", 7)),
        (calls.get_session_state(KEYS, SESSION), ("s", 7, "get", "")),
        (calls.set_session_state(KEYS, SESSION, b""), ("s", 7, "set", b"")),
        (calls.set_session_state(KEYS, SESSION, None), ("s", 7, "clear", b"")),
        (calls.list_sessions(KEYS, skip=100), (100, 100)),
        (calls.purge(KEYS), ("ads", 0, 0)),
        (calls.purge(KEYS, states="d", upto=9, cursor=4), ("d", 9, 4)),
        (calls.resubmit(KEYS, most=3, sequences=[8, 9]), (3, 0, 8, 9)),
        (calls.totals(KEYS), ()),
        (calls.next_due(KEYS), ()),
        (calls.sweep(KEYS), ()),
    ],
    ids=lambda value: value.words[1] if isinstance(value, Call) else "",
)
def test_a_call_has_the_words_of_its_contract(call: Call[Any], words: tuple[Any, ...]) -> None:
    verb, _, keys, key, *arguments = call.words
    assert verb in ("FCALL", "FCALL_RO")
    assert (keys, key) == (1, "pq:q")
    assert tuple(arguments) == words


def test_a_call_may_be_repeated_only_where_that_does_nothing_twice() -> None:
    repeatable: list[Call[Any]] = [
        calls.configure(KEYS, partition=0, partitions=1),
        calls.send(KEYS, [b""], sender="s", number=1),
        calls.apply(KEYS, [], sender="s", number=1),
        calls.renew_lock(KEYS, TWO),
        calls.renew_session(KEYS, SESSION),
        calls.get_session_state(KEYS, SESSION),
        calls.peek(KEYS, most=1, bytes_most=1),
        calls.list_sessions(KEYS),
        calls.purge(KEYS),
        calls.totals(KEYS),
        calls.next_due(KEYS),
        calls.sweep(KEYS),
        calls.about(),
    ]
    once: list[Call[Any]] = [
        calls.send(KEYS, [b""]),
        calls.apply(KEYS, []),
        calls.receive(KEYS, most=1),
        calls.receive_deferred(KEYS, [1]),
        calls.accept_session(KEYS),
        calls.release_session(KEYS, SESSION),
        calls.set_session_state(KEYS, SESSION, b""),
        calls.cancel_scheduled(KEYS, [1]),
        calls.resubmit(KEYS),
        *(settle(KEYS, TWO) for settle in (calls.complete, calls.abandon, calls.defer, calls.dead_letter)),
    ]
    assert [call.words[1] for call in repeatable if not call.repeatable] == []
    assert [call.words[1] for call in once if call.repeatable] == []


def test_a_dead_letter_says_why_beside_the_changes_of_its_receiver() -> None:
    call = calls.dead_letter(KEYS, TWO[:1], reason="bad", description="no tail number", changes={"a": 1})
    told: dict[str, PropertyValue] = {"a": 1, "DeadLetterReason": "bad", "DeadLetterErrorDescription": "no tail number"}
    assert call.words[4:] == ("", 0, encode_changes(told), 4, 1, 9)


@pytest.mark.parametrize("name", ["reason", "description"])
def test_a_reason_over_4096_characters_is_refused(name: str) -> None:
    why: Callable[..., Any] = calls.dead_letter
    assert why(KEYS, TWO, **{name: "x" * 4096})
    with pytest.raises(InvalidMessage, match="4,097 characters"):
        why(KEYS, TWO, **{name: "x" * 4097})


def test_changes_over_64_kb_are_refused() -> None:
    with pytest.raises(MessageTooLarge, match="65,536"):
        calls.dead_letter(KEYS, TWO, changes={"a": "x" * 65_536})


def test_a_transaction_counts_the_arguments_of_each_operation() -> None:
    one = TWO[:1]
    call = calls.apply(
        KEYS,
        [
            SendOperation([b"m", b"n"], b"f" * 24, target="/$Transfer"),
            CompleteOperation(TWO),
            DeferOperation(one, CHANGES),
            DeadLetterOperation(one, reason="bad"),
            AbandonOperation(one, counted=False),
        ],
        sender="x",
        number=3,
        session=SESSION,
    )
    assert call.words[4:] == (
        *("x", 3, "s", 7),
        *("send", "/$Transfer", 3, b"f" * 24, b"m", b"n"),
        *("complete", "", 6, 4, 1, 9, 5, 300, 300),
        *("defer", "", 4, CHANGES, 4, 1, 9),
        *("dead_letter", "", 4, encode_changes({"DeadLetterReason": "bad"}), 4, 1, 9),
        *("abandon", "", 5, "uncounted", b"", 4, 1, 9),
    )
