"""Events: what a person should know of, once, when it happens."""

from dataclasses import dataclass

from partitionedqueue_operator.conditions.standing import Standing, condition_in, named
from partitionedqueue_operator.observed import Manifest


@dataclass(frozen=True, slots=True)
class Telling:
    """An Event to be."""

    reason: str
    message: str
    warning: bool = False


def transitions(standing: Standing, before: Manifest) -> tuple[Telling, ...]:
    """What has changed since the status was last written. A queue that is being made has no news of every pod."""
    if standing.refusal is not None:
        if condition_in(before, "Accepted").get("reason") == standing.refusal.reason:
            return ()
        return (Telling(standing.refusal.reason, standing.refusal.message, warning=True),)
    told = []
    busy = condition_in(before, "Progressing").get("reason", "Creating") in ("Creating", "RollingOut")
    sick_before = {sick["partition"] for sick in before.get("unavailablePartitions") or []}
    new = [sick for sick in standing.sick if sick.partition not in sick_before]
    if new and not busy:
        told.append(Telling("PartitionUnavailable", named(new), warning=True))
    if sick_before and not standing.sick and not busy:
        told.append(Telling("PartitionAvailable", f"all {standing.total} partitions serve again"))
    holds = not standing.sick and not standing.unsettled and not standing.rolling
    if holds and condition_in(before, "Ready").get("status") != "True" and (busy or not sick_before):
        words = f"all {standing.total} partitions serve and have the settings of generation {standing.generation}"
        told.append(Telling("Configured", words))
    return tuple(told)
