"""Whether a watch that hears nothing is noticed."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from yarl import URL

from partitionedqueue_operator.cluster.kinds import PODS, QUEUES, Kind
from partitionedqueue_operator.freshness import Freshness


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


def ended(path: str, status: int = 200) -> Any:
    return SimpleNamespace(url=URL(f"https://server{path}"), response=SimpleNamespace(status=status))


async def tell(fresh: Freshness, path: str, status: int = 200) -> None:
    await fresh._ended(cast("Any", None), SimpleNamespace(), ended(path, status))


def test_before_the_watches_begin_nothing_is_stale(clock: SimpleNamespace) -> None:
    fresh = Freshness([QUEUES, PODS], lambda _: None)
    clock.now += 1000
    assert fresh.stale() == []


async def test_a_watch_that_hears_nothing_is_named(clock: SimpleNamespace) -> None:
    fresh = Freshness([QUEUES, PODS], lambda _: None)
    fresh.begin()
    clock.now += 100
    await tell(fresh, "/api/v1/pods?watch=true")
    clock.now += 100
    assert fresh.stale() == ["partitionedqueues for 200 s"]
    fresh.heard(QUEUES, "shop")
    assert fresh.stale() == []


async def test_a_refused_watch_is_not_one_that_lives(clock: SimpleNamespace) -> None:
    fresh = Freshness([PODS], lambda _: None)
    fresh.begin()
    clock.now += 200
    await tell(fresh, "/api/v1/pods?watch=true", 403)
    assert fresh.stale() == ["pods for 200 s"]


async def test_an_api_server_that_is_away_is_no_fault_of_the_watch(clock: SimpleNamespace) -> None:
    fresh = Freshness([PODS], lambda _: None)
    fresh.begin()
    clock.now += 200
    await fresh._failed(cast("Any", None), SimpleNamespace(), ended("/behind/a/proxy/api/v1/pods?watch=true"))
    assert fresh.stale() == []


async def test_a_list_tells_that_a_watch_begins_anew() -> None:
    lists: list[Kind] = []
    fresh = Freshness([QUEUES, PODS], lists.append)
    await tell(fresh, "/api/v1/pods?limit=500")
    await tell(fresh, "/api/v1/pods?watch=true")
    await tell(fresh, "/api/v1/namespaces")
    assert lists == [PODS]


async def test_one_namespaces_watch_does_not_live_for_anothers(clock: SimpleNamespace) -> None:
    fresh = Freshness([PODS], lambda _: None, ("a", "b"))
    fresh.begin()
    clock.now += 200
    await tell(fresh, "/api/v1/namespaces/a/pods?watch=true")
    assert fresh.stale() == ["pods in b for 200 s"]
    fresh.heard(PODS, "b")
    assert fresh.stale() == []


async def test_an_operator_that_is_blind_in_one_namespace_goes_on_for_the_others(clock: SimpleNamespace) -> None:
    fresh = Freshness([PODS], lambda _: None, ("a", "b"))
    fresh.begin()
    clock.now += 200
    await tell(fresh, "/api/v1/namespaces/a/pods?watch=true")
    await tell(fresh, "/api/v1/namespaces/b/pods?watch=true", 403)
    assert fresh.stale() == []
    assert fresh.refused() == ["pods in b"]
    clock.now += 200
    await tell(fresh, "/api/v1/namespaces/b/pods?watch=true", 403)
    assert fresh.stale() == ["pods in a for 200 s", "pods in b for 400 s"]
    await tell(fresh, "/api/v1/namespaces/b/pods?watch=true")
    assert fresh.refused() == []
