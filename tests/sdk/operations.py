"""The operations of tests/sdk: the same files in each language, and what of a namespace each of them needs."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
SDKS: Final = {
    "python": "Python, azure-servicebus",
    "javascript": "JavaScript, @azure/service-bus",
    "go": "Go, azservicebus",
    "java": "Java, azure-messaging-servicebus",
}
_SUFFIXES: Final = {"python": ".py", "javascript": ".js", "go": ".go", "java": ".java"}
KINDS: Final = {"conventional": "not partitioned", "partitioned": "16 partitions", "wide": "80 partitions"}
_ONLY_PARTITIONED: Final = frozenset({"mixed_keys_refused"})


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that an SDK can do with a queue."""

    name: str
    about: str
    kinds: tuple[str, ...]


def names_of(sdk: str) -> list[str]:
    """The operations that there are files for in a language, in order."""
    folder = FOLDER / sdk / "operations"
    return sorted(_name(path.stem) for path in folder.glob(f"*{_SUFFIXES[sdk]}"))


def operations() -> list[Operation]:
    """All of them, as Python's files have them."""
    return [_operation(name) for name in names_of("python")]


def _operation(name: str) -> Operation:
    text = (FOLDER / "python" / "operations" / f"{name}.py").read_text()
    about = text.removeprefix('"""').partition('"""')[0]
    # Eighty brokers stand once, for all languages in turn: for what needs no queue of another sort beside it.
    needs_more = re.search(r"place\.(brief|sessions)\b", text)
    kinds = [kind for kind in KINDS if kind != "wide" or not needs_more]
    if name in _ONLY_PARTITIONED:
        kinds.remove("conventional")
    return Operation(name, about, tuple(kinds))


def _name(stem: str) -> str:
    """Java's SendSingle is everybody else's send_single."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower()
