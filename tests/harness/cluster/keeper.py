"""The process that a cluster stands and falls with: holds its slot, makes its volumes, enforces its policies, and at
the end removes all of it.

The end is SIGTERM, or the death of whoever wanted the cluster: then this process's stdin closes, however that one died.
Should the keeper itself be killed, the nodes end with it (files/outer.sh), and the next claim of the slot removes the
rest.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Final

from harness.cluster import slots
from harness.cluster.addresses import Slot
from harness.cluster.enforcer import Enforcer
from harness.cluster.volumes import Volumes

_END_SECONDS_MAX: Final = 300.0
_TRIES: Final = 3
_PID: Final = "keeper.pid"


class Keeper:
    """The handle of whoever started it. Dropping it, by `end` or by dying, ends the cluster unless it `outlives`."""

    def __init__(self, slot: Slot, lock: int, *, outlives: bool) -> None:
        folder = slots.folder(slot)
        folder.mkdir(mode=0o755, parents=True)
        os.mkfifo(folder / "lifeline")
        with (folder / "keeper.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "harness.cluster.keeper", str(slot.number)],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=[lock],
                start_new_session=True,  # a Ctrl-C is for its owner, who then lets go in order
            )
        os.close(lock)
        assert self._process.stdin
        if outlives:
            self._process.stdin.write(b"stay\n")
            self._process.stdin.close()
        (folder / _PID).write_text(str(self._process.pid))

    def end(self) -> None:
        """Remove the cluster; returns when nothing of it is left."""
        assert self._process.stdin
        self._process.stdin.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._process.wait(_END_SECONDS_MAX)


def end(slot: Slot) -> None:
    """End a cluster that outlived its maker; returns when nothing of it is left."""
    try:
        pid = int((slots.folder(slot) / _PID).read_text())
        watched = os.pidfd_open(pid)
    except (FileNotFoundError, ProcessLookupError):
        return
    try:
        if "harness.cluster.keeper" in Path(f"/proc/{pid}/cmdline").read_text():
            signal.pidfd_send_signal(watched, signal.SIGTERM)
            _wait(watched)
    finally:
        os.close(watched)


def _wait(watched: int) -> None:
    poll = select.poll()
    poll.register(watched)
    poll.poll(_END_SECONDS_MAX * 1000)


def main(number: int) -> None:
    slot = Slot(number)
    end_of_it = threading.Event()
    for which in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(which, lambda *_: end_of_it.set())
    lifeline = os.open(slots.folder(slot) / "lifeline", os.O_RDWR)
    threading.Thread(target=_follow_owner, args=(end_of_it,), daemon=True).start()
    for servant in (Volumes(slots.folder(slot), slot), Enforcer(slots.folder(slot), slot)):
        threading.Thread(target=servant.serve, daemon=True).start()
    end_of_it.wait()
    os.close(lifeline)
    for left in reversed(range(_TRIES)):
        try:
            slots.clear(slot)
        except (AssertionError, OSError, subprocess.SubprocessError):
            if not left:
                raise
            traceback.print_exc()
        else:
            return


def _follow_owner(end_of_it: threading.Event) -> None:
    if sys.stdin.readline() != "stay\n":
        end_of_it.set()


if __name__ == "__main__":
    main(int(sys.argv[1]))
