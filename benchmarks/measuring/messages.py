"""Messages to measure with: valid stored forms of an exact size, each with a body of its own."""

import os
from collections.abc import Sequence

from partitionedqueue.broker.replies import Raw, Run, Settlement, received
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

POOL_CALLS = 32
"""Different calls that take turns: Lua keeps one copy of equal strings, so equal bodies would flatter it."""


def stored_forms(count: int, body_bytes: int) -> list[bytes]:
    """The stored forms of `count` different messages."""
    return [encode(Message(body=os.urandom(body_bytes))) for _ in range(count)]


def batches(messages: Sequence[bytes], size: int) -> list[Sequence[bytes]]:
    """The messages in batches of `size`."""
    return [messages[i : i + size] for i in range(0, len(messages), size)]


def settlements_of(runs: Sequence[Run]) -> list[Settlement]:
    """Everything that one receive gave, to be settled at once."""
    return [Settlement(run.lock, run.first, run.first + len(run.messages) - 1) for run in runs]


def received_runs(replies: Sequence[Raw], messages: int) -> list[list[Run]]:
    """The runs of several receives. Raises AssertionError unless they gave so many messages altogether."""
    runs = [received(raw).runs for raw in replies]
    came = sum(len(run.messages) for each in runs for run in each)
    if came != messages:
        raise AssertionError(f"{messages:,} messages were sent, and {came:,} came")
    return runs
