"""Who leads, with an API server made of a dictionary."""

import asyncio
from typing import Any, cast

import pytest

from partitionedqueue_operator.cluster import lease
from partitionedqueue_operator.cluster.api import Api, ApiFault
from partitionedqueue_operator.cluster.lease import Lease


class Server:
    """Keeps one Lease, with the API server's rule: who writes must have read the newest version."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.version = 0
        self.away = False

    def _stored(self, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.body

    async def get(self, *_: object) -> dict[str, Any] | None:
        if self.away:
            raise ApiFault(0, "away")
        return self.body

    async def create(self, _kind: object, body: dict[str, Any]) -> dict[str, Any]:
        if self.body is not None:
            raise ApiFault(409, "there is one")
        return self._stored(body)

    async def replace(self, _kind: object, body: dict[str, Any]) -> dict[str, Any]:
        if self.away:
            raise ApiFault(0, "away")
        if body["metadata"].get("resourceVersion") != str(self.version):
            raise ApiFault(409, "it has changed")
        return self._stored(body)

    @property
    def holder(self) -> str:
        return str(self.body["spec"]["holderIdentity"]) if self.body else ""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty times as quick as in a cluster."""
    for name, seconds in (("RENEW_S", 0.1), ("GIVE_UP_S", 0.5), ("DURATION_S", 1)):
        monkeypatch.setattr(lease, name, seconds)


class Candidate:
    """A replica."""

    def __init__(self, server: Server, name: str) -> None:
        self._leading = asyncio.Event()
        one = Lease(cast("Api", server), namespace="n", name="operator", holder=name)
        self.task = asyncio.create_task(one.lead(self._work))

    async def _work(self) -> None:
        self._leading.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._leading.clear()

    def leads(self) -> bool:
        return self._leading.is_set()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_one_of_two_leads_and_keeps_leading() -> None:
    server = Server()
    both = [Candidate(server, name) for name in ("a", "b")]
    for _ in range(20):
        await asyncio.sleep(0.1)
        assert [one.leads() for one in both].count(True) <= 1
    assert both[0].leads()
    assert server.body is not None
    assert server.body["spec"]["leaseTransitions"] == 1
    for one in both:
        await one.end()


async def test_a_leader_that_ends_gives_the_lease_back_at_once() -> None:
    server = Server()
    first = Candidate(server, "a")
    await asyncio.sleep(0.05)
    second = Candidate(server, "b")
    await asyncio.sleep(0.05)
    await first.end()
    assert server.holder == ""
    await asyncio.sleep(0.3)
    assert second.leads()
    await second.end()


async def test_a_leader_that_vanishes_is_followed_when_its_time_is_over() -> None:
    server = Server()
    server._stored({"metadata": {}, "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 1}})
    one = Candidate(server, "b")
    await asyncio.sleep(0.6)
    assert not one.leads()
    await asyncio.sleep(0.9)
    assert one.leads()
    assert server.holder == "b"
    await one.end()


async def test_a_leader_that_cannot_renew_stops_acting_before_another_may_begin() -> None:
    server = Server()
    one = Candidate(server, "a")
    await asyncio.sleep(0.05)
    assert one.leads()
    server.away = True
    await asyncio.sleep(0.9)  # less than the Lease's second after its last renewal
    assert not one.leads()
    server.away = False
    await asyncio.sleep(0.5)
    assert one.leads()  # the same replica, once more
    await one.end()


async def test_a_leader_whose_lease_was_taken_stops_acting() -> None:
    server = Server()
    one = Candidate(server, "a")
    await asyncio.sleep(0.05)
    server._stored({"metadata": {}, "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}})
    await asyncio.sleep(0.3)
    assert not one.leads()
    assert server.holder == "thief"
    await one.end()


async def test_a_leader_that_has_just_begun_gives_the_lease_back_too() -> None:
    server = Server()
    one = Candidate(server, "a")
    await asyncio.sleep(0.02)  # before it has renewed anything
    assert one.leads()
    await one.end()
    assert server.holder == ""


async def test_the_first_term_runs_from_when_it_was_asked_for() -> None:
    server = Server()
    quick = server.create

    async def slow(kind: object, body: dict[str, Any]) -> dict[str, Any]:
        made = await quick(kind, body)
        await asyncio.sleep(0.4)
        server.away = True
        return made

    server.create = slow  # type: ignore[assignment, method-assign]
    one = Candidate(server, "a")
    await asyncio.sleep(0.7)  # it gives up half a second after it asked, not after the answer
    assert not one.leads()
    await one.end()
