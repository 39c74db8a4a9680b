"""Progressing: something is on its way to what the spec says."""

from partitionedqueue_operator.conditions.standing import Condition, Standing


def progressing(standing: Standing) -> Condition:
    """A partition that is merely sick is no progress; Ready tells of it."""
    if standing.refusal is not None:
        return Condition("Progressing", False, "NotAccepted", "nothing is done until the queue is accepted")
    if standing.observed.stateful_set is None or standing.making:
        words = f"{standing.ready} of {standing.total} partitions have come up"
        return Condition("Progressing", True, "Creating", words)
    if standing.rolling:
        words = f"{standing.updated} of {standing.total} pods are as the spec says"
        return Condition("Progressing", True, "RollingOut", words)
    if standing.unsettled and not standing.sick:
        words = f"{standing.total - len(standing.unsettled)} of {standing.total} partitions have the settings"
        return Condition("Progressing", True, "Configuring", words)
    if standing.sick:
        words = f"waiting for {len(standing.sick)} partitions that do not serve"
        return Condition("Progressing", False, "Waiting", words)
    return Condition("Progressing", False, "Settled", "everything is as the spec says")
