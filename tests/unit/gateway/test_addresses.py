import pytest

from partitionedqueue_gateway.entities.addresses import EntityAddress, Node, SubQueue, parse, parse_node


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "Orders",
        "/orders",
        "orders/",
        "sb://host/orders",
        "sb://host:5671/orders",
        "amqps://host:5671/orders",
        "https://host/ORDERS",
        "o%72ders",
        "//orders",
    ],
)
def test_however_a_library_writes_it_an_address_is_its_path(text: str) -> None:
    assert parse(text) == EntityAddress("", "orders")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("team-a/orders", EntityAddress("team-a", "orders")),
        ("team-a%2Forders", EntityAddress("team-a", "orders")),
        ("team-a/eu/orders", EntityAddress("team-a", "eu/orders")),
        ("default/eu/Orders/$DeadLetterQueue", EntityAddress("default", "eu/orders", SubQueue.DEAD_LETTERS)),
        ("orders/$DeadLetterQueue", EntityAddress("", "orders", SubQueue.DEAD_LETTERS)),
        ("orders/%24deadletterqueue", EntityAddress("", "orders", SubQueue.DEAD_LETTERS)),
        ("orders/$Transfer/$DeadLetterQueue", EntityAddress("", "orders", SubQueue.TRANSFER_DEAD_LETTERS)),
        ("sb://h/team-a/orders/$deadletterqueue", EntityAddress("team-a", "orders", SubQueue.DEAD_LETTERS)),
        ("topic/Subscriptions/sub", EntityAddress("", "topic/subscriptions/sub")),
        ("", EntityAddress("", "")),
        ("sb://host", EntityAddress("", "")),
        ("$DeadLetterQueue", EntityAddress("", "", SubQueue.DEAD_LETTERS)),
    ],
)
def test_namespace_and_sub_queue_are_told_apart(text: str, address: EntityAddress) -> None:
    assert parse(text) == address


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("$cbs", Node.CBS),
        ("orders/$management", Node.MANAGEMENT),
        ("orders/$DeadLetterQueue/$Management", Node.MANAGEMENT),
        ("orders", Node.ENTITY),
        ("$management/orders", Node.ENTITY),
    ],
)
def test_the_last_part_tells_the_node(text: str, node: Node) -> None:
    assert parse_node(text).node is node


def test_an_address_is_shown_as_its_path() -> None:
    assert str(parse("sb://h/team-a/orders/$deadletterqueue")) == "team-a/orders/$DeadLetterQueue"
