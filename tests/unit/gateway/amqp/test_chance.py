"""Two engines that do anything that is allowed, at any time, understand each other."""

import random
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from harness.amqp_engines import Engines
from partitionedqueue_gateway.amqp.engine import events as happened
from partitionedqueue_gateway.amqp.engine import outcomes
from partitionedqueue_gateway.amqp.engine.link import ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError

_SLOW = [HealthCheck.too_slow]
"""On machines that do much else."""
_ERROR = AmqpError("amqp:internal-error", "chance would have it")


@given(st.integers(0, 2**32))
@examples(max_examples=150, deadline=None, suppress_health_check=_SLOW)
def test_two_engines_that_do_as_chance_says_understand_each_other(seed: int) -> None:  # noqa: C901 -- chance's choices
    """Links, messages of all sizes, settling, detaching, ending, in any order and cut anywhere: nothing is lost."""
    chance = random.Random(seed)
    engines = Engines(
        step=chance.choice((0, 1, 33, 600)),
        server={"max_frame_size": chance.choice((512, 4096)), "incoming_window": chance.choice((3, 50))},
        client={"max_frame_size": chance.choice((512, 4096)), "incoming_window": chance.choice((3, 50))},
    )
    pairs = []
    for number in range(chance.randint(1, 4)):
        attach = engines.sending_client if chance.random() < 0.5 else engines.receiving_client
        pairs.append(attach(name=f"{number}", credit=30))
    got = _Got()
    for _ in range(chance.randint(1, 30)):
        ends = chance.choice(pairs)
        (sender,) = (link for link in ends if isinstance(link, SendingLink))
        (receiver,) = (link for link in ends if isinstance(link, ReceivingLink))
        match chance.randrange(12):
            case 0 if chance.random() < 0.2:
                chance.choice(ends).detach(_ERROR)
            case 1 if chance.random() < 0.2:
                chance.choice(ends).session.end()
            case 2 if receiver.attached:
                receiver.grant(chance.randint(receiver.credit, 30))
            case _ if sender.credit > 0:
                payload = b"%d" % chance.randrange(10**9) * chance.choice((1, 10, 300))
                sender.send(payload, b"tag", settled=chance.random() < 0.2)
                got.expect(receiver, payload)
        if chance.random() < 0.5:
            got.take(engines.turn())
    got.take(engines.turn())
    got.take(engines.turn())
    for ends in pairs:
        for link in ends if all(each.attached for each in ends) else ():
            assert got.payloads.get(link, []) == got.expected.get(link, [])
    engines.client.close()
    assert [event.error for event in engines.turn().all(happened.ConnectionEnded)] == [None, None]
    for connection in (engines.server, engines.client):
        assert connection.partial_bytes == connection.link_count == connection.unsettled_bytes == 0


class _Got:
    """What receivers should have, and have."""

    def __init__(self) -> None:
        self.expected: dict[Any, list[bytes]] = {}
        self.payloads: dict[Any, list[bytes]] = {}

    def expect(self, link: Any, payload: bytes) -> None:
        self.expected.setdefault(link, []).append(payload)

    def take(self, engines: Engines) -> None:
        assert not engines.all(happened.ConnectionEnded)
        for event in engines.all(happened.MessageReceived):
            self.payloads.setdefault(event.link, []).append(event.payload)
            event.link.settle(event.delivery_id, outcomes.ACCEPTED)
