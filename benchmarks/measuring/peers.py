"""RabbitMQ and NATS for the length of a measurement, in a cache folder and temporary folders of their own.

Nothing is installed into the machine: RabbitMQ's packages are fetched by apt-get as the machine's own release has them
and only unpacked, so that none of their scripts runs and no service is made; NATS is built by Go. All of them listen on
loopback alone.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring.rounds import say
from benchmarks.measuring.servers import free_ports, running, temporary_folder

NATS_MODULE = "github.com/nats-io/nats-server/v2@v2.10.27"
GO_OLDEST = (1, 23)
START_S_MAX = 90.0
FETCH_S_MAX = 600.0
DRIVERS = Path(__file__).resolve().parent.parent / "drivers"


class PeerMissing(Exception):
    """What this machine lacks, in one sentence."""


class Peer(NamedTuple):
    """A running server: where it listens, and the process group whose processor time is its."""

    address: str
    process_group: int


def cache_folder() -> Path:
    """Where peers are kept from run to run; it may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "partitionedqueue-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(*arguments: str, folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """A program's output. Raises PeerMissing with its last words where it fails."""
    try:
        done = subprocess.run(
            arguments,
            cwd=folder,
            env=os.environ | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_S_MAX,
            check=False,
        )
    except FileNotFoundError:
        raise PeerMissing(f"there is no {arguments[0]} on this machine") from None
    if done.returncode:
        raise PeerMissing(f"`{' '.join(arguments[:3])} …` failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def go_is_there() -> None:
    """Raises PeerMissing without a Go that can build the load drivers."""
    if not shutil.which("go"):
        raise PeerMissing(f"the load drivers, and NATS, are built with Go {GO_OLDEST[0]}.{GO_OLDEST[1]} or newer")
    version = run("go", "env", "GOVERSION").strip()
    if tuple(map(int, version.removeprefix("go").split(".")[:2])) < GO_OLDEST:
        raise PeerMissing(f"{version} is too old: the load drivers are built with Go {GO_OLDEST[0]}.{GO_OLDEST[1]}")


def driver(folder: Path, sources: Path = DRIVERS) -> Path:
    """The load driver, or another one of `drivers/`, built into `folder`. Raises PeerMissing."""
    go_is_there()
    program = folder / sources.name
    run("go", "build", "-o", str(program), ".", folder=sources)
    return program


def wait_for(port: int, name: str, log: Path) -> None:
    """Until a server listens. Raises PeerMissing with the end of its log where it does not."""
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise PeerMissing(f"{name} did not start: {log.read_text(errors='replace')[-1000:]}")


# ---------------------------------------------------------------- NATS


def nats_server() -> Path:
    """The NATS server, built the first time."""
    folder = cache_folder() / NATS_MODULE.rsplit("@", 1)[1]
    program = folder / "nats-server"
    if not program.exists():
        say("building the NATS server; this is done once")
        run("go", "install", NATS_MODULE, environment={"GOBIN": str(folder)})
    return program


@contextmanager
def nats() -> Iterator[Peer]:
    """NATS with JetStream, every write synced to disk before its reply."""
    program = nats_server()
    (port,) = free_ports(1)
    with temporary_folder() as folder:
        settings = folder / "nats.conf"
        settings.write_text(
            f'listen: "127.0.0.1:{port}"\n'
            f'jetstream {{ store_dir: "{folder}", sync_interval: always, max_file_store: 64G }}\n',
            encoding="utf-8",
        )
        log = folder / "log"
        with running([str(program), "-c", str(settings)], log) as group:
            wait_for(port, "NATS", log)
            yield Peer(f"127.0.0.1:{port}", group)


# ---------------------------------------------------------------- RabbitMQ


def rabbitmq_root() -> Path:
    """What stands for `/` in RabbitMQ's and Erlang's packages: the machine's own, or unpacked in the cache."""
    if Path("/usr/lib/rabbitmq/bin/rabbitmq-server").exists() and shutil.which("erl"):
        return Path("/")
    root = cache_folder() / "rabbitmq"
    if not root.exists():
        say("fetching RabbitMQ's packages; this is done once")
        with tempfile.TemporaryDirectory(dir=cache_folder()) as name:
            unpacked = Path(name)
            _unpack_rabbitmq(unpacked)
            unpacked.chmod(0o755)
            unpacked.rename(root)
            unpacked.mkdir()  # for the temporary folder's own end
    return root


def _unpack_rabbitmq(folder: Path) -> None:
    """All that RabbitMQ needs and this machine has not."""
    try:
        planned = run("apt-get", "install", "--simulate", "--no-install-recommends", "rabbitmq-server")
    except PeerMissing as error:
        raise PeerMissing(f"RabbitMQ comes as a Debian package (as root: apt-get update); {error}") from None
    packages = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
    run("apt-get", "download", "-q", *packages, folder=folder)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "--extract", str(package), str(folder))
        package.unlink()
    erl = folder / "usr/lib/erlang/bin/erl"  # its folder is written into it
    moved = str(cache_folder() / "rabbitmq" / "usr/lib/erlang")
    erl.write_text(erl.read_text().replace("ROOTDIR=/usr/lib/erlang", f"ROOTDIR={moved}"))


def _rabbitmq_environment(root: Path, folder: Path, epmd_port: int, distribution_port: int) -> dict[str, str]:
    libraries = ":".join(map(str, (*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu"))))
    return os.environ | {
        "PATH": f"{root}/usr/lib/erlang/bin:{root}/usr/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": libraries if root != Path("/") else "",
        "HOME": str(folder),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd_port),
        "RABBITMQ_NODENAME": "benchmark@localhost",
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }


@contextmanager
def rabbitmq() -> Iterator[Peer]:
    """One RabbitMQ node, with an Erlang port mapper of its own that ends with it."""
    root = rabbitmq_root()
    port, epmd_port, distribution_port = free_ports(3)
    with temporary_folder() as folder:
        (folder / "plugins").write_text("[].\n")
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
        environment = _rabbitmq_environment(root, folder, epmd_port, distribution_port)
        (epmd,) = root.glob("usr/lib/erlang/erts-*/bin/epmd")
        (server,) = root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
        with running([str(epmd)], folder / "epmd.log", environment):
            wait_for(epmd_port, "Erlang's port mapper", folder / "epmd.log")
            with running([str(server)], folder / "rabbitmq.log", environment) as group:
                wait_for(port, "RabbitMQ", folder / "rabbitmq.log")
                yield Peer(f"127.0.0.1:{port}", group)


# ---------------------------------------------------------------- what they use


def processor_s(groups: set[int]) -> float:
    """Processor time that the processes of these groups have used so far (Linux)."""
    return sum(used_s for _, group, used_s in _processes() if group in groups)


def processor_s_of(processes: Collection[int]) -> float:
    """Processor time that these processes have used so far (Linux)."""
    return sum(used_s for process, _, used_s in _processes() if process in processes)


def _processes() -> Iterator[tuple[int, int, float]]:
    """Each process, its group, and the processor time that it has used."""
    ticks_a_second = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        yield int(stat.parent.name), int(fields[2]), (int(fields[11]) + int(fields[12])) / ticks_a_second
