"""Where the brokers are and how a job gets in, from Spark's options and the environment."""

import pytest

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_spark.discovery import located
from partitionedqueue_spark.options import PASSWORD_VARIABLE, InvalidOption, SourceOptions
from partitionedqueue_spark.partition import PartitionUnreadable

IN_CLUSTER = {"queue": "orders", "namespace": "shop"}


def test_in_a_cluster_the_password_comes_from_the_environment_and_the_user_is_sparks() -> None:
    options = SourceOptions.parse(IN_CLUSTER, {PASSWORD_VARIABLE: "secret"})
    assert (options.namespace, options.brokers) == ("shop", ())
    assert (options.username, options.password) == ("spark", "secret")
    assert "secret" not in repr(options)


def test_what_is_given_as_an_option_goes_before_the_environment() -> None:
    given = {**IN_CLUSTER, "username": "somebody", "password": "own"}
    options = SourceOptions.parse(given, {PASSWORD_VARIABLE: "secret"})
    assert (options.username, options.password) == ("somebody", "own")


def test_brokers_that_are_given_have_no_user_of_their_own() -> None:
    options = SourceOptions.parse({"queue": "orders", "brokers": "198.51.100.9:6379"}, {})
    assert (options.username, options.password) == (None, None)
    assert located(options) is options


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"queue": "orders"}, "give one of the options 'namespace'"),
        ({**IN_CLUSTER, "brokers": "a:1"}, "give only one of the options 'namespace'"),
        ({**IN_CLUSTER, "namespace": "My Shop"}, "option 'namespace' is 'My Shop', which no namespace can be called"),
    ],
)
def test_a_place_that_cannot_be_is_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        SourceOptions.parse(options, {})


def test_a_queue_that_is_not_there_is_named_with_the_pod_that_was_asked() -> None:
    options = SourceOptions.parse({**IN_CLUSTER, "brokerTimeout": "0s"}, {})
    with pytest.raises(
        PartitionUnreadable, match=r"partition 0: broker orders-broker-0.orders-broker.shop.svc:6379"
    ) as it:
        located(options)
    assert isinstance(it.value, PartitionedQueueError)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "take"}, "option 'mode' is 'take'; it must be one of consume, browse, receiveAndDelete"),
        ({"columns": "body,bodies"}, "option 'columns' names 'bodies'; the columns are partition, sequence_number"),
        ({"columns": "body, Body"}, "each column can be named once"),
        ({"subQueue": "dead"}, "option 'subQueue' is 'dead'; it must be one of deadLetter, transferDeadLetter"),
        (
            {"queue": "orders/$DeadLetterQueue", "subQueue": "transferDeadLetter"},
            "option 'queue' is 'orders/.DeadLetterQueue' and option 'subQueue' is 'transferDeadLetter'",
        ),
        ({"maxBytesPerTrigger": "0"}, "option 'maxBytesPerTrigger' is '0'; it must be a whole number from 1"),
        ({"mode": "browse", "maxBytesPerTrigger": "1"}, "with mode browse set maxMessagesPerTrigger"),
        (
            {"maxTasksPerPartition": "65"},
            "option 'maxTasksPerPartition' is '65'; it must be a whole number from 1",
        ),
        ({"startingPosition": "latest"}, "option 'startingPosition' is for mode browse"),
        (
            {"mode": "browse", "startingPosition": "7"},
            "option 'startingPosition' is '7'; it must be earliest",
        ),
        (
            {"mode": "browse", "startingPosition": '{"0": 0}'},
            "latest, or JSON of the sequence number",
        ),
        ({"mode": "browse", "startingPosition": '{"0": 281474976710657}'}, "it must be earliest, latest, or JSON"),
        ({"onMalformed": "ignore"}, "option 'onMalformed' is 'ignore'; it must be one of fail, permissive, skip"),
        ({"filterPushdown": "true", "mode": "consume"}, "option 'filterPushdown' is for mode browse"),
    ],
)
def test_what_cannot_be_is_told_with_what_can(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        SourceOptions.parse({**IN_CLUSTER, **options}, {})


def test_a_dead_letter_queue_is_named_by_its_option_or_as_azure_does() -> None:
    for given in ({"queue": "orders/$DeadLetterQueue"}, {"queue": "orders", "subQueue": "deadletter"}):
        options = SourceOptions.parse({**IN_CLUSTER, **given}, {})
        assert (options.queue, options.keys.state) == ("orders", "pq:orders/$DeadLetterQueue")
    options = SourceOptions.parse({**IN_CLUSTER, "queue": "orders/$Transfer/$DeadLetterQueue"}, {})
    assert (options.queue, options.keys.state) == ("orders", "pq:orders/$Transfer/$DeadLetterQueue")
