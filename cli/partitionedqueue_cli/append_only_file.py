"""What is looked at before a broker starts over a folder, and when it cannot read it: the pod's append_only_file.sh."""

import asyncio
import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Literal

import partitionedqueue.broker
from partitionedqueue.model.queue_spec import Durability
from partitionedqueue_cli import children, limits
from partitionedqueue_cli.failures import AppendOnlyFileDamaged, BrokerDidNotStart, CommandFailed, FolderRefused

_NAME: Final = "append_only_file.sh"
_MUST_DECIDE: Final = 78  # EX_CONFIG: what the script ends with when it refuses


def script() -> Path:
    """Where it is: beside the library where installed, in broker-image/ in a checkout."""
    installed = Path(partitionedqueue.broker.__path__[0]) / _NAME
    return installed if installed.exists() else Path(__file__).parents[2] / "broker-image" / _NAME


def torn_end_may_go() -> bool:
    """Whether PQ_TORN_END=cut was given, as the script's words advise. Raises CommandFailed for what it cannot be."""
    wish = os.environ.get("PQ_TORN_END", "refuse")
    if wish not in ("refuse", "cut"):
        raise CommandFailed(f"PQ_TORN_END is {wish!r}; it is refuse, or cut")
    return wish == "cut"


class AppendOnlyFile:
    """The append-only file of one partition's folder."""

    def __init__(self, name: str, folder: Path, durability: Durability, server: str, ends: children.Ends) -> None:
        self._name = name
        self._folder = folder
        self._settings = {"PQ_SERVER": server, "PQ_DURABILITY": durability.value}
        self._ends = ends

    async def look(self) -> None:
        """Before a start: refuse what a server would not notice or not say. Raises FolderRefused.

        A folder that is not there yet holds nothing that could be wrong.
        """
        if self._is_there():
            await self._run("look")

    async def examine(self) -> None:
        """After a server has ended over it: find out whether and where it is damaged. Raises AppendOnlyFileDamaged."""
        await self._run("examine")

    async def cut(self) -> str | None:
        """Cut off a write that was torn, keeping a copy; what was done, None where there was nothing to do.

        Raises AppendOnlyFileDamaged, and changes nothing, where the damage is more than that.
        """
        words = await self._run("cut")
        return words if words.startswith("Cut ") else None

    def _is_there(self) -> bool:
        try:
            return self._folder.exists()
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> BrokerDidNotStart:
        return BrokerDidNotStart(f"{self._name}: {self._folder} cannot be looked at: {error.strerror}")

    async def _run(self, verb: Literal["look", "examine", "cut"]) -> str:
        """What it said. Raises FolderRefused, AppendOnlyFileDamaged, or BrokerDidNotStart where it cannot tell."""
        with tempfile.TemporaryFile() as output:
            code = await self._code(verb, output)
            output.seek(0)
            said = output.read(limits.LOG_BYTES_MAX).decode(errors="replace").strip()
        if code == _MUST_DECIDE:
            refused = FolderRefused if verb == "look" else AppendOnlyFileDamaged
            raise refused(f"{self._name}: {said.removeprefix('NOT STARTED: ')}")
        if code != 0:
            raise BrokerDidNotStart(f"{self._name}: {_NAME} {verb} ended with code {code}: {said or 'it said nothing'}")
        return said

    async def _code(self, verb: str, output: IO[bytes]) -> int:
        words = ["sh", str(script()), verb, str(self._folder)]
        environment = {**os.environ, **self._settings}
        try:
            process = children.start(words, folder=self._folder.parent, output=output, environment=environment)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            async with asyncio.timeout(limits.START_SECONDS_MAX):
                await self._ends.of(process)
        except TimeoutError:
            late = f"{_NAME} {verb} has not ended within {limits.START_SECONDS_MAX:g} s"
            raise BrokerDidNotStart(f"{self._name}: {late}") from None
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(limits.STOP_SECONDS_MAX)
        return process.returncode
