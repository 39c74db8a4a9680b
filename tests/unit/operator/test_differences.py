"""Whether a live object is as wanted."""

from typing import Any

import pytest

from partitionedqueue_operator.cluster.differences import differs


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        ({"a": 1}, {"a": 1, "filled": "in"}),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 1, "d": 2}]}}),
        ({"requests": {"memory": "1024Mi", "cpu": "0.5"}}, {"requests": {"memory": "1Gi", "cpu": "500m"}}),
        ({"emptyDir": {}}, {"emptyDir": {}}),
        ({"nothing": []}, {}),
    ],
)
def test_what_others_have_added_makes_no_difference(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    assert not differs(wanted, live)


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        ({"a": {"b": 1}}, {"a": None}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": [1]}, {"a": None}),
        ({"selector": {"a": "b"}}, {"selector": {"a": "b", "more": "narrow"}}),
        ({"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "b", "more": "narrow"}}),
        ({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "2Gi"}}),
        ({"metadata": {"annotations": {"applied": "1"}}}, {"metadata": {"annotations": {"applied": "2"}}}),
    ],
)
def test_what_is_not_as_wanted_makes_one(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    assert differs(wanted, live)
