"""What only a partitioned queue does, through Microsoft's SDK for Python: its partitions are real, and are killed."""

import gc
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusReceiver
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageProperties
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError, ServiceBusServerBusyError

from harness.redis_servers import running_brokers
from partitionedqueue.model.partitioning import partition_of
from sdk.gateways import PARTITIONS, Bench, bench, partition_of_number
from sdk.promptness import assert_found_promptly
from sdk.python.place import own, receive, receive_one

DEAD = 5
LOCK_S = 5


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("partitions")
    with running_brokers(folder / "brokers", PARTITIONS) as brokers, bench(brokers, folder) as found:
        found.make("plain", lockDuration=f"PT{LOCK_S}S")
        found.make("once", requiresDuplicateDetection=True)
        found.make("sessions", requiresSession=True)
        found.start_gateway()
        yield found


@pytest.fixture
def queues(standing: Bench) -> Iterator[Bench]:
    """Queues of sixteen partitions, all of which run when a test begins."""
    yield standing
    standing.make_whole()


def send(bench: Bench, queue: str, *messages: ServiceBusMessage | AmqpAnnotatedMessage, **options: Any) -> None:
    with bench.client(**options) as client, client.get_queue_sender(queue) as sender:
        for message in messages:
            sender.send_messages(message)


def taken(bench: Bench, queue: str, count: int, **options: Any) -> list[ServiceBusReceivedMessage]:
    """Received and completed."""
    with bench.client() as client, client.get_queue_receiver(queue, **options) as receiver:
        messages = receive(receiver, count)
        for message in messages:
            receiver.complete_message(message)
        return messages


def key_in(partition: int) -> str:
    return next(key for number in range(10_000) if partition_of(key := f"key-{number}", PARTITIONS) == partition)


# ---- which partition


def test_the_session_id_chooses_the_partition(queues: Bench) -> None:
    session = own("session")
    send(queues, "sessions", ServiceBusMessage("", session_id=session, message_id="other"))
    [message] = taken(queues, "sessions", 1, session_id=session)
    assert partition_of_number(message.sequence_number) == partition_of(session, PARTITIONS)


def test_the_partition_key_chooses_before_the_message_id(queues: Bench) -> None:
    key, message_id = own("key"), own("id")
    send(queues, "once", ServiceBusMessage("", partition_key=key, message_id=message_id))
    [message] = taken(queues, "once", 1)
    assert partition_of_number(message.sequence_number) == partition_of(key, PARTITIONS)


def test_without_a_key_the_message_id_chooses_where_duplicates_are_looked_for(queues: Bench) -> None:
    ids = [own("id") for _ in range(8)]
    send(queues, "once", *[ServiceBusMessage("", message_id=each) for each in ids])
    for message in taken(queues, "once", len(ids)):
        assert partition_of_number(message.sequence_number) == partition_of(str(message.message_id), PARTITIONS)


def test_without_any_key_messages_go_round(queues: Bench) -> None:
    send(queues, "plain", *[ServiceBusMessage("") for _ in range(2 * PARTITIONS)])
    messages = taken(queues, "plain", 2 * PARTITIONS)
    assert len({partition_of_number(message.sequence_number) for message in messages}) == PARTITIONS


def test_a_session_id_and_another_partition_key_are_refused(queues: Bench) -> None:
    session = own("session")
    mismatched = AmqpAnnotatedMessage(
        data_body=b"", properties=AmqpMessageProperties(group_id=session), annotations={"x-opt-partition-key": "else"}
    )
    for queue in ("sessions", "plain"):
        with pytest.raises(ServiceBusError) as refusal:
            send(queues, queue, mismatched, retry_total=0)
        assert not isinstance(refusal.value, ServiceBusServerBusyError | OperationTimeoutError), "it is not retriable"
    alike = AmqpAnnotatedMessage(
        data_body=b"", properties=AmqpMessageProperties(group_id=session), annotations={"x-opt-partition-key": session}
    )
    send(queues, "sessions", alike)
    assert len(taken(queues, "sessions", 1, session_id=session)) == 1


def test_a_batch_with_two_keys_is_refused_whole(queues: Bench) -> None:
    mixed = [ServiceBusMessage("", partition_key=key) for key in (key_in(1), key_in(2))]
    with queues.client(retry_total=0) as client, client.get_queue_sender("plain") as sender:
        with pytest.raises(ServiceBusError):
            sender.send_messages(mixed)
        assert not client.get_queue_receiver("plain").peek_messages(5, sequence_number=1)


# ---- a partition that is dead


def test_keyless_sends_succeed_with_a_dead_partition_and_nothing_is_lost(queues: Bench) -> None:
    bodies = [f"{number}" for number in range(3 * PARTITIONS)]
    queues.brokers[DEAD].kill()
    began = time.monotonic()
    send(queues, "plain", *map(ServiceBusMessage, bodies))
    assert time.monotonic() - began < 20
    messages = taken(queues, "plain", len(bodies))
    assert sorted(map(str, messages)) == sorted(bodies)
    assert DEAD not in {partition_of_number(message.sequence_number) for message in messages}


