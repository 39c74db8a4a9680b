"""The OpenAPI description and the routes of the data plane say the same."""

import re
from importlib import resources
from typing import Any

import pytest
import yaml

from partitionedqueue.model import limits as model_limits
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.access import Access
from partitionedqueue_gateway.entities.brokers import Brokers
from partitionedqueue_gateway.entities.catalog import Catalog
from partitionedqueue_gateway.entities.entities import Entities
from partitionedqueue_gateway.rest import data_plane, failures, paths
from partitionedqueue_gateway.rest.authorization import Authorization
from partitionedqueue_gateway.rest.data_plane import broker_properties, description
from partitionedqueue_gateway.rest.data_plane.room import DataPlane

METHODS = {"get", "put", "post", "delete"}
TEXT = resources.files(data_plane).joinpath(description.FILE).read_text()
DESCRIBED: dict[str, Any] = yaml.safe_load(TEXT)
OPERATIONS = {
    (path, method): operation
    for path, item in DESCRIBED["paths"].items()
    for method, operation in item.items()
    if method in METHODS
}


class NoSource:
    async def feed(self, catalog: Catalog) -> None: ...

    async def password(self, queue: object) -> str | None: ...


@pytest.fixture
async def routes() -> set[tuple[str, str]]:
    catalog = Catalog()
    async with Brokers(catalog, NoSource()) as brokers, Entities(catalog, brokers) as entities:
        room = DataPlane(entities, Authorization(Access(None)))
        return {
            (route.path.replace(paths.ENTITY, "{entity}").replace("{token}", "{lockToken}"), route.method.lower())
            for route in room.routes()
            if not route.path.endswith("/")
        }


async def test_every_route_is_described_and_nothing_else(routes: set[tuple[str, str]]) -> None:
    assert routes == set(OPERATIONS)


@pytest.mark.parametrize("key", OPERATIONS, ids=" ".join)
def test_every_operation_names_its_parameters_and_its_failures(key: tuple[str, str]) -> None:
    path, _ = key
    operation = OPERATIONS[key]
    given = [*DESCRIBED["paths"][path].get("parameters", ()), *operation.get("parameters", ())]
    named = [one.get("name") or one["$ref"].rsplit("/", 1)[1] for one in given]
    assert set(re.findall(r"\{(\w+)\}", path)) <= set(named)
    assert operation["summary"]
    if path != description.PATH:
        assert {"400", "401", "410", "500", "503"} <= set(operation["responses"])


def test_what_is_sent_in_broker_properties_is_what_is_read() -> None:
    described = DESCRIBED["components"]["schemas"]["BrokerProperties"]["properties"]
    assert set(described) | {"ContentType"} == set(broker_properties.NAMES)
    in_batches = DESCRIBED["components"]["schemas"]["Batch"]["items"]["properties"]["BrokerProperties"]["properties"]
    assert set(in_batches) == set(broker_properties.NAMES)


def test_its_figures_are_ours() -> None:
    timeout = DESCRIBED["components"]["parameters"]["timeout"]["schema"]
    assert (timeout["maximum"], timeout["default"]) == (limits.HTTP_TIMEOUT_S_MAX, limits.HTTP_TIMEOUT_S_DEFAULT)
    assert DESCRIBED["components"]["schemas"]["Batch"]["maxItems"] == model_limits.BATCHED_MESSAGES_MAX
    properties = DESCRIBED["components"]["schemas"]["BrokerProperties"]["properties"]
    assert properties["MessageId"]["maxLength"] == model_limits.MESSAGE_ID_CHARACTERS_MAX


def test_statuses_of_refusals_are_described() -> None:
    described = {int(status) for operation in OPERATIONS.values() for status in operation["responses"]}
    not_here = {409, 501}  # of the administration, or of sessions, which HTTP has none of
    own = {refusal.status for refusal in failures.REFUSALS.values()}
    assert own - not_here <= described
