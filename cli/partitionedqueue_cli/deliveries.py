"""Messages as a person sees them: read from lines, shown as lines."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from partitionedqueue.broker.replies import PeekedRun, Run, Settlement
from partitionedqueue.model import partitioning, stored_message
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.message import Message

_TEXTS = ("message_id", "session_id", "partition_key", "content_type", "subject", "correlation_id", "to", "reply_to")
_SHOWN_CHARACTERS_MAX = 200  # of a body in one line
_FIELDS = ("body", "properties", *_TEXTS)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message of one partition. `local` is its sequence number there; `lock` is 0 where there is none."""

    partition: int
    local: int
    enqueued_ms: int
    message: Message
    delivery_count: int | None = None
    lock: int = 0

    @property
    def order(self) -> tuple[int, int, int]:
        """Oldest first; within a partition always in its own order."""
        return self.enqueued_ms, self.partition, self.local

    @property
    def settlement(self) -> Settlement:
        """What settles it."""
        return Settlement(self.lock, self.local, self.local)

    def as_json(self) -> dict[str, Any]:
        """Everything, for programs; a body that is no UTF-8 text comes as `body_base64`."""
        try:
            body = {"body": self.message.body.decode()}
        except UnicodeDecodeError:
            body = {"body_base64": base64.b64encode(self.message.body).decode()}
        texts = {name: getattr(self.message, name) for name in _TEXTS}
        return {
            "sequence_number": sequence_number(self.partition, self.local),
            "partition": self.partition,
            "enqueued_time": self._time(),
            **({} if self.delivery_count is None else {"delivery_count": self.delivery_count}),
            **{name: value for name, value in texts.items() if value is not None},
            "properties": {name: _plain(value) for name, value in self.message.application_properties.items()},
            **body,
        }

    def as_line(self) -> str:
        """Sequence number, time, key and body in one line."""
        key = partitioning.partition_key_of(self.message)
        body = printable(self.message.body)
        number = sequence_number(self.partition, self.local)
        shown_key = "-" if key is None else printable(key.encode()) or "(empty)"
        return f"{number}  partition {self.partition}  {self._time()}  {shown_key}  {body}"

    def _time(self) -> str:
        return datetime.fromtimestamp(self.enqueued_ms / 1000, UTC).isoformat(timespec="milliseconds")


def printable(data: bytes) -> str:
    """One line that drives nobody's terminal: what is not printable is escaped, and what is long is cut."""
    text = data[: 4 * _SHOWN_CHARACTERS_MAX].decode(errors="backslashreplace").replace("\\", "\\\\")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if len(data) <= _SHOWN_CHARACTERS_MAX or len(shown) <= _SHOWN_CHARACTERS_MAX:
        return shown
    return f"{shown[:_SHOWN_CHARACTERS_MAX]}… ({len(data):,} bytes)"


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def of_run(partition: int, run: Run | PeekedRun) -> Iterator[Delivery]:
    """The messages of one run of a reply."""
    times = stored_message.enqueued_times(run.first, len(run.messages), run.marks)
    received = run if isinstance(run, Run) else None
    for place, (stored, time_ms) in enumerate(zip(run.messages, times, strict=True)):
        yield Delivery(
            partition,
            run.first + place,
            time_ms,
            stored_message.decode(stored),
            received.delivery_count if received else None,
            received.lock if received else 0,
        )


def from_lines(lines: Iterable[bytes], common: Mapping[str, Any]) -> Iterator[Message]:
    """Every line is a body. Raises InvalidMessage, naming the line."""
    for number, line in enumerate(lines, 1):
        with_body = {**common, "body": line.rstrip(b"\r\n")}
        yield _message(with_body, f"line {number}")


def from_json_lines(lines: Iterable[bytes], common: Mapping[str, Any]) -> Iterator[Message]:
    """Every line is a JSON object with `body` and whatever else it sets; `common` holds where it does not."""
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InvalidMessage(f"line {number} is no JSON: {error}") from error
        if not isinstance(value, dict) or not isinstance(value.get("body"), str):
            raise InvalidMessage(f'line {number} must be an object with a "body" that is text')
        for name in value:
            if name not in _FIELDS:
                raise InvalidMessage(
                    f'line {number} has an unknown field "{name}"; the fields are {", ".join(_FIELDS)}'
                )
        for name in _TEXTS:
            if not isinstance(value.get(name, ""), str):
                raise InvalidMessage(f'line {number}: "{name}" must be text')
        properties = value.pop("properties", {})
        if not isinstance(properties, dict) or any(isinstance(one, dict | list) for one in properties.values()):
            raise InvalidMessage(f'line {number}: "properties" must be an object of plain values')
        merged = {**common.get("application_properties", {}), **properties}
        yield _message(
            {**common, **value, "body": value["body"].encode(), "application_properties": merged}, f"line {number}"
        )


def one_message(body: bytes, common: Mapping[str, Any]) -> Message:
    """A single message."""
    return Message(**{**common, "body": body})


def _message(fields: Mapping[str, Any], where: str) -> Message:
    try:
        message = Message(**fields)
        stored_message.encode(message)  # its size, before anything is sent
    except InvalidMessage as error:
        raise type(error)(f"{where}: {error}") from error
    return message
