"""Keep-alives and peers that say nothing (AMQP 1.0 §2.4.5)."""

from harness.amqp_engines import Engines
from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import framing, violations
from partitionedqueue_gateway.limits import AMQP_CLOSE_S_MAX, AMQP_GREETING_S_MAX


def test_a_peer_hears_of_us_twice_in_its_idle_time() -> None:
    engines = Engines(client={"idle_timeout_ms": 30_000}).turn()
    server, now_s = engines.server, engines.now_s
    assert server.tick(now_s) == (now_s + 15, [])
    assert server.data_to_send() == []
    for turn in (1, 2, 3):
        assert server.tick(now_s + 15 * turn) == (now_s + 15 * (turn + 1), [])
        assert server.data_to_send() == [framing.KEEP_ALIVE]


def test_a_peer_that_wants_to_hear_nothing_hears_nothing() -> None:
    engines = Engines(client={"idle_timeout_ms": 0}, server={"idle_timeout_ms": 0}).turn()
    assert engines.server.tick(engines.now_s + 1e6) == (None, [])
    assert engines.server.data_to_send() == []


def test_a_peer_that_is_silent_for_twice_its_time_is_gone() -> None:
    engines = Engines(client={"idle_timeout_ms": 0}, server={"idle_timeout_ms": 60_000})
    _, theirs = engines.sending_client()
    start_s = engines.now_s
    engines.now_s += 100
    engines.tell_server(framing.KEEP_ALIVE)
    assert engines.server.tick(start_s + 219) == (start_s + 220, [])
    _, events = engines.server.tick(start_s + 220)
    assert [type(event) for event in events] == [happened.Detached, happened.SessionEnded, happened.ConnectionEnded]
    assert events[-1].error.condition == violations.RESOURCE_LIMIT_EXCEEDED  # type: ignore[union-attr]
    assert theirs.ended
    engines.turn()
    assert engines.the(happened.ConnectionEnded).by_peer


def test_a_connection_that_is_never_opened_ends() -> None:
    engines = Engines()
    engines.tell_server(framing.SASL_HEADER)
    due_s = engines.now_s + AMQP_GREETING_S_MAX
    assert engines.server.tick(due_s - 1) == (due_s, [])
    _, events = engines.server.tick(due_s)
    assert isinstance(events[-1], happened.ConnectionEnded)
    assert engines.server.ended


def test_a_close_that_is_not_answered_ends_all_the_same() -> None:
    engines = Engines()
    engines.sending_client()
    engines.server.close()
    assert engines.server.tick(engines.now_s) == (engines.now_s + AMQP_CLOSE_S_MAX, [])
    _, events = engines.server.tick(engines.now_s + AMQP_CLOSE_S_MAX)
    assert events == [happened.ConnectionEnded(None, by_peer=False)]


def test_a_closing_connection_hears_only_close() -> None:
    engines = Engines()
    ours, _ = engines.sending_client()
    engines.server.close()
    ours.send(b"x", b"tag")
    assert engines.tell_server(b"".join(engines.client.data_to_send())) == []
