"""Messages as a person sees them: shown as lines."""

import base64
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from partitionedqueue.broker.replies import PeekedRun, PeekedState, Run, Settlement
from partitionedqueue.model import partitioning, stored_message
from partitionedqueue.model.identifiers import sequence_number
from partitionedqueue.model.message import Message

TEXTS = ("message_id", "session_id", "partition_key", "content_type", "subject", "correlation_id", "to", "reply_to")
_SHOWN_CHARACTERS_MAX = 200  # of a body in one line


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message of one partition. `local` is its sequence number there; `lock` is 0 where there is none."""

    partition: int
    local: int
    enqueued_ms: int
    message: Message
    delivery_count: int | None = None
    lock: int = 0
    state: PeekedState = PeekedState.ACTIVE

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
        texts = {name: getattr(self.message, name) for name in TEXTS}
        scheduled_ms, ttl_ms = self.message.scheduled_enqueue_time_ms, self.message.time_to_live_ms
        return {
            "sequence_number": sequence_number(self.partition, self.local),
            "partition": self.partition,
            "enqueued_time": _time(self.enqueued_ms),
            "state": self.state.name.lower(),
            **({} if self.delivery_count is None else {"delivery_count": self.delivery_count}),
            **{name: value for name, value in texts.items() if value is not None},
            **({} if scheduled_ms is None else {"scheduled_enqueue_time": _time(scheduled_ms)}),
            **({} if ttl_ms is None else {"time_to_live_ms": ttl_ms}),
            "properties": {name: _plain(value) for name, value in self.message.application_properties.items()},
            **body,
        }

    def as_line(self) -> str:
        """Sequence number, time, key, body and properties in one line, and the state of what is not simply there."""
        key = partitioning.partition_key_of(self.message)
        body = printable(self.message.body)
        number = sequence_number(self.partition, self.local)
        shown_key = "-" if key is None else printable(key.encode()) or "(empty)"
        parts = [str(number), f"partition {self.partition}", _time(self.enqueued_ms), shown_key, body]
        for name, value in self.message.application_properties.items():
            parts.append(printable(f"{name}={_plain(value)}".encode()))
        if self.state is PeekedState.SCHEDULED and self.message.scheduled_enqueue_time_ms is not None:
            parts.append(f"(scheduled for {_time(self.message.scheduled_enqueue_time_ms)})")
        elif self.state is not PeekedState.ACTIVE:
            parts.append(f"({self.state.name.lower()})")
        return "  ".join(parts)


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError):  # after the year 9999
        return f"{ms} ms"


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
    for place, (stored, time_ms) in enumerate(zip(run.messages, times, strict=True)):
        one = Delivery(partition, run.first + place, time_ms, stored_message.decode(stored))
        if isinstance(run, Run):
            count = run.delivery_count + stored_message.deliveries_before(stored)
            yield replace(one, delivery_count=count, lock=run.lock)
        else:
            yield replace(one, state=run.state)


def print_all(found: Sequence[Delivery], *, as_json: bool) -> None:
    """One line for each."""
    for one in found:
        print(json.dumps(one.as_json(), ensure_ascii=False) if as_json else one.as_line())
    sys.stdout.flush()
