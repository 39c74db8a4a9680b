"""Windows and credit (AMQP 1.0 §2.5.6, §2.6.7)."""

import pytest

from harness.amqp_engines import Engines
from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import outcomes, serial_numbers, terminus
from partitionedqueue_gateway.amqp.engine.frequent_reading import Flow
from partitionedqueue_gateway.amqp.engine.frequent_writing import flow
from partitionedqueue_gateway.amqp.engine.link import SendingLink
from partitionedqueue_gateway.amqp.engine.serial_numbers import UINT_MAX, between, difference
from partitionedqueue_gateway.amqp.engine.violations import NotSendable
from partitionedqueue_gateway.limits import AMQP_UNSETTLED_MAX


def test_credit_is_spent_and_not_exceeded() -> None:
    _, theirs = Engines().receiving_client(credit=2)
    for tag in (b"1", b"2"):
        assert theirs.sendable
        theirs.send(b"x", tag)
    with pytest.raises(NotSendable):
        theirs.send(b"x", b"3")


def test_credit_counts_from_what_the_receiver_has_seen() -> None:
    engines = Engines()
    ours, theirs = engines.receiving_client(credit=5)
    theirs.send(b"x", b"1")
    theirs.send(b"x", b"2")
    ours.grant(5)  # said before the two have come: it means five in all
    told = b"".join(engines.client.data_to_send())
    assert engines.tell_server(told) == [happened.CreditChanged(theirs)]
    assert theirs.credit == 3


def test_credit_is_withdrawn() -> None:
    engines = Engines()
    ours, theirs = engines.receiving_client(credit=5)
    ours.grant(0)
    assert engines.turn().the(happened.CreditChanged).link is theirs
    assert theirs.credit == 0


def test_credit_granted_before_the_attach_is_answered_counts() -> None:
    engines = Engines()
    ours = engines.client.begin().receiver("link", source=terminus.source("queue"))
    link = engines.turn().the(happened.AttachRequested).link
    ours.attached = True
    ours.grant(7)
    assert engines.turn().all(happened.CreditChanged) == []
    assert isinstance(link, SendingLink)
    assert not link.sendable
    link.attach(source=link.source, target=link.target)
    assert link.credit == 7
    assert link.sendable


def test_a_drained_sender_gives_the_rest_back() -> None:
    engines = Engines()
    ours, theirs = engines.receiving_client(credit=5)
    ours.grant(5, drain=True)
    assert engines.turn().the(happened.CreditChanged).link.draining
    theirs.send(b"x", b"1")
    theirs.drained()
    theirs.drained()
    engines.turn()
    assert [type(event) for event in engines.at_client] == [happened.MessageReceived, happened.Drained]
    assert (ours.credit, theirs.credit) == (0, 0)
    assert ours.delivery_count == theirs.delivery_count == 5
    ours.grant(3)
    engines.turn()
    assert theirs.credit == 3


def test_a_drain_without_credit_is_answered_too() -> None:
    engines = Engines()
    ours, theirs = engines.receiving_client(credit=5)
    ours.grant(0, drain=True)  # as Python's client does when it closes
    engines.turn()
    assert theirs.draining
    theirs.drained()
    assert engines.turn().the(happened.Drained).link is ours


def test_an_echo_is_answered_for_the_session_and_for_a_link() -> None:
    engines = Engines()
    ours, theirs = engines.receiving_client(credit=5)
    for handle in (None, ours.handle):
        engines.client.output.append(flow(0, Flow(0, 10, 0, 10, handle, 0, 5, None, drain=False, echo=True)))
        engines.tell_server(b"".join(engines.client.data_to_send()))
        assert len(engines.server.data_to_send()) == 1
    assert theirs.credit == 5


def test_what_a_sender_says_of_credit_is_not_believed() -> None:
    engines = Engines()
    ours, theirs = engines.sending_client(credit=10)
    engines.client.output.append(flow(0, Flow(0, 10, 0, 10, ours.handle, 0, 10_000)))  # as Python's client does
    engines.turn()
    assert theirs.credit == 10


def test_credit_is_renewed_below_half() -> None:
    engines = Engines()
    ours, theirs = engines.sending_client(credit=10)
    for number in range(100):
        ours.send(b"x", b"tag")
        theirs.settle(engines.turn().the(happened.MessageReceived).delivery_id, outcomes.ACCEPTED)
        engines.turn()
        assert ours.credit >= 5, number


def test_messages_that_are_not_settled_count_against_the_credit() -> None:
    engines = Engines()
    ours, theirs = engines.sending_client(credit=10)
    sent = 0
    while ours.sendable:
        ours.send(b"x", b"tag")
        sent += 1
        engines.turn()
    assert sent == 10
    for delivery_id in range(5):
        theirs.settle(delivery_id, outcomes.ACCEPTED)
    engines.turn()
    assert ours.credit == 5


