"""What the watches have told, and by which queue it is found."""

from typing import Any

from partitionedqueue_operator.cluster.cache import Cache
from partitionedqueue_operator.cluster.kinds import BY_NAME, CLAIMS, PODS, QUEUES
from partitionedqueue_operator.observed import Key

KEY = Key("shop", "orders")
SERVICES = BY_NAME["Service"]


def body(name: str, *, queue: str | None = "orders", uid: str = "u", **more: Any) -> dict[str, Any]:
    labels = {"messaging.partitionedqueue.io/queue": queue} if queue else {}
    metadata = {"name": name, "namespace": "shop", "uid": uid, "labels": labels, "managedFields": [{}]}
    return {"metadata": metadata, "spec": {"containers": []}, **more}


def custom(name: str, created: str = "2026", *, partitioned: bool = True) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"enablePartitioning": partitioned}}


def test_children_are_found_by_their_queue() -> None:
    cache = Cache()
    assert cache.put(SERVICES, body("orders-broker")) == KEY
    found = cache.children(KEY)["Service", "orders-broker"]
    assert found["kind"] == "Service"
    assert "managedFields" not in found["metadata"]


def test_an_object_that_loses_its_label_is_no_longer_its_queues() -> None:
    cache = Cache()
    cache.put(SERVICES, body("orders-broker"))
    assert cache.put(SERVICES, body("orders-broker", queue=None)) == KEY
    assert cache.children(KEY) == {}


def test_an_object_that_is_given_to_another_queue_changes_hands() -> None:
    cache = Cache()
    cache.put(SERVICES, body("x"))
    assert cache.put(SERVICES, body("x", queue="other")) == Key("shop", "other")
    assert cache.children(KEY) == {}
    assert cache.children(Key("shop", "other"))


def test_the_end_of_an_earlier_object_does_not_remove_the_one_that_replaced_it() -> None:
    cache = Cache()
    cache.put(SERVICES, body("orders-broker", uid="new"))
    assert cache.remove(SERVICES, "shop", "orders-broker", "old") is None
    assert cache.children(KEY)
    assert cache.remove(SERVICES, "shop", "orders-broker", "new") == KEY
    assert cache.known() == set()


def test_pods_are_found_by_partition_and_strangers_with_our_labels_are_not() -> None:
    cache = Cache()
    for name in ("orders-broker-3", "orders-broker-11", "stranger-3", "no-number"):
        cache.put(PODS, body(name, uid=name))
    assert sorted(cache.pods(KEY)) == [3, 11]
    assert cache.pods(KEY)[3].name == "orders-broker-3"


def test_claims_know_their_layout() -> None:
    cache = Cache()
    claim = body("data-orders-broker-0")
    claim["metadata"]["labels"]["messaging.partitionedqueue.io/layout"] = "partitions-16"
    cache.put(CLAIMS, claim)
    assert [found.layout for found in cache.claims(KEY)] == ["partitions-16"]


def test_a_queues_place_is_that_among_the_older_partitioned_ones_of_its_namespace() -> None:
    cache = Cache()
    for queue in (custom("b", "2026"), custom("a", "2026"), custom("old", "2025"),
                  custom("plain", "2024", partitioned=False)):  # fmt: skip
        cache.put(QUEUES, queue)
    assert [cache.place(Key("shop", name)) for name in ("old", "a", "b")] == [0, 1, 2]
    cache.remove(QUEUES, "shop", "old", "old")
    assert cache.place(Key("shop", "b")) == 1


def test_all_that_is_held_can_be_told() -> None:
    cache = Cache()
    cache.put(QUEUES, custom("orders"))
    cache.put(SERVICES, body("orders-broker", uid="s"))
    assert set(cache.held(QUEUES)) == {("shop", "orders", "orders")}
    assert set(cache.held(SERVICES)) == {("shop", "orders-broker", "s")}
    assert cache.known() == {KEY}


def test_what_has_our_labels_and_is_no_queues_counts_as_told() -> None:
    cache = Cache()
    cache.put(PODS, body("no-number", uid="p"))
    cache.put(SERVICES, body("unlabelled", queue=None, uid="s"))
    assert set(cache.held(PODS)) == {("shop", "no-number", "p")}
    assert set(cache.held(SERVICES)) == {("shop", "unlabelled", "s")}
    assert cache.known() == set()
    cache.remove(PODS, "shop", "no-number", "p")
    assert set(cache.held(PODS)) == set()


def test_claims_that_merely_have_the_labels_are_not_the_queues() -> None:
    cache = Cache()
    for name in ("data-orders-broker-3", "data-orders-broker-03", "data-orders-broker-x", "backup"):
        cache.put(CLAIMS, body(name, uid=name))
    assert [claim.name for claim in cache.claims(KEY)] == ["data-orders-broker-3"]


def test_an_answer_that_comes_after_the_end_brings_nothing_back() -> None:
    cache = Cache()
    cache.put(QUEUES, custom("orders"))
    cache.remove(QUEUES, "shop", "orders", "orders")
    cache.answered(QUEUES, custom("orders"))
    assert cache.queue(KEY) is None
    cache.answered(QUEUES, {**custom("orders"), "metadata": {**custom("orders")["metadata"], "uid": "another"}})
    assert cache.queue(KEY) is not None


def test_an_object_that_a_watch_tells_of_again_is_there_again() -> None:
    cache = Cache()
    cache.put(SERVICES, body("orders-broker"))
    cache.remove(SERVICES, "shop", "orders-broker", "u")  # it has lost our labels
    cache.put(SERVICES, body("orders-broker"))
    cache.answered(SERVICES, body("orders-broker"))
    assert cache.children(KEY)
