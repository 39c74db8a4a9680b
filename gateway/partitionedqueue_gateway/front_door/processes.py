"""Several processes on the same ports: one that serves nothing holds the ports, starts the others and starts them anew.

The kernel shares connections out among all that listen (SO_REUSEPORT). Each is a whole gateway; they share nothing.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from typing import Final

from partitionedqueue_gateway import limits

_log = logging.getLogger(__name__)
_BAD_INPUT: Final = 2
"""With this code a process says that its environment cannot be right: starting it anew changes nothing."""


class Processes:
    """`count` times the gateway's own program, with an environment that tells them so."""

    def __init__(self, count: int, environment: Mapping[str, str], *, end_s: float) -> None:
        self._count = count
        self._environment = {**os.environ, **environment}
        self._end_s = end_s
        self._ending, self._at_once = asyncio.Event(), asyncio.Event()

    async def run(self) -> int:
        """Until SIGTERM or SIGINT, which all are told; a second one ends them at once. The exit code for this one."""
        loop = asyncio.get_running_loop()
        for which in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(which, self._asked_to_end)
        async with asyncio.TaskGroup() as tasks:
            keepers = [tasks.create_task(self._keep(number)) for number in range(self._count)]
        return max(keeper.result() for keeper in keepers)

    def _asked_to_end(self) -> None:
        if self._ending.is_set():
            self._at_once.set()
        self._ending.set()

    async def _keep(self, number: int) -> int:
        loop, rest_s = asyncio.get_running_loop(), limits.PROCESS_RESTART_S_MIN
        while not self._ending.is_set():
            began_s = loop.time()
            process = await self._start()
            code = await self._until_it_ends(process)
            if self._ending.is_set():
                return 0 if code == 0 else 1
            _log.error("process %d of %d (pid %d) ended with %d", number + 1, self._count, process.pid, code)
            if code == _BAD_INPUT:
                self._ending.set()
                return code
            if loop.time() - began_s > limits.PROCESS_STEADY_S:
                rest_s = limits.PROCESS_RESTART_S_MIN
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._ending.wait()
            rest_s = min(2 * rest_s, limits.PROCESS_RESTART_S_MAX)
        return 0

    async def _start(self) -> Process:
        # Its standard input ends with this process, however that ends. A group of its own: Ctrl-C is for us.
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "partitionedqueue_gateway", stdin=PIPE, env=self._environment, process_group=0
        )

    async def _until_it_ends(self, process: Process) -> int:
        ended, ending, at_once = map(asyncio.ensure_future, (process.wait(), self._ending.wait(), self._at_once.wait()))
        try:
            await asyncio.wait((ended, ending), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                process.terminate()
                await asyncio.wait((ended, at_once), timeout=self._end_s, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                process.kill()
            return int(await ended)
        finally:
            for one in (ended, ending, at_once):
                one.cancel()
