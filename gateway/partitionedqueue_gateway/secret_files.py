"""Files that change while they are in use: a Secret's keys and certificates, looked at again and again."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits

_log = logging.getLogger(__name__)
Stamps: TypeAlias = tuple[tuple[str, int, int, int], ...]


def stamps(files: Iterable[Path]) -> Stamps:
    """Changes where one of the files has. Raises OSError."""
    stats = [(path.name, path.stat()) for path in files]  # through links: the kubelet turns a link to change a Secret
    return tuple((name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


async def keep_reading(what: str, read: Callable[[], bool]) -> None:
    """Read every `limits.SECRETS_POLL_S`, until cancelled; `read` says whether something has changed.

    Where it raises OSError or one of our own errors, that is said once, and what was read before stays in force.
    """
    trouble = ""
    while True:
        await asyncio.sleep(limits.SECRETS_POLL_S)
        try:
            if await asyncio.to_thread(read):
                _log.info("%s: read again, as the files have changed", what)
            trouble = ""
        except (OSError, PartitionedQueueError) as error:
            if trouble != str(error):
                _log.warning("%s: what was read before stays in force: %s", what, error)
            trouble = str(error)
