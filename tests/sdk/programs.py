"""The programs that run operations, a language each: what scripts/sdks gives, as processes."""

import contextlib
import json
import os
import queue
import shlex
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

_SCRIPT: Final = Path(__file__).parents[2] / "scripts" / "sdks"
_UNAVAILABLE: Final = 69
_SET_UP_SECONDS: Final = 900.0
OPERATION_SECONDS: Final = 100.0


class SdkNotHere(Exception):
    """This machine cannot have that SDK; the words say why."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """An SDK that is here."""

    name: str
    version: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an operation went: passed, failed or absent (the SDK has no such operation)."""

    outcome: str
    said: str
    seconds: float


@cache
def sdk(name: str) -> Sdk:
    """An SDK by its language; fetched and built if need be. Raises SdkNotHere."""
    done = subprocess.run(
        [str(_SCRIPT), name],
        capture_output=True,
        text=True,
        timeout=_SET_UP_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode == _UNAVAILABLE:
        raise SdkNotHere(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    language, version, *command = shlex.split(done.stdout)
    return Sdk(language, version, tuple(command))


class Program:
    """A process of an SDK's program: one operation after the other. One that hangs is ended, and begun anew."""

    def __init__(self, of: Sdk, log: Path, **environment: str) -> None:
        self._sdk = of
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self, operation: str, place: Mapping[str, object]) -> Outcome:
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"operation": operation, "place": place}) + "\n")
            process.stdin.flush()
            answer = self._answers.get(timeout=OPERATION_SECONDS)
        except queue.Empty:
            self.end()
            return Outcome("failed", f"there was no answer in {OPERATION_SECONDS:.0f} s", OPERATION_SECONDS)
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.end()
            return Outcome("failed", f"the program ended:\n{self._log.read_text()[-3000:]}", 0.0)
        told: dict[str, Any] = json.loads(answer)
        return Outcome(told["outcome"], told["said"], told["seconds"])

    def end(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._sdk.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env={**os.environ, **self._environment},
            )
        self._answers = queue.SimpleQueue()
        assert self._process.stdout is not None
        threading.Thread(target=_read, args=(self._process.stdout, self._answers), daemon=True).start()
        return self._process


def _read(answers: IO[str], into: "queue.SimpleQueue[str]") -> None:
    with answers:
        for line in answers:
            into.put(line)
    into.put("")  # it has ended
