from collections.abc import Callable
from typing import Any

import pytest

from partitionedqueue.model.queue_spec import DeletionPolicy, QueueSpec
from partitionedqueue_gateway.catalog_sources.api_server import ApiRefused, ApiServer, ApiUnavailable
from partitionedqueue_gateway.catalog_sources.cluster_changes import ClusterChanges
from partitionedqueue_gateway.entities.changes import ChangeConflict, ChangeRefused, QueueExists, SourceUnavailable
from partitionedqueue_gateway.entities.failures import EntityNotFound
from partitionedqueue_gateway.entities.queue import Queue, QueueName

GROUP = "/apis/messaging.partitionedqueue.io/v1alpha1/namespaces/team-a/partitionedqueues"
PATH = f"{GROUP}/orders"
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u-1"}}


class Told(ApiServer):
    """Keeps what it is sent, and answers as it is told to."""

    def __init__(self, answer: Callable[[str], Any] = lambda _method: {"metadata": {"generation": 7}}) -> None:
        self.heard: list[tuple[str, str, Any]] = []
        self._answer = answer

    async def write(self, method: str, path: str, body: Any, *, kind: str = "application/json") -> Any:
        assert kind == ("application/merge-patch+json" if method == "PATCH" else "application/json")
        self.heard.append((method, path, body))
        return self._answer(method)


def refusing(error: Exception) -> Callable[[str], Any]:
    def answer(_method: str) -> Any:
        raise error

    return answer


def queue(policy: DeletionPolicy = DeletionPolicy.DELETE_IF_EMPTY) -> Queue:
    spec = QueueSpec(name="orders", namespace="team-a", deletion_policy=policy)
    return Queue(spec=spec, uid="u-1", brokers=(), title="orders")


async def test_a_change_is_of_this_very_queue_and_gives_its_generation() -> None:
    api = Told()
    assert await ClusterChanges(api).change(queue(), {"lockDuration": "PT5S", "userMetadata": None}) == 7
    patch = {"metadata": {"uid": "u-1"}, "spec": {"lockDuration": "PT5S", "userMetadata": None}}
    assert api.heard == [("PATCH", PATH, patch)]


async def test_a_queue_that_may_only_go_empty_is_told_first_that_its_messages_may_go() -> None:
    api = Told()
    await ClusterChanges(api).delete(queue())
    patch = {"metadata": {"uid": "u-1"}, "spec": {"deletionPolicy": "Delete"}}
    assert api.heard == [("PATCH", PATH, patch), ("DELETE", PATH, OPTIONS)]


async def test_a_queue_that_is_not_deleted_keeps_its_policy() -> None:
    def answer(method: str) -> Any:
        if method == "DELETE":
            raise ApiRefused(403, "somebody else's policy says no")
        return {}

    api = Told(answer)
    with pytest.raises(ChangeRefused, match="somebody else's policy"):
        await ClusterChanges(api).delete(queue())
    told = [body["spec"]["deletionPolicy"] for method, _, body in api.heard if method == "PATCH"]
    assert told == ["Delete", "DeleteIfEmpty"]


@pytest.mark.parametrize("policy", [DeletionPolicy.RETAIN, DeletionPolicy.DELETE])
async def test_what_else_an_owner_has_said_stays(policy: DeletionPolicy) -> None:
    api = Told()
    await ClusterChanges(api).delete(queue(policy))
    assert api.heard == [("DELETE", PATH, OPTIONS)]


async def test_a_queue_that_was_never_acted_upon_takes_no_volumes_of_an_earlier_one_with_it() -> None:
    api = Told()
    await ClusterChanges(api).delete(queue(), refused=True)
    assert api.heard == [("DELETE", PATH, OPTIONS)]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(409, QueueExists), (404, ChangeRefused), (403, ChangeRefused), (422, ChangeRefused), (500, SourceUnavailable)],
)
async def test_why_a_queue_is_not_made(status: int, kind: type[Exception]) -> None:
    changes = ClusterChanges(Told(refusing(ApiRefused(status, "the API server answers: no", "sizeGB is 7"))))
    with pytest.raises(kind, match="busy" if status == 500 else "sizeGB is 7"):
        await changes.create(QueueName("team-a", "orders"), {})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ApiRefused(404, "gone"), EntityNotFound),
        (ApiRefused(409, "another uid"), ChangeConflict),
        (ApiRefused(422, "it is so big"), ChangeRefused),
        (ApiRefused(429, "slow down"), SourceUnavailable),
        (ApiUnavailable("away"), SourceUnavailable),
    ],
)
async def test_why_a_queue_is_not_changed_or_deleted(error: Exception, kind: type[Exception]) -> None:
    changes = ClusterChanges(Told(refusing(error)))
    with pytest.raises(kind):
        await changes.change(queue(), {})
    with pytest.raises(kind):
        await changes.delete(queue(DeletionPolicy.DELETE))
