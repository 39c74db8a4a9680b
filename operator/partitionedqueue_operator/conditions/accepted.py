"""Accepted: the queue may be, as it is written down."""

from partitionedqueue_operator.conditions.standing import Condition, Standing


def accepted(standing: Standing) -> Condition:
    """False where the operator does not do what the spec says; the message tells what to change."""
    if standing.refusal is None:
        return Condition("Accepted", True, "Accepted", "the spec holds and there is room for the queue")
    return Condition("Accepted", False, standing.refusal.reason, standing.refusal.message)
