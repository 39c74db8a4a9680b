"""The operations of a transaction, as pq_apply takes them: all are carried out, or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from partitionedqueue.broker.replies import Settlement
from partitionedqueue.model import limits
from partitionedqueue.model.errors import InvalidMessage
from partitionedqueue.model.message import PropertyValue
from partitionedqueue.model.stored_message import encode_changes

Word: TypeAlias = bytes | str | int
"""What a command may be made of."""
NO_CHANGES: Mapping[str, PropertyValue] = {}


def flat(settlements: Sequence[Settlement]) -> tuple[int, ...]:
    """Settlements as the triples that commands take."""
    return tuple(number for settlement in settlements for number in settlement)


def counted_word(counted: bool) -> str:
    """How commands say whether a delivery counts."""
    return "counted" if counted else "uncounted"


def dead_letter_changes(reason: str, description: str, changes: Mapping[str, PropertyValue]) -> bytes:
    """The changes that dead-lettering makes, with the two properties by which Azure tells why.

    Raises InvalidMessage for a reason or description that is too long, and what `encode_changes` raises.
    """
    told = dict(changes)
    for name, words in (("DeadLetterReason", reason), ("DeadLetterErrorDescription", description)):
        if len(words) > limits.DEAD_LETTER_TEXT_CHARACTERS_MAX:
            most = limits.DEAD_LETTER_TEXT_CHARACTERS_MAX
            raise InvalidMessage(f"{name} has {len(words):,} characters; at most {most:,} are allowed")
        if words:
            told[name] = words
    return encode_changes(told)


@dataclass(frozen=True, slots=True)
class SendOperation:
    """Store stored forms; `target` is a sub-queue's path behind the queue's name, '' for the queue itself."""

    messages: Sequence[bytes]
    fingerprints: bytes = b""
    target: str = ""

    def words(self) -> tuple[Word, ...]:
        """As pq_apply takes it."""
        return ("send", self.target, 1 + len(self.messages), self.fingerprints, *self.messages)


@dataclass(frozen=True, slots=True)
class CompleteOperation:
    """Remove messages that their receiver has finished with."""

    settlements: Sequence[Settlement]

    def words(self) -> tuple[Word, ...]:
        """As pq_apply takes it."""
        return _words("complete", *flat(self.settlements))


@dataclass(frozen=True, slots=True)
class DeferOperation:
    """Put messages aside, to be received by their sequence numbers."""

    settlements: Sequence[Settlement]
    changes: bytes = b""

    def words(self) -> tuple[Word, ...]:
        """As pq_apply takes it."""
        return _words("defer", self.changes, *flat(self.settlements))


@dataclass(frozen=True, slots=True)
class DeadLetterOperation:
    """Move messages to the dead-letter queue."""

    settlements: Sequence[Settlement]
    reason: str = ""
    description: str = ""
    changes: Mapping[str, PropertyValue] = field(default_factory=dict)

    def words(self) -> tuple[Word, ...]:
        """As pq_apply takes it. Raises what `dead_letter_changes` raises."""
        changes = dead_letter_changes(self.reason, self.description, self.changes)
        return _words("dead_letter", changes, *flat(self.settlements))


@dataclass(frozen=True, slots=True)
class AbandonOperation:
    """Give messages back."""

    settlements: Sequence[Settlement]
    counted: bool = True
    changes: bytes = b""

    def words(self) -> tuple[Word, ...]:
        """As pq_apply takes it."""
        return _words("abandon", counted_word(self.counted), self.changes, *flat(self.settlements))


Operation: TypeAlias = SendOperation | CompleteOperation | DeferOperation | DeadLetterOperation | AbandonOperation


def _words(name: str, *arguments: Word) -> tuple[Word, ...]:
    return (name, "", len(arguments), *arguments)