def test_a_keyed_send_waits_for_its_partition(queues: Bench) -> None:
    key = key_in(DEAD)
    queues.brokers[DEAD].kill()
    back = threading.Timer(4, queues.brokers[DEAD].start)
    back.start()
    began = time.monotonic()
    send(queues, "plain", ServiceBusMessage("patient", partition_key=key), retry_total=0)
    assert time.monotonic() - began > 3, "it cannot have been stored before its partition came back"
    back.join()
    [message] = taken(queues, "plain", 1)
    assert (str(message), partition_of_number(message.sequence_number)) == ("patient", DEAD)


@pytest.mark.timeout(240)
def test_a_keyed_send_to_a_dead_partition_fails_retriably_in_the_end(queues: Bench) -> None:
    queues.brokers[DEAD].kill()
    began = time.monotonic()
    with pytest.raises((ServiceBusServerBusyError, OperationTimeoutError)) as refusal:
        send(queues, "plain", ServiceBusMessage("", partition_key=key_in(DEAD)), retry_total=0)
    assert 14 < time.monotonic() - began < 90
    assert refusal.value._retryable  # what the SDK's own retries go by


def test_a_dead_partition_neither_blocks_nor_fails_receiving_from_the_others(queues: Bench) -> None:
    keys = [key_in(partition) for partition in range(PARTITIONS) if partition != DEAD]
    send(queues, "plain", *[ServiceBusMessage(key, partition_key=key) for key in keys])
    queues.brokers[DEAD].kill()
    began = time.monotonic()
    messages = taken(queues, "plain", len(keys))
    assert time.monotonic() - began < 10
    assert sorted(map(str, messages)) == sorted(keys)


def test_messages_of_a_partition_that_comes_back_are_received(queues: Bench) -> None:
    send(queues, "plain", ServiceBusMessage("kept", partition_key=key_in(DEAD)))
    queues.brokers[DEAD].kill()
    with queues.client() as client, client.get_queue_receiver("plain") as receiver:
        assert not receiver.receive_messages(1, max_wait_time=2)
        queues.brokers[DEAD].start()
        message = receive_one(receiver, within_s=30)
        assert str(message) == "kept"
        receiver.complete_message(message)


# ---- few messages


def test_a_single_message_in_any_of_sixteen_partitions_is_found_promptly(queues: Bench) -> None:
    assert_found_promptly(queues)


# ---- a gateway that dies


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a socket that the SDK leaves open
def test_the_lock_of_a_message_cached_in_a_dead_gateway_comes_back(queues: Bench) -> None:
    which = len(queues.gateways)
    queues.start_gateway()
    bodies = [f"{number}" for number in range(PARTITIONS)]
    send(queues, "plain", *map(ServiceBusMessage, bodies))
    with queues.client(which, retry_total=0) as doomed:
        holder = doomed.get_queue_receiver("plain", prefetch_count=len(bodies))
        held = holder.receive_messages(1, max_wait_time=10)
        time.sleep(0.5)
        queues.kill_gateway(which)
        killed_at = time.monotonic()
        assert len(held) == 1
        messages = taken(queues, "plain", len(bodies))
        assert time.monotonic() - killed_at < LOCK_S + 5
    del doomed, holder
    gc.collect()  # the SDK leaves the socket of a connection that was cut to this
    assert sorted(map(str, messages)) == sorted(bodies)
    assert max(message.delivery_count or 0 for message in messages) == 1, "an expired lock counts as a delivery"


# ---- peeking


def peeked(receiver: ServiceBusReceiver, most: int, first: int = 1) -> list[ServiceBusReceivedMessage]:
    return receiver.peek_messages(most, sequence_number=first)


def test_a_peek_gives_as_many_as_asked_over_all_partitions_in_order(queues: Bench) -> None:
    count = 3 * PARTITIONS
    send(queues, "plain", *[ServiceBusMessage("", partition_key=key_in(n % PARTITIONS)) for n in range(count)])
    with queues.client() as client, client.get_queue_receiver("plain") as receiver:
        numbers = [message.sequence_number or 0 for message in peeked(receiver, count)]
        assert len(numbers) == count
        assert numbers == sorted(set(numbers))
        assert {number >> 48 for number in numbers} == set(range(PARTITIONS))
        half = [message.sequence_number for message in peeked(receiver, count, numbers[count // 2])]
        assert half == numbers[count // 2 :]
    taken(queues, "plain", count)


# ---- duplicates


def test_duplicates_are_found_by_message_id_and_key_wherever_they_are(queues: Bench) -> None:
    ids = [own("id") for _ in range(PARTITIONS)]
    for _ in range(2):
        send(queues, "once", *[ServiceBusMessage(each, message_id=each) for each in ids])
    for key in ("one", "another", "one"):
        send(queues, "once", ServiceBusMessage(f"{ids[0]} {key}", message_id=ids[0], partition_key=key))
    messages = taken(queues, "once", len(ids) + 2)
    assert sorted(map(str, messages)) == sorted([*ids, f"{ids[0]} one", f"{ids[0]} another"])
    with queues.client() as client:
        assert not peeked(client.get_queue_receiver("once"), 1)


def test_a_duplicate_of_a_scheduled_message_is_dropped(queues: Bench) -> None:
    message_id = own("id")
    with queues.client() as client, client.get_queue_sender("once") as sender:
        at = datetime.now(UTC) + timedelta(seconds=1)
        sender.schedule_messages(ServiceBusMessage("scheduled", message_id=message_id), at)
        sender.send_messages(ServiceBusMessage("again", message_id=message_id))
    [message] = taken(queues, "once", 1)
    assert str(message) == "scheduled"
