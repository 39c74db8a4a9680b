from partitionedqueue.model.placement import BrokerAddress
from partitionedqueue.model.queue_spec import QueueSpec
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.queue import Queue, QueueName


def queue(name: str, namespace: str = "shop", *, uid: str = "1", deliveries: int = 10) -> Queue:
    spec = QueueSpec(name=name, namespace=namespace, max_delivery_count=deliveries)
    return Queue(spec=spec, uid=uid, brokers=(BrokerAddress(name, 6379),))


def test_a_namespace_that_is_read_whole_says_nothing_of_the_others() -> None:
    catalog = Catalog()
    for scope in ("shop", "office"):
        catalog.expect(scope, 0.0)
    catalog.replace("shop", [queue("orders")], {})
    assert not catalog.synced
    catalog.replace("office", [queue("letters", "office")], {})
    catalog.replace("shop", [], {})
    assert [*catalog.queues] == [QueueName("office", "letters")]


def test_listeners_hear_of_changes_and_of_nothing_else() -> None:
    catalog, heard = Catalog(), list[tuple[str, int | None]]()
    catalog.listen(lambda name, one: heard.append((name.name, one.spec.max_delivery_count if one else None)))
    catalog.put(queue("orders"))
    catalog.put(queue("orders"))
    catalog.put(queue("orders", deliveries=3))
    catalog.remove(QueueName("shop", "orders"))
    catalog.remove(QueueName("shop", "orders"))
    assert heard == [("orders", 10), ("orders", 3), ("orders", None)]


def test_a_queue_that_is_no_longer_understood_has_gone_for_everybody_but_is_named() -> None:
    catalog, gone = Catalog(), list[QueueName]()
    catalog.put(queue("orders"))
    catalog.listen(lambda name, one: gone.append(name) if one is None else None)
    name = QueueName("shop", "orders")
    catalog.put_unreadable(name, "no such field")
    assert gone == [name]
    assert catalog.unreadable == {name: "no such field"}
    catalog.put(queue("orders"))
    assert not catalog.unreadable


def test_connections_are_good_for_a_changed_queue_but_not_for_another_of_its_name() -> None:
    first = queue("orders")
    assert queue("orders", deliveries=3).is_served_as(first)
    assert not queue("orders", uid="2").is_served_as(first)


def test_its_age_is_that_of_the_part_that_was_not_heard_of_longest() -> None:
    catalog = Catalog()
    catalog.expect("shop", 0.0)
    catalog.expect("office", 0.0)
    catalog.hear("shop", 100.0)
    catalog.hear("office", 40.0)
    catalog.try_at("office", 90.0)
    assert catalog.age_s(100.0) == 60.0
    assert catalog.idle_s(100.0) == 10.0
