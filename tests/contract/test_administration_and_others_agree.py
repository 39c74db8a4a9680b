"""What the gateway's administration and those who carry it out must say alike."""

from pathlib import Path

import pytest

import partitionedqueue_operator.reconcile
from partitionedqueue_cli import gateway as keeper
from partitionedqueue_cli import queue_requests
from partitionedqueue_gateway.catalog_sources import folder, folder_requests
from partitionedqueue_gateway.rest.administration.queues import EARLIER_GOING


@pytest.mark.parametrize("name", ["BROKERS_ANNOTATION", "CREATED_ANNOTATION", "UPDATED_ANNOTATION"])
def test_the_folder_of_queues_is_read_as_it_is_written(name: str) -> None:
    assert getattr(keeper, name) == getattr(folder, name)


@pytest.mark.parametrize("name", ["REQUEST", "ANSWER"])
def test_requests_are_found_where_they_are_written(name: str) -> None:
    assert getattr(queue_requests, name) == getattr(folder_requests, name)


def test_the_operator_says_in_that_word_that_an_earlier_queue_is_going() -> None:
    assert f'"{EARLIER_GOING.removesuffix(":")}"' in Path(partitionedqueue_operator.reconcile.__file__).read_text()
