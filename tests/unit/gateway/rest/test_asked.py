"""Who may manage one queue manages no other, whatever path they find."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partitionedqueue_gateway.access.scopes import scope_of
from partitionedqueue_gateway.rest.administration.asked import Asked

WORDS = ("orders", "victim", "team-a", "default", "Orders", "my_queue", "subscriptions", "h", "", ".", "..", "*")
STRANGE = ("$1x:", "x:", "%2f", "%252F", "a%2fb", "a?b", "a#b", "orders%00")
BESIDE = ("$management", "$cbs", "$DeadLetterQueue", "$Transfer")
SEGMENTS = st.sampled_from((*WORDS, *STRANGE, *BESIDE))


@example(["orders%2F$1x:", "", "h", "victim"])
@example(["orders", "$1x:", "", "h", "victim"])
@example(["%74eam-a", "victim"])
@given(st.lists(SEGMENTS, min_size=1, max_size=6))
def test_the_queue_that_rights_are_asked_for_is_the_one_that_is_acted_on(segments: list[str]) -> None:
    asked = Asked.of("/".join(segments), "default")
    if not asked.may_be_queue:
        return
    scope = scope_of(asked.path, "default")
    assert scope == (asked.name.namespace, *asked.title.lower().split("/"))


@pytest.mark.parametrize(
    "path",
    [
        "default/a/messages/head",
        "default/a/subscriptions/b",
        "orders/$management",
        "orders/$cbs",
        "orders/$DeadLetterQueue",
        "%74eam-a/orders",
        "x:/orders",
        "t_a/orders",
    ],
)
def test_what_stands_beside_a_queue_or_in_no_namespace_is_no_queue(path: str) -> None:
    assert not Asked.of(path, "default").may_be_queue
