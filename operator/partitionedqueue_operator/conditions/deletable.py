"""Deletable: whether deleting the queue would lose messages, and what to do if it would."""

from partitionedqueue.model.queue_spec import DeletionPolicy
from partitionedqueue_operator.conditions.standing import Condition, Standing


def deletable(standing: Standing) -> Condition:
    """What the deletion policy makes of it: the API server refuses to delete a queue where this is False."""
    policy = standing.spec.deletion_policy if standing.spec else DeletionPolicy.DELETE_IF_EMPTY
    if policy is DeletionPolicy.DELETE:
        return Condition("Deletable", True, "PolicyDelete", "deleting the queue deletes its messages with it")
    if standing.volumes_go:
        words = f"spec.deletionPolicy is {policy} and not carried out yet: volumes would still go with the queue"
        return Condition("Deletable", False, "PolicyPending", words)
    if policy is DeletionPolicy.RETAIN:
        words = "deleting the queue keeps its volumes; applied again, it has its messages again"
        return Condition("Deletable", True, "PolicyRetain", words)
    how = "empty it (pq purge), or set spec.deletionPolicy to Delete, or to Retain to keep the volumes"
    if standing.counts.messages:
        words = f"the queue holds {standing.counts.messages:,} messages; {how}"
        return Condition("Deletable", False, "HoldsMessages", words)
    if standing.counts_complete is not False:
        return Condition("Deletable", True, "Empty", "the queue is empty")
    words = f"not every partition can be counted; wait until it is well, or {how}"
    return Condition("Deletable", False, "CountUnknown", words)
