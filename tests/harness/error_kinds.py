"""Every error of the domain that a wire of the gateway may meet, for the tests that hold its table to them."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import partitionedqueue.model.errors
from partitionedqueue.model.errors import PartitionedQueueError


def errors_of(*rooms: ModuleType) -> list[type[PartitionedQueueError]]:
    """Those of the core, and of these packages of the gateway."""
    for room in rooms:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    homes = (partitionedqueue.model.errors.__name__, *(room.__name__ for room in rooms))
    return sorted({one for one in _below(PartitionedQueueError) if one.__module__.startswith(homes)}, key=str)


def _below(kind: type[PartitionedQueueError]) -> Iterator[type[PartitionedQueueError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)
