"""Shared access policies: a name, two keys, rights and a scope; one YAML file each in a folder, a mounted Secret say.

    name: RootManageSharedAccessKey
    primaryKey: …
    secondaryKey: …            # optional: two, so that one can be changed while the other is in use
    rights: [Manage, Send, Listen]
    entity: orders             # optional: this one alone; team-a/* is a whole Kubernetes namespace

Nothing that a file says is ever quoted: it holds keys.
"""

import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

import yaml

from partitionedqueue_gateway import limits, secret_files
from partitionedqueue_gateway.access.failures import PoliciesUnreadable
from partitionedqueue_gateway.access.scopes import Scope, scope_of

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_KEY: Final = re.compile(r"[!-~]+")
_FIELDS: Final = frozenset({"name", "primaryKey", "secondaryKey", "rights", "entity"})


class Right(StrEnum):
    """What a policy may grant, in Azure's words."""

    MANAGE = "Manage"
    SEND = "Send"
    LISTEN = "Listen"


ALL_RIGHTS: Final = frozenset(Right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy. Its keys are in no repr, and so in no log."""

    name: str
    keys: tuple[bytes, ...] = field(repr=False)
    rights: frozenset[Right]
    scope: Scope

    @classmethod
    def parse(cls, document: Any, *, default_namespace: str, source: str) -> Self:
        """From a file's document. Raises PoliciesUnreadable; its words name the file and the field, never a value."""
        if not isinstance(document, dict):
            raise PoliciesUnreadable(f"{source}: write a policy as a mapping of {', '.join(sorted(_FIELDS))}")
        if strange := sorted(str(name) for name in set(document) - _FIELDS):
            raise PoliciesUnreadable(f"{source}: {strange[0][:40]!r} is no field of a policy")
        name, entity = document.get("name"), document.get("entity") or ""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise PoliciesUnreadable(f"{source}: name must be letters, digits, dots, dashes and underscores")
        if not isinstance(entity, str):
            raise PoliciesUnreadable(f"{source}: entity must be text: a queue's name, or namespace/*")
        return cls(
            name=name,
            keys=tuple(_keys(document, source)),
            rights=_rights(document.get("rights"), source),
            scope=scope_of(entity, default_namespace),
        )


def _keys(document: dict[str, Any], source: str) -> Iterable[bytes]:
    for which in ("primaryKey", "secondaryKey"):
        key = document.get(which)
        if key is None and which == "secondaryKey":
            continue
        if not isinstance(key, str) or not _KEY.fullmatch(key) or len(key) < limits.KEY_LENGTH_MIN:
            raise PoliciesUnreadable(
                f"{source}: {which} must be text of at least {limits.KEY_LENGTH_MIN} characters without blanks"
            )
        yield key.encode()


def _rights(words: Any, source: str) -> frozenset[Right]:
    known = {right.value for right in Right}
    if not isinstance(words, list) or not words or not all(isinstance(one, str) and one in known for one in words):
        raise PoliciesUnreadable(f"{source}: rights must be a list of Manage, Send, Listen")
    rights = frozenset(map(Right, words))
    return ALL_RIGHTS if Right.MANAGE in rights else rights  # Azure's rule: who manages sends and listens


class Policies:
    """All policies, by name. An entity's policy may be called as a namespace's is."""

    def __init__(self, policies: Iterable[Policy] = ()) -> None:
        self._named: dict[str, list[Policy]] = {}
        self.replace(policies)

    def __len__(self) -> int:
        return sum(map(len, self._named.values()))

    def named(self, name: str) -> list[Policy]:
        """Those of a name."""
        return self._named.get(name, [])

    def replace(self, policies: Iterable[Policy]) -> None:
        """From now on there are these."""
        found: dict[str, list[Policy]] = {}
        for policy in policies:
            found.setdefault(policy.name, []).append(policy)
        self._named = found

    def signer(self, name: str, message: bytes, signature: bytes) -> Policy | None:
        """Whose key made an HMAC-SHA256; takes as long where there is none of that name."""
        return self._holder(name, lambda key: hmac.digest(key, message, "sha256"), signature)

    def holder(self, name: str, key: bytes) -> Policy | None:
        """Whose key this is; takes as long where there is none of that name."""
        return self._holder(name, lambda own: own, key)

    def _holder(self, name: str, made_of: Callable[[bytes], bytes], given: bytes) -> Policy | None:
        found: Policy | None = None
        for policy in self._named.get(name) or [_NOBODY]:
            for key in policy.keys:
                if hmac.compare_digest(made_of(key), given) and policy is not _NOBODY:
                    found = policy
        return found


_NOBODY: Final = Policy(name="", keys=(b"-" * 44,) * 2, rights=frozenset(), scope=())


class PolicyFolder:
    """Keeps policies as a folder's files have them."""

    def __init__(self, folder: Path, *, default_namespace: str) -> None:
        self._folder = folder
        self._default_namespace = default_namespace
        self._read: secret_files.Stamps | None = None
        self.policies = Policies()

    def read(self) -> bool:
        """Look at the files once; whether something has changed. While one makes no sense, all stays as it was.

        Raises OSError, PoliciesUnreadable.
        """
        files = sorted(path for path in self._folder.glob("*.yaml") if not path.name.startswith("."))
        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is no folder")
        if len(files) > limits.POLICIES_MAX:
            raise PoliciesUnreadable(f"{self._folder} has more than {limits.POLICIES_MAX} policies")
        stamps = secret_files.stamps(files)
        if stamps == self._read:
            return False
        self.policies.replace([self._policy(path) for path in files])
        self._read = stamps
        return True

    def _policy(self, path: Path) -> Policy:
        if path.stat().st_size > limits.POLICY_BYTES_MAX:
            raise PoliciesUnreadable(f"{path.name} has more than {limits.POLICY_BYTES_MAX} bytes")
        try:
            document = yaml.safe_load(path.read_bytes())
        except (yaml.YAMLError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark is not None else ""
            # YAML's own words would quote the line, and with it a key.
            raise PoliciesUnreadable(f"{path.name}{where} is no YAML") from None
        return Policy.parse(document, default_namespace=self._default_namespace, source=path.name)
