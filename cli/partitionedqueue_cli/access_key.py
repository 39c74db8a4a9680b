"""The root policy of an embedded namespace: made once for its folder, in a file that nobody else may read."""

import base64
import os
import secrets
from pathlib import Path
from typing import Final

import yaml

from partitionedqueue_cli.failures import FolderUnusable

ROOT_POLICY: Final = "RootManageSharedAccessKey"
"""Azure's name for it: what people have in their connection strings."""
_KEY_BYTES: Final = 32


def ensure(folder: Path) -> None:
    """Make the policy's file where there is none yet. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
    policy = {"name": ROOT_POLICY, "primaryKey": key, "rights": ["Manage", "Send", "Listen"]}
    try:
        file = os.open(_file(folder), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        yaml.safe_dump(policy, opened)


def read(folder: Path) -> str:
    """The key. Raises FolderUnusable, whose words never show what the file says."""
    path = _file(folder)
    try:
        return str(yaml.safe_load(path.read_text(encoding="utf-8"))["primaryKey"])
    except OSError as error:
        raise FolderUnusable(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, KeyError, TypeError):
        raise FolderUnusable(f"{path} is no access policy; remove it, and the next pq up makes a new key") from None


def _file(folder: Path) -> Path:
    return folder / "root.yaml"
