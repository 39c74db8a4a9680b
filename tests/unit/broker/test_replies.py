import struct
from dataclasses import fields
from typing import Any

import pytest

from partitionedqueue.broker import replies
from partitionedqueue.broker.replies import (
    AcceptedSession,
    Moved,
    Peeked,
    PeekedRun,
    PeekedState,
    Place,
    Received,
    ReceivedPlaces,
    Run,
    SendResult,
    SessionLock,
)
from partitionedqueue.model.errors import BrokerFault

NOW = 1_700_000_000_000


def test_a_send_tells_duplicates_from_a_send_that_was_stored_before() -> None:
    stored, some, all_of_them, before = (
        replies.send(raw) for raw in ([5, NOW], [5, NOW, 1, 3], [0, NOW, 0, 1], [0, 0])
    )
    assert stored == SendResult(5, NOW, [])
    assert some == SendResult(5, NOW, [1, 3])
    assert all_of_them == SendResult(0, NOW, [0, 1])
    assert [result.stored_before for result in (stored, some, all_of_them, before)] == [False, False, False, True]


def test_a_receive_tells_when_to_ask_again() -> None:
    raw = [NOW, NOW + 9, NOW + 5, [7, 1, 2, b"marks", [b"m", b"n"]]]
    assert replies.received(raw) == Received(NOW, NOW + 9, NOW + 5, [Run(7, 1, 2, b"marks", [b"m", b"n"])])


def test_a_pushed_sends_reply_is_one_text() -> None:
    plain = struct.pack("<QQ", 5, NOW)
    assert replies.sent_pushed(plain) == SendResult(5, NOW)
    assert replies.sent_pushed(plain + struct.pack("<II", 1, 3)) == SendResult(5, NOW, [1, 3])


def test_places_are_told_in_one_text() -> None:
    told = struct.pack("<qqq", NOW, NOW + 9, -1)
    assert replies.received_places(told) == ReceivedPlaces(NOW, NOW + 9, -1, [])
    runs = struct.pack("<QQIII", 7, 1, 2, 40, 5) + b"marks" + struct.pack("<QQIII", 8, 257, 1, 3, 0)
    found = [Place(7, 1, 2, b"marks", 40), Place(8, 257, 1, b"", 3)]
    assert replies.received_places(told + runs) == ReceivedPlaces(NOW, NOW + 9, -1, found)


def test_deferred_messages_are_received_like_others_and_nobody_asks_again() -> None:
    raw = [NOW, NOW + 9, [7, 1, 2, b"marks", [b"m"]]]
    assert replies.received_deferred(raw) == Received(NOW, NOW + 9, -1, [Run(7, 1, 2, b"marks", [b"m"])])


def test_a_peek_tells_the_state_and_where_to_go_on() -> None:
    raw = [9, [1, 0, 0, b"marks", [b"m"]], [2, 1, 3, b"marks", [b"n"]], [3, 2, 0, b"marks", [b"o"]]]
    peeked = replies.peeked(raw)
    assert peeked == Peeked(
        9,
        [
            PeekedRun(1, PeekedState.ACTIVE, 0, b"marks", [b"m"]),
            PeekedRun(2, PeekedState.DEFERRED, 3, b"marks", [b"n"]),
            PeekedRun(3, PeekedState.SCHEDULED, 0, b"marks", [b"o"]),
        ],
    )
    assert replies.peeked([0]) == Peeked(0, [])


def test_a_session_is_accepted_or_none_is_available() -> None:
    accepted = replies.accepted_session(["é".encode(), 7, NOW + 9, NOW])
    assert accepted == AcceptedSession(SessionLock("é", 7), NOW + 9, -1, NOW)
    assert replies.accepted_session([b"", 0, NOW + 5, NOW]) == AcceptedSession(None, 0, NOW + 5, NOW)
    assert replies.accepted_session([b"", 0, -1, NOW]).ask_again_ms == -1


def test_a_session_without_a_name_can_be_accepted() -> None:
    assert replies.accepted_session([b"", 7, NOW + 9, NOW]).session == SessionLock("", 7)


def test_a_state_of_no_bytes_is_not_the_same_as_none() -> None:
    assert replies.state(b"") == b""
    assert replies.state(None) is None


def test_names_of_sessions_are_text() -> None:
    assert replies.names([b"a", "é".encode()]) == ["a", "é"]


def test_a_purge_tells_where_to_go_on() -> None:
    assert replies.moved([3, 70, 12]) == Moved(3, 70, 12)


def test_totals_come_by_name_in_any_order_and_names_of_a_later_library_are_passed_over() -> None:
    names = [field.name for field in fields(replies.Totals) if field.name != "now_ms"] + ["later", "now"]
    raw: list[Any] = [part for n, name in enumerate(reversed(names)) for part in (name.encode(), n)]
    totals = replies.totals(raw)
    assert totals.now_ms == 0
    assert totals.messages == len(names) - 1
    assert totals.partitions == 2


def test_totals_that_lack_a_name_are_a_fault_and_not_zero() -> None:
    with pytest.raises(BrokerFault, match="says nothing of ready"):
        replies.totals([b"now", 1, b"messages", 2])


def test_what_is_no_number_is_a_fault() -> None:
    assert replies.number(-1) == -1
    with pytest.raises(BrokerFault, match="a number was promised"):
        replies.number(b"1")
