"""Whole conversations between two engines: what is said orderly is heard, however it is cut."""

import pytest

from harness.amqp_engines import Engines
from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import framing, outcomes, performatives, terminus
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError, SaslInitFrame
from partitionedqueue_gateway.amqp.engine.values import Described, Symbol, UInt, ULong
from partitionedqueue_gateway.amqp.engine.violations import NotSendable

_REFUSAL = AmqpError("amqp:not-found", "no such queue", {"tracking-id": "x"})


@pytest.fixture(params=[0, 1, 7, 1000], ids=lambda step: f"{step or 'all'}-at-a-time")
def engines(request: pytest.FixtureRequest) -> Engines:
    return Engines(step=request.param)


def test_a_client_that_says_all_at_once_is_understood(engines: Engines) -> None:
    session = engines.client.begin()
    session.sender("one", target=terminus.target("queue"))
    session.receiver("two", source=terminus.source("queue"))
    engines.turn()
    assert [type(event).__name__ for event in engines.at_server] == [
        *("SaslInit", "Opened", "SessionBegan", "AttachRequested", "AttachRequested")
    ]
    assert [type(event).__name__ for event in engines.at_client] == ["Opened", "SessionBegan"]


def test_headers_and_sasl_in_one_piece_wait_for_the_application() -> None:
    init = framing.frame(0, performatives.write(SaslInitFrame("ANONYMOUS")), framing.SASL_FRAME)
    server = Engines().server
    (event,) = server.receive_data(framing.SASL_HEADER + init + framing.AMQP_HEADER, 0.0)
    assert event == happened.SaslInit("ANONYMOUS", b"", None)
    assert framing.AMQP_HEADER not in server.data_to_send()
    assert server.sasl_outcome(ok=True) == []
    assert server.data_to_send()[-1] == framing.AMQP_HEADER


def test_a_message_is_sent_and_settled(engines: Engines) -> None:
    ours, theirs = engines.sending_client()
    delivery_id = ours.send(b"payload", b"tag", message_format=0x80013700, context="mine")
    received = engines.turn().the(happened.MessageReceived)
    assert received == (theirs, delivery_id, b"tag", 0x80013700, False, b"", b"payload")
    assert engines.server.unsettled_bytes == 7
    assert ours.unsettled == [(delivery_id, "mine")]
    theirs.settle(received.delivery_id, outcomes.ACCEPTED)
    told = engines.turn().the(happened.Dispositions)
    assert told == ([(ours, delivery_id, "mine")], outcomes.ACCEPTED_CODE, outcomes.ACCEPTED, True)
    assert engines.server.unsettled_bytes == 0
    assert ours.unsettled == []


def test_a_message_is_received_and_the_receivers_outcome_is_answered(engines: Engines) -> None:
    ours, theirs = engines.receiving_client(rcv_settle_mode=1)
    assert theirs.rcv_settle_mode == 1
    theirs.send(b"payload", b"t" * 16, context="token")
    received = engines.turn().the(happened.MessageReceived)
    ours.settle(received.delivery_id, outcomes.modified(outcomes.Modified(undeliverable_here=True)), settled=False)
    told = engines.turn().the(happened.Dispositions)
    assert told.deliveries == [(theirs, received.delivery_id, "token")]
    assert not told.settled
    assert outcomes.read(told.state) == outcomes.Modified(undeliverable_here=True)
    theirs.settle(received.delivery_id, told.state)
    answer = engines.turn().the(happened.Dispositions)
    assert answer.settled
    assert answer.deliveries == [(ours, received.delivery_id, None)]
    assert engines.client.unsettled_bytes == 0


def test_presettled_messages_are_forgotten_at_once(engines: Engines) -> None:
    ours, _ = engines.sending_client(snd_settle_mode=1)
    ours.send(b"payload", b"tag", settled=True)
    assert engines.turn().the(happened.MessageReceived).settled
    assert engines.server.unsettled_bytes == 0
    assert ours.unsettled == []


def test_a_long_message_comes_in_frames_that_the_peer_takes(engines: Engines) -> None:
    engines = Engines(step=engines.step, client={"max_frame_size": 512}, server={"max_frame_size": 1024})
    payload = bytes(range(256)) * 40
    ours, theirs = engines.sending_client()
    ours.send(payload, b"tag", message_format=7)
    received = engines.turn().the(happened.MessageReceived)
    assert received == (theirs, 0, b"tag", 7, False, b"", payload)
    assert engines.server.partial_bytes == 0
    mine, back = engines.receiving_client(name="back")
    back.send(payload, b"tag")
    back.send(b"", b"empty")
    assert [event.payload for event in engines.turn().all(happened.MessageReceived)] == [payload, b""]
    assert mine.credit == 98


