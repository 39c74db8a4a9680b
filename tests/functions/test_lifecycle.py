"""The model of a partition and a real broker, side by side: the same after every command, at any time, over restarts.

    PQ_SEARCH=500 pytest tests/functions/test_lifecycle.py

searches for longer, at random; without it the same examples run each time.
"""

import os
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from harness.clock import clocked_library
from harness.partition_machine import PartitionMachine
from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker.blocking import BlockingBroker

SEARCH = int(os.environ.get("PQ_SEARCH", "0"))


class Plain(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"lock_ms": 30_000}


class FewDeliveries(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"max_deliveries": 2}


class TimeToLive(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"ttl_ms": 1_000, "dead_letter_expired": True, "max_deliveries": 3}


class Sessions(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"sessions": True}
    most_at_once: ClassVar[int] = 80


class SessionsOfAllKinds(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {
        "sessions": True,
        "max_deliveries": 2,
        "ttl_ms": 5_000,
        "dead_letter_expired": True,
        "dedupe_ms": 30_000,
    }
    most_at_once: ClassVar[int] = 80


class Duplicates(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"dedupe_ms": 30_000, "max_deliveries": 5}


class Large(PartitionMachine):
    """Bodies of which a few are a megabyte: what has gone is blanked where others stay."""

    settings_of_queue: ClassVar[dict[str, Any]] = {"max_deliveries": 3}
    examples: ClassVar[int] = 10
    bodies: ClassVar[tuple[int, ...]] = (0, 60_000, 200_000)
    most_at_once: ClassVar[int] = 30


class TinyQuota(PartitionMachine):
    settings_of_queue: ClassVar[dict[str, Any]] = {"quota_bytes": 12_000, "max_deliveries": 3}
    bodies: ClassVar[tuple[int, ...]] = (0, 300, 3_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("lifecycle")
    more = ("--enable-debug-command", "yes", "--auto-aof-rewrite-min-size", "1mb")  # a library for each load is in it
    with running_broker(folder, settings=more, library=clocked_library) as running:
        yield running


@pytest.mark.timeout(600 if not SEARCH else 100_000)
@pytest.mark.parametrize(
    "kind", [Plain, FewDeliveries, TimeToLive, Sessions, SessionsOfAllKinds, Duplicates, Large, TinyQuota]
)
def test_a_broker_does_what_the_model_does(server: Broker, kind: type[PartitionMachine]) -> None:
    with BlockingBroker(server.address) as client:
        kind.server, kind.broker = server, client
        run_state_machine_as_test(
            kind,
            settings=settings(
                max_examples=SEARCH or kind.examples,
                stateful_step_count=100 if SEARCH else 40,
                deadline=None,
                derandomize=not SEARCH,
                database=None,
                print_blob=True,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
