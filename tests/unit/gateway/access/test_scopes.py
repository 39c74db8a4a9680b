"""What a path is to those who guard it and to those who open it is the same: nobody shows one and takes another."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partitionedqueue_gateway.access.scopes import EVERYTHING, Scope, reaches, scope_of
from partitionedqueue_gateway.entities import addresses

NAMES = ("a", "team-a", "default", "subscriptions", "", "*", "..", "A", "a%2fb", "a%3fb", "a?b")
NODES = ("$management", "%24management", "$cbs", "$DeadLetterQueue", "$Transfer", "$transfer/$deadletterqueue")
SEGMENTS = st.sampled_from((*NAMES, *NODES))


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("", EVERYTHING),
        ("sb://host/", EVERYTHING),
        ("sb://host:5672", EVERYTHING),
        ("amqps://host:5671/Orders/$Management", ("default", "orders", "$management")),
        ("/orders?api-version=2017-04", ("default", "orders")),
        ("team-a/orders", ("team-a", "orders")),
        ("team-a/orders/$DeadLetterQueue", ("team-a", "orders", "$deadletterqueue")),
        ("team-a/*", ("team-a",)),
        ("orders/subscriptions/invoices", ("default", "orders", "subscriptions", "invoices")),
        ("team-a/subscriptions", ("team-a", "subscriptions")),
        ("team-a/subscriptions/$management", ("team-a", "subscriptions", "$management")),
        ("https%3a", ("default", "https:")),
        ("orders/$1x://h/victim", ("default", "orders", "$1x:", "h", "victim")),
    ],
)
def test_a_path_is_read_in_any_dress(text: str, scope: Scope) -> None:
    assert scope_of(text, "default") == scope


@example(["a%2fb", "a"], "")
@given(st.lists(SEGMENTS, max_size=5), st.sampled_from(["", "/", "sb://host/", "amqp://host:1/"]))
def test_the_queue_that_is_guarded_is_the_one_that_is_opened(segments: list[str], dress: str) -> None:
    address = addresses.parse(dress + "/".join(segments))
    if not re.fullmatch(r"[a-z0-9-]+", address.name) or not re.fullmatch(r"[a-z0-9-]*", address.namespace):
        return  # no queue has such a name, no namespace such a one
    queue = (address.namespace or "default", address.name)
    assert scope_of(address.path, "default")[:2] == queue


@given(st.lists(SEGMENTS, max_size=5), st.lists(SEGMENTS, max_size=5))
def test_a_scope_reaches_what_begins_with_it_and_nothing_else(one: list[str], other: list[str]) -> None:
    scope, path = scope_of("/".join(one), "default"), scope_of("/".join(other), "default")
    assert reaches(scope, path) == (list(path[: len(scope)]) == list(scope))
    assert reaches(EVERYTHING, path)
