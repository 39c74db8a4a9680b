"""One redis-server process of an embedded partition: its configuration, its start, its log and its end."""

import re
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from partitionedqueue.broker.library import redis_conf_text
from partitionedqueue.model.placement import maxmemory_bytes
from partitionedqueue.model.queue_spec import Durability, QueueSpec
from partitionedqueue_cli import children, limits, namespace
from partitionedqueue_cli.failures import ServerUnusable

_READY = "Ready to accept connections"
_PORT_TAKEN = re.compile(r"Address already in use|Failed listening on port")
_FSYNC = {
    Durability.ALWAYS: ("appendonly yes", "appendfsync always"),
    Durability.EVERY_SECOND: ("appendonly yes", "appendfsync everysec"),
    Durability.NONE: ("appendonly no",),
}


def find() -> str:
    """The path of a redis-server that is new enough. Raises ServerUnusable."""
    path = shutil.which("redis-server")
    if path is None:
        raise ServerUnusable(
            "there is no redis-server on PATH; install Redis 7.0 or newer (apt-get install redis-server)"
        )
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerUnusable(f"{path} cannot be run: {error}") from error
    match = re.search(r"v=(\d+)\.(\d+)(?:\.\d+)?", said)
    oldest = ".".join(map(str, limits.REDIS_OLDEST))
    if match is None:
        raise ServerUnusable(f"{path} does not say which version it is; Redis {oldest} or newer is needed")
    if (int(match[1]), int(match[2])) < limits.REDIS_OLDEST:
        raise ServerUnusable(f"{path} is Redis {match[0][2:]}, which has no Functions; {oldest} or newer is needed")
    return path


def configuration(spec: QueueSpec, folder: Path, port: int) -> str:
    """The broker's redis.conf: what every broker has, then what this one has; the last line for a setting wins."""
    own = (
        *("", "# ---- this broker alone"),
        *(f"bind {namespace.LOOPBACK}", f"port {port}", "protected-mode yes"),
        *(f'dir "{_quoted(folder)}"', f'logfile "{_quoted(folder / "redis.log")}"'),
        f"maxmemory {maxmemory_bytes(spec.partition_gb)}",
        *_FSYNC[spec.durability],
    )
    return redis_conf_text().rstrip("\n") + "\n" + "\n".join(own) + "\n"


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


@dataclass(slots=True)
class RedisServer:
    """A process that was started, and what its log has said since."""

    folder: Path
    process: subprocess.Popen[bytes]
    _log_from: int = 0
    _seen: str = field(default="", repr=False)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def log(self) -> Path:
        """Where it writes its log."""
        return self.folder / "redis.log"

    def ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def was_killed(self) -> bool:
        """Whether a signal ended it, once it has ended."""
        code = self.process.returncode
        return code is not None and code < 0

    def how_it_ended(self) -> str:
        """In words, once it has."""
        code = self.process.returncode
        return (
            f"was ended by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with code {code}"
        )

    def said(self) -> str:
        """Its log since this start."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._log_from)
                return file.read(limits.LOG_BYTES_MAX).decode(errors="replace")
        except FileNotFoundError:
            return ""

    def is_ready(self) -> bool:
        """Whether it has bound its port and loaded its data."""
        return _READY in self.said()

    def lost_its_port(self) -> bool:
        """Whether somebody else has the port."""
        return _PORT_TAKEN.search(self.said()) is not None

    def last_words(self) -> str:
        """The last line of its log, or of what it printed."""
        lines = [line.strip() for line in self.said().splitlines() if line.strip()]
        if not lines:
            errors = (self.folder / "redis.err").read_text(errors="replace").splitlines()
            lines = [line.strip() for line in errors if line.strip()]
        return lines[-1] if lines else "it said nothing"


def start(path: str, spec: QueueSpec, folder: Path, port: int) -> RedisServer:
    """Start a redis-server in its folder. It does not outlive this process. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    namespace.write_whole(folder / "redis.conf", configuration(spec, folder, port))
    log = folder / "redis.log"
    written = log.stat().st_size if log.exists() else 0
    if written > limits.LOG_BYTES_MAX:
        log.replace(folder / "redis.log.1")
        written = 0
    with (folder / "redis.err").open("wb") as errors:
        process = children.start([path, str(folder / "redis.conf")], folder=folder, output=errors)
    return RedisServer(folder, process, written)
