"""The kinds of fields that a manifest has: each says what it takes, reads it, and words the refusal.

What a kind takes stands in its attributes, where a test compares it with the schema that the API server has.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from partitionedqueue.model import durations, limits, quantities
from partitionedqueue.model.errors import InvalidManifest

NAME_PATTERN: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""A queue's name: a Service's begins with a letter (RFC 1035)."""
_NAME: Final = re.compile(NAME_PATTERN)
Field = Callable[[str, Any], Any]
"""Reads the value of a field, given its path and what stands there. Raises InvalidManifest."""


def is_name(value: object) -> bool:
    """Whether a value can name a queue or a topic."""
    return isinstance(value, str) and len(value) <= limits.QUEUE_NAME_CHARACTERS_MAX and bool(_NAME.fullmatch(value))


def mapping(where: str, value: object) -> Mapping[str, Any]:
    """A value that is a mapping. Raises InvalidManifest."""
    if not isinstance(value, Mapping):
        raise InvalidManifest(f"{where} must be a mapping of names to values")
    return value


def known(value: Mapping[str, Any], names: Sequence[str], prefix: str) -> None:
    """Refuse a name that is none of those known: a slip of the pen would otherwise be a default."""
    for name in value:
        if name not in names:
            raise InvalidManifest(f"unknown field {prefix}{name}; the fields are {', '.join(names)}")


def read_all(fields: Mapping[str, tuple[str, Field]], where: str, value: object) -> dict[str, Any]:
    """What a mapping gives, by the attributes' names; a null counts as left out, as it does for the API server."""
    given = mapping(where, value)
    known(given, tuple(fields), f"{where}.")
    return {
        attribute: field(f"{where}.{key}", given[key])
        for key, (attribute, field) in fields.items()
        if given.get(key) is not None
    }


@dataclass(frozen=True, slots=True)
class Flag:
    """true or false."""

    def __call__(self, where: str, value: Any) -> bool:
        """Read one."""
        if not isinstance(value, bool):
            raise InvalidManifest(f"{where} is {value!r}; write true or false")
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a person's."""

    characters_max: int

    def __call__(self, where: str, value: Any) -> str:
        """Read one."""
        if not isinstance(value, str) or len(value) > self.characters_max:
            raise InvalidManifest(f"{where} must be text of at most {self.characters_max:,} characters")
        return value


@dataclass(frozen=True, slots=True)
class EntityName:
    """The name of a queue or a topic in the same namespace."""

    def __call__(self, where: str, value: Any) -> str:
        """Read one."""
        if not is_name(value):
            raise InvalidManifest(f"{where} is {value!r}; write the name of a queue or topic of the same namespace")
        return str(value)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds."""

    lowest: int
    highest: int

    def __call__(self, where: str, value: Any) -> int:
        """Read one."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.lowest <= value <= self.highest:
            raise InvalidManifest(f"{where} is {value!r}; write a whole number from {self.lowest} to {self.highest}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    kinds: type[StrEnum]

    def __call__(self, where: str, value: Any) -> StrEnum:
        """Read one."""
        try:
            return self.kinds(str(value))
        except ValueError:
            raise InvalidManifest(f"{where} is {value!r}; it is one of {', '.join(self.kinds)}") from None


@dataclass(frozen=True, slots=True)
class Duration:
    """An ISO 8601 duration within bounds, in ms."""

    lowest_ms: int
    highest_ms: int
    example: str

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        lowest, highest = durations.text(self.lowest_ms), durations.text(self.highest_ms)
        return f"of at least {lowest}" if self.highest_ms == limits.TIME_MS_MAX else f"from {lowest} to {highest}"

    def __call__(self, where: str, value: Any) -> int:
        """Read one."""
        length = durations.milliseconds(value) if isinstance(value, str) else None
        if length is None or not self.lowest_ms <= length <= self.highest_ms:
            raise InvalidManifest(
                f"{where} is {value!r}; write an ISO 8601 duration {self.bounds}, such as {self.example}"
            )
        return length


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount as Kubernetes writes it; what comes back is the text."""

    example: str = "500m, 2 or 4Gi"
    or_whole: bool = True

    def __call__(self, where: str, value: Any) -> str:
        """Read one."""
        fits = isinstance(value, str) or (self.or_whole and isinstance(value, int) and not isinstance(value, bool))
        if not fits or quantities.amount(str(value)) is None:
            raise InvalidManifest(f"{where} is {value!r}; write an amount such as {self.example}")
        return str(value)


@dataclass(frozen=True, slots=True)
class Group:
    """A mapping with fields of its own, read into `kind`."""

    kind: Any
    fields: Mapping[str, tuple[str, Field]]

    def __call__(self, where: str, value: Any) -> Any:
        """Read one."""
        return self.kind(**read_all(self.fields, where, value))


@dataclass(frozen=True, slots=True)
class Named:
    """A mapping whose names are its owner's choice, and whose values are of one kind."""

    entries_max: int
    field: Field
    reserved: tuple[str, ...] = ()
    """What names do not begin with: those are the operator's."""

    def __call__(self, where: str, value: Any) -> Mapping[str, Any]:
        """Read one."""
        given = mapping(where, value)
        if len(given) > self.entries_max:
            raise InvalidManifest(f"{where} has {len(given)} entries; at most {self.entries_max} are allowed")
        for name in map(str, given):
            if name.startswith(self.reserved):
                raise InvalidManifest(
                    f"{where} has {name}; {' and '.join(self.reserved)} {'is' if len(self.reserved) == 1 else 'are'} "
                    "for the operator to set; choose another name"
                )
        return {str(name): self.field(f"{where}.{name}", one) for name, one in given.items()}


@dataclass(frozen=True, slots=True)
class Listed:
    """A list whose items are of one kind."""

    items_max: int
    field: Field

    def __call__(self, where: str, value: Any) -> tuple[Any, ...]:
        """Read one."""
        if not isinstance(value, list) or len(value) > self.items_max:
            raise InvalidManifest(f"{where} must be a list of at most {self.items_max} items")
        return tuple(self.field(f"{where}[{n}]", one) for n, one in enumerate(value))


@dataclass(frozen=True, slots=True)
class Passed:
    """A mapping that is Kubernetes' own to check, passed on as it came."""

    def __call__(self, where: str, value: Any) -> Mapping[str, Any]:
        """Read one."""
        return mapping(where, value)
