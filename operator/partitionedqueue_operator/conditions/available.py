"""Available: at least one partition serves."""

from partitionedqueue_operator.conditions.standing import Condition, Standing, named


def available(standing: Standing) -> Condition:
    """The message names the partitions that do not."""
    total, ready = standing.total, standing.ready
    if total and ready == total:
        return Condition("Available", True, "AllPartitionsServe", f"all {total} partitions serve")
    if ready:
        words = f"{ready} of {total} partitions serve; {named(standing.sick)}"
        return Condition("Available", True, "SomePartitionsServe", words)
    return Condition("Available", False, "NoPartitionServes", named(standing.sick) or "there are no brokers")
