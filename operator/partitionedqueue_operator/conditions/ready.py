"""Ready: every pod is ready, and what the spec says holds in every partition."""

from partitionedqueue_operator.conditions.standing import NAMED_MAX, Condition, Standing, named


def ready(standing: Standing) -> Condition:
    """Where it is not, the message says which partitions are behind and why; they are tried until it holds."""
    if standing.refusal is not None:
        return Condition("Ready", False, standing.refusal.reason, standing.refusal.message)
    if faults := standing.observed.faults:
        return Condition("Ready", False, "ApplyFailed", "; ".join(faults))
    if standing.rolling and not standing.making:
        words = f"{standing.updated} of {standing.total} pods are as the spec says"
        if standing.sick:
            words += f"; {named(standing.sick)}"
        return Condition("Ready", False, "RollingOut", words)
    if standing.sick:
        return Condition("Ready", False, "PartitionsUnavailable", named(standing.sick))
    if standing.unsettled:
        which = ", ".join(map(str, standing.unsettled[:NAMED_MAX]))
        words = f"the settings do not hold yet in {len(standing.unsettled)} partitions: {which}"
        return Condition("Ready", False, "SettingsPending", words)
    return Condition("Ready", True, "Ready", f"all {standing.total} partitions serve and have the spec's settings")