def test_settlements_of_one_turn_are_joined_whatever_their_order(engines: Engines) -> None:
    ours, theirs = engines.sending_client()
    for number in range(10):
        ours.send(b"x", b"tag", context=number)
    received = [event.delivery_id for event in engines.turn().all(happened.MessageReceived)]
    for delivery_id in (3, 1, 2, 0, 9, 7, 5):
        theirs.settle(received[delivery_id], outcomes.ACCEPTED)
    theirs.settle(received[4], outcomes.RELEASED)
    frames = engines.server.data_to_send()
    assert len(frames) == 5  # 0 to 3, 5, 7, 9, and the released one
    for frame in frames:
        engines.client.receive_data(frame, 0.0)
    assert ours.unsettled == [(6, 6), (8, 8)]


def test_a_range_settles_what_is_in_it_of_all_links_and_nothing_else(engines: Engines) -> None:
    ours, theirs = engines.receiving_client()
    for number in range(6):
        theirs.send(b"x", b"tag", context=number)
    engines.turn()
    for delivery_id in (1, 2, 3):
        ours.settle(delivery_id, outcomes.ACCEPTED)
    told = engines.turn().the(happened.Dispositions)
    assert [context for _, _, context in told.deliveries] == [1, 2, 3]
    assert [context for _, context in theirs.unsettled] == [0, 4, 5]


def test_an_outcome_is_told_once(engines: Engines) -> None:
    ours, theirs = engines.receiving_client()
    theirs.send(b"x", b"tag")
    engines.turn()
    ours.settle(0, outcomes.ACCEPTED, settled=False)
    ours.settle(0, outcomes.RELEASED, settled=False)
    assert engines.turn().the(happened.Dispositions).code == outcomes.ACCEPTED_CODE


def test_source_and_target_are_echoed_as_they_came(engines: Engines) -> None:
    key, inner = Symbol("com.microsoft:session-filter"), Described(ULong(0x137000000C), "session")
    source = terminus.source("amqps://host/queue", filters={key: inner})
    source.value[1] = UInt(2)
    ours = engines.client.begin().receiver(
        "link", source=source, target=terminus.target(None), properties={"a": UInt(9)}
    )
    link = engines.turn().the(happened.AttachRequested).link
    assert isinstance(link, SendingLink)
    assert link.source == source
    assert terminus.address_of(link.source) == "amqps://host/queue"
    assert terminus.filters_of(link.source) == {key: inner}
    assert link.properties == {Symbol("a"): UInt(9)}
    link.attach(source=link.source, target=link.target, properties={"com.microsoft:locked-until-utc": 5})
    engines.turn()
    assert ours.source == source
    assert type(ours.source.value[1]) is UInt
    assert ours.properties == {"com.microsoft:locked-until-utc": 5}
    assert ours.attached


def test_a_refused_link_is_attached_to_nothing_and_detached_with_the_error(engines: Engines) -> None:
    ours = engines.client.begin().receiver("link", source=terminus.source("queue"), target=terminus.target(None))
    engines.turn().the(happened.AttachRequested).link.refuse(_REFUSAL)
    engines.turn()
    assert [type(event) for event in engines.at_client] == [happened.Attached, happened.Detached]
    assert ours.source is None
    assert ours.target is None
    assert engines.the(happened.Detached) == (ours, _REFUSAL)
    assert engines.at_server == []
    assert engines.server.link_count == engines.client.link_count == 0


def test_an_answer_to_attach_may_come_late_and_for_nothing(engines: Engines) -> None:
    session = engines.client.begin()
    ours = session.receiver("link", source=terminus.source("queue"))
    link = engines.turn().the(happened.AttachRequested).link
    ours.detach()
    assert engines.turn().the(happened.Detached) == (link, None)
    link.attach(source=link.source, target=link.target)
    link.refuse(_REFUSAL)
    link.detach(_REFUSAL)
    assert engines.turn().at_client == []
    assert engines.server.link_count == engines.client.link_count == 0


def test_detach_is_answered_and_what_was_unsettled_is_told(engines: Engines) -> None:
    ours, theirs = engines.receiving_client()
    theirs.send(b"x", b"tag", context="kept")
    engines.turn()
    ours.detach()
    assert engines.turn().the(happened.Detached) == (theirs, None)
    assert theirs.unsettled == [(0, "kept")]
    theirs.settle(0, outcomes.ACCEPTED)
    assert engines.turn().at_client == []
    with pytest.raises(NotSendable):
        theirs.send(b"x", b"tag")


