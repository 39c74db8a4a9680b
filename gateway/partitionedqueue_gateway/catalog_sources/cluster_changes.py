"""Changes to the queues of a cluster: PartitionedQueue objects written to the API server, whose refusals are passed on.

Nothing is kept here: what is written comes back by the watch, as everybody else's changes do.
"""

from collections.abc import Mapping
from typing import Any, Final

from partitionedqueue.model.queue_spec import API_VERSION, PLURAL, DeletionPolicy
from partitionedqueue_gateway.catalog_sources.api_server import ApiRefused, ApiServer, ApiUnavailable
from partitionedqueue_gateway.entities.changes import ChangeConflict, ChangeRefused, QueueExists, SourceUnavailable
from partitionedqueue_gateway.entities.failures import EntityNotFound
from partitionedqueue_gateway.entities.queue import Queue, QueueName

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_MERGE: Final = "application/merge-patch+json"


class ClusterChanges:
    """Written with the gateway's service account, for whoever may manage the queue."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    async def create(self, name: QueueName, manifest: Mapping[str, Any]) -> None:
        """As `QueueChanges` has it."""
        try:
            await self._ask("POST", f"/apis/{API_VERSION}/namespaces/{name.namespace}/{PLURAL}", manifest)
        except ApiRefused as error:
            if error.status == _CONFLICT:
                raise QueueExists(f"Conflict. {error.message}") from error
            if error.status == _NOT_FOUND:
                raise ChangeRefused(
                    f"there is no Kubernetes namespace {name.namespace} for it; the first part of a name of several "
                    f"is one ({error.message})"
                ) from error
            raise ChangeRefused(error.message) from error

    async def change(self, queue: Queue, spec: Mapping[str, Any]) -> int:
        """As `QueueChanges` has it."""
        answer = await self._patch(queue, spec)
        return int(answer["metadata"]["generation"])

    async def delete(self, queue: Queue, *, refused: bool = False) -> None:
        """As `QueueChanges` has it. With `deletionPolicy: Retain` the volumes stay, as its owner has said.

        With DeleteIfEmpty the queue is told first that its messages may go: whoever deletes over this API means them,
        too. Where the operator has not acted upon it, what there is belongs to an earlier queue of the name, and stays.
        """
        if_empty = queue.spec.deletion_policy is DeletionPolicy.DELETE_IF_EMPTY and not refused
        if if_empty:
            await self._patch(queue, {"deletionPolicy": DeletionPolicy.DELETE.value})
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": queue.uid}}
        try:
            await self._ask("DELETE", _path_of(queue), options)
        except ApiRefused as error:
            if error.status == _NOT_FOUND:
                raise EntityNotFound(queue.title) from error
            if if_empty:  # it stays, and so does what its owner has said
                await self._patch(queue, {"deletionPolicy": DeletionPolicy.DELETE_IF_EMPTY.value})
            raise _refusal(error) from error

    async def _patch(self, queue: Queue, spec: Mapping[str, Any]) -> Any:
        """Of this very queue, and of none that has its name by now."""
        try:
            return await self._ask(
                "PATCH", _path_of(queue), {"metadata": {"uid": queue.uid}, "spec": dict(spec)}, kind=_MERGE
            )
        except ApiRefused as error:
            if error.status == _NOT_FOUND:
                raise EntityNotFound(queue.title) from error
            raise _refusal(error) from error

    async def _ask(self, method: str, path: str, body: Any, **kind: str) -> Any:
        try:
            return await self._api.write(method, path, body, **kind)
        except ApiUnavailable as error:
            raise SourceUnavailable("the cluster's API server cannot be reached; try again") from error
        except ApiRefused as error:
            if error.status == 429 or error.status >= 500:
                raise SourceUnavailable("the cluster's API server is busy; try again") from error
            raise


def _refusal(error: ApiRefused) -> ChangeConflict | ChangeRefused:
    return ChangeConflict(error.message) if error.status == _CONFLICT else ChangeRefused(error.message)


def _path_of(queue: Queue) -> str:
    return f"/apis/{API_VERSION}/namespaces/{queue.spec.namespace}/{PLURAL}/{queue.spec.name}"
