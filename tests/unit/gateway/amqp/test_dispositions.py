import pytest

from partitionedqueue.model.amqp_types import Encoded
from partitionedqueue_gateway.amqp import dispositions
from partitionedqueue_gateway.amqp.dispositions import Abandon, Complete, DeadLetter, Defer, Disposition
from partitionedqueue_gateway.amqp.engine import outcomes
from partitionedqueue_gateway.amqp.engine.encoding import encode
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED, NO_OUTCOME, RELEASED, Modified
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError
from partitionedqueue_gateway.amqp.engine.values import Described, Symbol, ULong
from partitionedqueue_gateway.amqp.failures import InvalidRequest, NotSupported

INFO = {Symbol("DeadLetterReason"): "broken", Symbol("DeadLetterErrorDescription"): "it fell", Symbol("tries"): 3}


@pytest.mark.parametrize(
    ("state", "meant"),
    [
        (ACCEPTED, Complete()),
        (RELEASED, Abandon(counted=False)),
        (NO_OUTCOME, Abandon(counted=False)),
        (outcomes.modified(Modified()), Abandon()),
        (outcomes.modified(Modified(delivery_failed=True)), Abandon()),
        (outcomes.modified(Modified(annotations={Symbol("a"): 1})), Abandon(changes={"a": Encoded(encode(1))})),
        (
            outcomes.modified(Modified(undeliverable_here=True, annotations={Symbol("a"): 1})),
            Defer({"a": Encoded(encode(1))}),
        ),
        (outcomes.REJECTED, DeadLetter()),
        (
            outcomes.rejected(AmqpError(dispositions.DEAD_LETTER, None, INFO)),
            DeadLetter("broken", "it fell", {"tries": Encoded(encode(3))}),
        ),
        (outcomes.rejected(AmqpError(dispositions.DEAD_LETTER, "words")), DeadLetter("", "words")),
        (outcomes.rejected(AmqpError("my:condition", "words")), DeadLetter("my:condition", "words")),
    ],
)
def test_an_outcome_means_what_service_bus_makes_of_it(state: bytes, meant: Disposition) -> None:
    assert dispositions.read(state) == meant


def test_a_transactions_outcome_is_not_served() -> None:
    state = encode(Described(ULong(0x34), [b"txn", Described(ULong(0x24), [])]))
    with pytest.raises(NotSupported, match="transactions"):
        dispositions.read(state)


@pytest.mark.parametrize("state", [b"\x00\x53\x99\x45", b"\x41", b"\x00\x53\x25\xc0\xff"])
def test_an_outcome_that_is_none_is_refused(state: bytes) -> None:
    with pytest.raises((InvalidRequest, NotSupported)):
        dispositions.read(state)


def test_a_reason_that_is_no_text_is_refused() -> None:
    state = outcomes.rejected(AmqpError(dispositions.DEAD_LETTER, None, {Symbol("DeadLetterReason"): 5}))
    with pytest.raises(InvalidRequest, match="DeadLetterReason"):
        dispositions.read(state)


def test_a_dead_lettering_is_answered_without_its_error() -> None:
    state = outcomes.rejected(AmqpError(dispositions.DEAD_LETTER, None, INFO))
    assert dispositions.answer_to(state, outcomes.REJECTED_CODE) == outcomes.REJECTED


@pytest.mark.parametrize("state", [ACCEPTED, RELEASED, outcomes.modified(Modified(undeliverable_here=True))])
def test_every_other_outcome_is_answered_with_itself(state: bytes) -> None:
    assert dispositions.answer_to(state, outcomes.code_of(state)) == state