def test_a_handle_is_used_again_after_both_sides_have_detached(engines: Engines) -> None:
    ours, theirs = engines.sending_client()
    for name in ("second", "third"):
        theirs.detach(_REFUSAL)
        assert engines.turn().the(happened.Detached) == (ours, _REFUSAL)
        ours = ours.session.sender(name, target=terminus.target("queue"))
        assert ours.handle == 0
        link = engines.turn().the(happened.AttachRequested).link
        assert isinstance(link, ReceivingLink)
        theirs = link
        theirs.attach(source=theirs.source, target=theirs.target)
        engines.turn()


def test_end_is_answered_and_takes_its_links_along(engines: Engines) -> None:
    ours, theirs = engines.sending_client()
    ours.send(b"x", b"tag")
    engines.turn()
    ours.session.end()
    engines.turn()
    assert engines.at_server == [happened.Detached(theirs, None), happened.SessionEnded(theirs.session, None)]
    assert engines.at_client == []
    assert engines.server.unsettled_bytes == engines.server.link_count == 0
    theirs.settle(0, outcomes.ACCEPTED)
    again, _ = engines.sending_client()
    assert again.session.channel == 0


def test_what_was_unsettled_is_told_after_the_end_of_a_session_too(engines: Engines) -> None:
    session = engines.client.begin()
    ours = [session.receiver(name, source=terminus.source("queue")) for name in ("one", "two", "three")]
    theirs = [event.link for event in engines.turn().all(happened.AttachRequested)]
    for link in theirs:
        link.attach(source=link.source, target=link.target)
    engines.turn()
    for link in ours:
        link.grant(5)
    engines.turn()
    one, two, three = (link for link in theirs if isinstance(link, SendingLink))
    for link, context in ((one, "a"), (two, "b"), (one, "c")):
        link.send(b"x", b"tag", context=context)
    session.end()
    assert len(engines.turn().all(happened.Detached)) == 3
    assert (one.unsettled, two.unsettled, three.unsettled) == ([(0, "a"), (2, "c")], [(1, "b")], [])


def test_close_is_answered_and_takes_all_along(engines: Engines) -> None:
    _, theirs = engines.sending_client()
    engines.client.close()
    engines.turn()
    assert engines.at_server == [
        happened.Detached(theirs, None),
        happened.SessionEnded(theirs.session, None),
        happened.ConnectionEnded(None, by_peer=True),
    ]
    assert engines.at_client == [happened.ConnectionEnded(None, by_peer=True)]
    assert engines.server.ended
    assert engines.server.receive_data(b"anything", 0.0) == []
    assert engines.server.tick(1e9) == (None, [])


def test_a_server_closes_with_a_condition(engines: Engines) -> None:
    ours, _ = engines.sending_client()
    engines.server.close(AmqpError("amqp:connection:forced", "draining"))
    engines.server.close()
    engines.turn()
    assert engines.at_client[0] == happened.Detached(ours, AmqpError("amqp:connection:forced", "draining"))
    assert engines.at_client[-1].error == AmqpError("amqp:connection:forced", "draining")  # type: ignore[union-attr]
    assert engines.at_server == [happened.ConnectionEnded(None, by_peer=True)]


def test_a_lost_socket_ends_everything(engines: Engines) -> None:
    _, theirs = engines.sending_client()
    assert engines.server.connection_lost() == [
        happened.Detached(theirs, None),
        happened.SessionEnded(theirs.session, None),
        happened.ConnectionEnded(None, by_peer=True),
    ]
    assert engines.server.connection_lost() == []


def test_a_client_that_is_not_let_in_hears_so(engines: Engines) -> None:
    engines.lets_in = False
    engines.turn()
    assert isinstance(engines.at_server[-1], happened.ConnectionEnded)
    assert isinstance(engines.at_client[-1], happened.ConnectionEnded)
    assert engines.at_server[-1].error == AmqpError("amqp:unauthorized-access", "SASL was refused")


def test_many_sessions_and_links_live_on_one_connection(engines: Engines) -> None:
    links = [engines.sending_client(name=f"link{number}") for number in range(20)]
    for number, (ours, _) in enumerate(links):
        ours.send(b"%d" % number, b"tag")
    received = engines.turn().all(happened.MessageReceived)
    assert {event.link: event.payload for event in received} == {
        theirs: b"%d" % number for number, (_, theirs) in enumerate(links)
    }
