"""`pq send`: one message, or one for each line."""

import argparse
import asyncio
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from partitionedqueue.broker.client import BrokerClient
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.sender import QueueSender
from partitionedqueue.model import limits as model_limits
from partitionedqueue.model import partitioning
from partitionedqueue.model.errors import BrokerUnavailable, InvalidMessage
from partitionedqueue.model.message import Message
from partitionedqueue_cli import limits, lines, namespace
from partitionedqueue_cli.failures import FileUnreadable, PartitionUnavailable
from partitionedqueue_cli.namespace import QueueRecord

OPTIONS = ("message_id", "session_id", "partition_key", "content_type", "subject", "correlation_id")


def send(arguments: argparse.Namespace) -> int:
    """Send what the arguments say, and tell how many messages were stored."""
    queue = namespace.load_running(arguments.data_dir).queue_up(arguments.queue)
    return asyncio.run(_send(arguments, queue))


async def _send(arguments: argparse.Namespace, queue: QueueRecord) -> int:
    clients = [BrokerClient(address, timeout_s=arguments.timeout) for address in queue.addresses()]
    spec = queue.spec()
    detects = spec.requires_duplicate_detection
    sender = QueueSender(
        clients,
        QueueKeys(arguments.queue),
        operation_timeout_s=arguments.timeout,
        requires_duplicate_detection=detects,
        requires_session=spec.requires_session,
    )
    work = _Work(sender, detects=detects)
    messages = _messages(arguments)
    if spec.requires_session:
        messages = map(_of_a_session, messages)
    try:
        if arguments.batch:
            await work.send(list(itertools.islice(messages, model_limits.SEND_BATCH_MESSAGES_MAX + 1)))
        else:
            await work.send_each(messages)
    except BrokerUnavailable as error:
        stored = f"; {work.stored} before it were stored" if work.stored else ""
        unsure = "; it may have been stored" if error.outcome_unknown else ""
        raise PartitionUnavailable(f"queue {arguments.queue}: {error}{unsure}{stored}") from error
    except InvalidMessage as error:
        if not work.stored:
            raise
        raise type(error)(f"{error}; {work.stored} before it were stored") from error
    finally:
        await sender.close()
        for client in clients:
            await client.close()
    print(f"Sent {work.stored} {'message' if work.stored == 1 else 'messages'} to queue {arguments.queue}")
    return 0


class _Work:
    """Sends in order where there is an order to keep, and side by side where there is none."""

    def __init__(self, sender: QueueSender, *, detects: bool) -> None:
        self.stored = 0
        self._sender = sender
        self._detects = detects

    async def send(self, messages: list[Message]) -> None:
        """One batch, all or none."""
        if len(messages) > model_limits.SEND_BATCH_MESSAGES_MAX:
            raise InvalidMessage(
                f"a batch has at most {model_limits.SEND_BATCH_MESSAGES_MAX} messages; leave --batch out"
            )
        await self._sender.send_batch(messages)
        self.stored += len(messages)

    async def send_each(self, messages: Iterable[Message]) -> None:
        """Every message for itself: those with one key in their order, in few sends."""
        for key, same_key in itertools.groupby(messages, key=self._key):
            if key is None:
                await self._side_by_side(same_key)
            else:
                while some := list(itertools.islice(same_key, limits.LINES_A_SEND_MAX)):
                    await self.send(some)

    def _key(self, message: Message) -> str | None:
        return partitioning.partition_key_of(message, requires_duplicate_detection=self._detects)

    async def _side_by_side(self, messages: Iterator[Message]) -> None:
        while some := list(itertools.islice(messages, limits.SENDS_IN_FLIGHT_MAX)):
            outcomes = await asyncio.gather(*(self.send([message]) for message in some), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome


def _messages(arguments: argparse.Namespace) -> Iterator[Message]:
    common: dict[str, Any] = {
        name: getattr(arguments, name) for name in OPTIONS if getattr(arguments, name) is not None
    }
    if arguments.time_to_live is not None:
        common["time_to_live_ms"] = arguments.time_to_live
    if arguments.schedule is not None:
        common["scheduled_enqueue_time_ms"] = arguments.schedule
    common["application_properties"] = dict(map(_property, arguments.property))
    if arguments.body is not None:
        yield lines.one_message(arguments.body.encode(errors="surrogateescape"), common)
        return
    read = lines.from_json_lines if arguments.json_lines else lines.from_lines
    if arguments.file is None:
        yield from read(_bounded(sys.stdin.buffer), common)
        return
    path: Path = arguments.file
    try:
        with path.open("rb") as file:
            yield from read(_bounded(file), common)
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {error.strerror}") from error


def _of_a_session(message: Message) -> Message:
    """The same message, if it can go to a queue with sessions."""
    if message.session_id is None:
        raise InvalidMessage(
            "the queue has sessions, and the message is of none: give --session-id, or session_id in each JSON line"
        )
    return message


def _bounded(file: Any) -> Iterator[bytes]:
    """Lines; one that is too long to be a message comes cut, and too long still, so that it is refused as such."""
    return iter(lambda: file.readline(4 * model_limits.MESSAGE_BYTES_MAX), b"")


def _property(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise InvalidMessage(f"--property {text!r} must be name=value")
    return name, value
