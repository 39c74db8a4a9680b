"""What is remembered between two looks at a queue, and what one act's failure does to the others."""

from typing import Any, cast

from partitionedqueue_operator.cluster.api import ApiFault
from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.kinds import BY_NAME, QUEUES
from partitionedqueue_operator.controller import Controller
from partitionedqueue_operator.observed import Key
from partitionedqueue_operator.reconcile import Plan
from partitionedqueue_operator.settings import Settings

KEY = Key("shop", "orders")


class Acts:
    """A cluster in which what is named does not succeed."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.done: list[str] = []

    async def make_so(self, _key: Key, wanted: dict[str, Any]) -> bool:
        return await self.remove(_key, wanted["kind"], "")

    async def remove(self, _key: Key, kind: str, _name: str) -> bool:
        if kind in self.failing:
            raise ApiFault(403, "not allowed")
        self.done.append(kind)
        return True

    async def write_status(self, *_: object) -> bool:
        return False


def controller(acts: Acts | None = None) -> Controller:
    return Controller(Settings(broker_image="i"), Cache(), cast("Any", acts or Acts()))


def queue(uid: str, policy: str) -> dict[str, Any]:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "uid": uid}
    return {"metadata": metadata, "spec": {"deletionPolicy": policy}}


def workload(made_for: str) -> dict[str, Any]:
    labels = {"messaging.partitionedqueue.io/queue": "orders"}
    annotations = {"messaging.partitionedqueue.io/queue-uid": made_for}
    name = {"name": "orders-broker", "namespace": "shop", "uid": f"s-{made_for}"}
    return {"metadata": {**name, "labels": labels, "annotations": annotations}}


def test_the_last_word_on_an_earlier_queue_says_nothing_about_a_later_one() -> None:
    one, sets = controller(), BY_NAME["StatefulSet"]
    one.seen(sets, workload("u-1"), gone=False)
    one.seen(QUEUES, queue("u-1", "Delete"), gone=False)
    one.seen(QUEUES, queue("u-1", "Delete"), gone=True)
    assert one.observe(KEY).last_policy == "Delete"
    one.seen(sets, workload("u-2"), gone=False)  # a later queue of the name, which nobody saw come and go
    assert one.observe(KEY).last_policy == ""


def test_of_a_queue_that_has_left_nothing_nothing_is_remembered() -> None:
    one, sets = controller(), BY_NAME["StatefulSet"]
    one.seen(sets, workload("u-1"), gone=False)
    one.seen(QUEUES, queue("u-1", "Delete"), gone=False)
    one.seen(QUEUES, queue("u-1", "Delete"), gone=True)
    one.seen(sets, workload("u-1"), gone=True)
    assert not one._last_policy


async def test_what_cannot_be_removed_is_told_and_holds_nothing_else_up() -> None:
    acts = Acts("NetworkPolicy")
    one = controller(acts)
    gone = (("NetworkPolicy", "orders-broker"), ("Service", "orders-broker"))
    changed, fault = await one._make_so(KEY, Plan(unwanted=gone))
    assert (changed, acts.done) == (True, ["Service"])
    assert fault is not None
    assert one.observe(KEY).faults == ("NetworkPolicy orders-broker: not allowed",)


async def test_a_queue_that_turns_out_to_be_gone_when_its_status_is_written_is_given_up() -> None:
    one = controller()
    one.seen(QUEUES, queue("u-1", "Retain"), gone=False)
    await one._tell(one.observe(KEY), Plan(status={"availability": "Available"}))
    assert one.cache.queue(KEY) is None
    one.seen(QUEUES, queue("u-2", "Retain"), gone=False)
    assert one.cache.queue(KEY) is not None