def test_a_window_of_the_peers_holds_messages_back_and_lets_them_go() -> None:
    engines = Engines(client={"incoming_window": 4, "max_frame_size": 512})
    _, theirs = engines.receiving_client(credit=50)
    server = theirs.session
    long = b"x" * 2000  # six frames
    for number in range(3):
        assert theirs.sendable is (number == 0)
        theirs.send(long, b"%d" % number)
    assert engines.server.output_bytes > 3 * len(long) - 4 * 512
    engines.turn()
    assert [event.payload for event in engines.all(happened.MessageReceived)] == [long] * 3
    assert engines.all(happened.CreditChanged)[-1].link is theirs
    assert theirs.sendable
    assert server.outgoing.waiting_bytes == 0


def test_a_flow_of_the_session_wakes_every_link_that_has_credit() -> None:
    engines = Engines(client={"incoming_window": 1})
    session = engines.client.begin()
    ours = [session.receiver(f"{number}", source=terminus.source("queue")) for number in range(3)]
    theirs = [event.link for event in engines.turn().all(happened.AttachRequested)]
    for link in theirs:
        link.attach(source=link.source, target=link.target)
    engines.turn()
    for link in ours[:2]:
        link.grant(5)
    engines.turn()
    first, second, third = (link for link in theirs if isinstance(link, SendingLink))
    first.send(b"x", b"tag")
    assert [link.sendable for link in (first, second, third)] == [False, False, False]
    engines.client.receive_data(b"".join(engines.server.data_to_send()), 0.0)
    told = engines.tell_server(b"".join(engines.client.data_to_send()))
    assert told == [happened.CreditChanged(first), happened.CreditChanged(second)]
    assert [link.sendable for link in (first, second, third)] == [True, True, False]


def test_what_waits_for_a_window_goes_with_its_link() -> None:
    engines = Engines(client={"incoming_window": 2})
    ours, theirs = engines.receiving_client(credit=50)
    for _ in range(5):
        theirs.send(b"x" * 100, b"tag")
    assert theirs.session.outgoing.waiting_bytes == 300
    ours.detach()
    engines.tell_server(b"".join(engines.client.data_to_send()))
    assert theirs.session.outgoing.waiting_bytes == 0
    assert len(theirs.unsettled) == 5


def test_a_peer_that_says_it_has_seen_the_future_gets_no_wider_window() -> None:
    engines = Engines()
    _, theirs = engines.receiving_client(credit=5)
    engines.client.output.append(flow(0, Flow(1000, 3, 0, 10)))
    engines.turn()
    assert theirs.session.outgoing.window == 3


def test_windows_as_wide_as_numbers_go_are_no_trouble() -> None:
    engines = Engines(client={"incoming_window": UINT_MAX})
    ours, theirs = engines.receiving_client(credit=UINT_MAX)
    for _ in range(3):
        theirs.send(b"x", b"tag")
    engines.turn()
    assert theirs.session.outgoing.window > UINT_MAX - 10
    assert len(ours.session.incoming.unsettled) == 3


def test_numbers_begin_anew_after_the_last() -> None:
    engines = Engines()
    ours, theirs = engines.receiving_client(credit=5)
    for link in (ours, theirs):
        link.delivery_count = UINT_MAX - 1
    theirs.session.outgoing.next_id = ours.session.incoming.next_id = UINT_MAX
    theirs.session.outgoing._next_delivery_id = UINT_MAX
    for number in range(4):
        theirs.send(b"x", b"tag", context=number)
    engines.turn()
    assert ours.delivery_count == theirs.delivery_count == 2
    ours.grant(5)
    engines.turn()
    assert theirs.credit == 5
    for _, delivery_id, *_ in engines.all(happened.MessageReceived):
        ours.settle(delivery_id, outcomes.ACCEPTED)
    ours.settle(UINT_MAX, outcomes.ACCEPTED)
    for delivery_id in range(3):
        ours.settle(delivery_id, outcomes.ACCEPTED)
    told = engines.turn().all(happened.Dispositions)
    assert sorted(context for event in told for _, _, context in event.deliveries) == [0, 1, 2, 3]


def test_serial_numbers_are_near_each_other_around_the_end() -> None:
    assert difference(1, UINT_MAX) == 2
    assert difference(UINT_MAX, 1) == -2
    known = dict.fromkeys([UINT_MAX - 1, UINT_MAX, 0, 1, 500])
    assert between(UINT_MAX, 0, known) == [UINT_MAX, 0]
    assert sorted(between(UINT_MAX - 5, 100, known)) == [0, 1, UINT_MAX - 1, UINT_MAX]
    assert between(5, UINT_MAX // 2, known) == [500]
    assert serial_numbers.runs([5, 3, 4, 9, 9, 1]) == [(1, 1), (3, 5), (9, 9)]


def test_a_receiver_that_never_settles_loses_the_oldest_deliveries() -> None:
    engines = Engines()
    _, theirs = engines.receiving_client(credit=AMQP_UNSETTLED_MAX + 2)
    theirs.session.outgoing.window = 2 * AMQP_UNSETTLED_MAX
    for _ in range(AMQP_UNSETTLED_MAX + 2):
        theirs.send(b"", b"")
    assert len(theirs.unsettled) == AMQP_UNSETTLED_MAX
    assert theirs.unsettled[0][0] == 2
    assert outcomes.RELEASED in b"".join(engines.server.data_to_send())
