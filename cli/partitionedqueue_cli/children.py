"""Child processes that do not outlive this one, and how their end is waited for."""

import asyncio
import contextlib
import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from partitionedqueue_cli import limits

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def start(
    words: Sequence[str], *, folder: Path, output: IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process, in a process group of its own; `output` takes what it prints. Raises OSError."""
    parent = os.getpid()

    def end_with_the_parent() -> None:
        # The kernel sends SIGTERM when the supervisor is gone, however it went; it may have gone just now.
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        # Ctrl-C in the terminal is for the supervisor, which ends its children in good order.
        os.setpgid(0, 0)

    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        preexec_fn=end_with_the_parent,  # noqa: PLW1509 -- this process has one thread, so no lock can be held
    )


def end_leftover(pid: int, folder: Path) -> None:
    """End a child of an earlier supervisor, if it still works in that folder: two redis-servers would ruin its file."""
    if pid <= 0:
        return
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if Path(f"/proc/{pid}/cwd").readlink() == folder.resolve():
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            _wait_for_the_end(handle)
    except OSError:
        return
    finally:
        os.close(handle)


def _wait_for_the_end(handle: int) -> None:
    select.select([handle], [], [], limits.STOP_SECONDS_MAX)


class Ends:
    """Waits for children without a thread: SIGCHLD says that one of them has ended, and not which."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        """Wake everybody who waits; for SIGCHLD."""
        self._event.set()
        self._event = asyncio.Event()

    async def of(self, process: subprocess.Popen[bytes]) -> None:
        """Return when that one has ended."""
        while process.poll() is None:
            event = self._event
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):  # a SIGCHLD may come between the look and the wait
                    await event.wait()
