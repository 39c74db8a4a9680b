"""What does the gateway cost a message over AMQP, and how much of that is AMQP itself?

Load comes from Microsoft's own Go SDK, unmodified: single sends with 256 of them under way, sends in batches of 100,
receives with each message completed by itself, and receive-and-delete; 1 KB. Two sides take turns. `whole` is `pq up`:
one gateway process, a queue of 16 partitions, every write synced to disk before it is confirmed. `edge` is the
gateway's AMQP engine with nothing behind it, messages kept in memory: the least that an AMQP server in Python costs.
Ratios are processor time of the gateway over that of the edge; messages a second stand beside them. The whole shares
the processors, and their caches, with the sixteen brokers that it keeps busy.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring import peers
from benchmarks.measuring.peers import PeerMissing
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import free_ports, running, temporary_folder

ROOT = Path(__file__).resolve().parent.parent
PQ = Path(sys.executable).with_name("pq")
BODY_BYTES = 1024
PARALLEL = 256
"""Sends and completions that wait for their answers at the same time."""
WHOLE, EDGE = "whole", "edge"
QUEUE = "measured"
START_S_MAX = 120.0
DRIVER_S_MAX = 300.0
MANIFEST = f"""
apiVersion: messaging.partitionedqueue.io/v1alpha1
kind: PartitionedQueue
metadata: {{name: {QUEUE}}}
spec: {{enablePartitioning: true, sizeGB: 1, lockDuration: PT5M}}
"""
# How each mode is asked for: messages, messages a call. What is sent in the first two is received in the last two.
MODES: Mapping[str, tuple[int, int]] = {
    "send": (20_000, 1),
    "receive": (20_000, 100),
    "batch": (60_000, 100),
    "delete": (60_000, 100),
}


class Side(NamedTuple):
    """Something that listens, and the processes whose time is its."""

    connection_string: str
    processes: frozenset[int]


class Found(NamedTuple):
    """What one run gave: messages a second, and processor time in microseconds a message."""

    rate: float
    us: float


def connection_string(port: int) -> str:
    """For a server that asks nobody who he is."""
    return f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=any;SharedAccessKey=a2V5;UseDevelopmentEmulator=true"


@contextmanager
def edge(folder: Path) -> Iterator[Side]:
    """The engine alone."""
    (port,) = free_ports(1)
    program = ROOT / "benchmarks/measuring/amqp_edge.py"
    log = folder / "edge.log"
    with running([sys.executable, str(program), str(port)], log) as process:
        peers.wait_for(port, "the edge", log)
        yield Side(connection_string(port), frozenset({process}))


def _pq(*arguments: str) -> str:
    done = subprocess.run([str(PQ), *arguments], capture_output=True, text=True, check=False, timeout=START_S_MAX)
    if done.returncode:
        raise RuntimeError(f"pq {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def whole(folder: Path) -> Iterator[Side]:
    """An embedded namespace with one queue."""
    manifest, data = folder / "queue.yaml", folder / "data"
    manifest.write_text(MANIFEST, encoding="utf-8")
    log = folder / "pq.log"
    with running([str(PQ), "up", "-f", str(manifest), "--data-dir", str(data)], log) as process:
        told = _wait_for_connection_string(data)
        yield Side(told, gateway_processes(process))


def _wait_for_connection_string(data: Path) -> str:
    deadline = time.monotonic() + START_S_MAX
    while True:
        try:
            return _pq("connection-string", "--data-dir", str(data))
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def gateway_processes(ancestor: int) -> frozenset[int]:
    """Those descendants of a process that are Python's: the gateway's, not the brokers'."""
    parents: dict[int, int] = {}
    names: dict[int, bytes] = {}
    for stat in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(stat.name)] = int((stat / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(stat.name)] = (stat / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue

    def descends(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == ancestor:
                return True
        return False

    return frozenset(one for one, name in names.items() if b"partitionedqueue_gateway" in name and descends(one))


def drive(program: Path, side: Side, mode: str, messages: int, batch: int) -> Found:
    """One run of one mode."""
    before = peers.processor_s_of(side.processes)
    done = subprocess.run(
        [
            str(program),
            f"-connection-string={side.connection_string}",
            f"-queue={QUEUE}",
            f"-mode={mode}",
            f"-messages={messages}",
            f"-batch={batch}",
            f"-parallel={PARALLEL}",
            f"-size={BODY_BYTES}",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=DRIVER_S_MAX,
    )
    if done.returncode:
        raise RuntimeError(f"{mode}: {done.stderr.strip()[-1000:]}")
    told = json.loads(done.stdout)
    return Found(
        told["messages"] / told["seconds"], 1e6 * (peers.processor_s_of(side.processes) - before) / told["messages"]
    )


def drive_all(program: Path, side: Side, share: float) -> dict[str, Found]:
    """All modes, one after the other."""
    return {
        mode: drive(program, side, mode, max(1, int(messages * share) // batch) * batch, batch)
        for mode, (messages, batch) in MODES.items()
    }


def show(seen: Sequence[Mapping[str, Mapping[str, Found]]]) -> dict[str, float]:
    """The table; gives the ratios."""
    rows, ratios = [], {}
    for mode in MODES:
        us = {side: median(each[side][mode].us for each in seen) for side in (WHOLE, EDGE)}
        rate = {side: median(each[side][mode].rate for each in seen) for side in (WHOLE, EDGE)}
        ratios[f"{mode}_processor_whole_to_edge"] = median(each[WHOLE][mode].us / each[EDGE][mode].us for each in seen)
        rows.append(
            (mode, *(f"{rate[side]:,.0f}" for side in (WHOLE, EDGE)), *(f"{us[side]:.1f}" for side in (WHOLE, EDGE)))
        )
    table(("mode", "whole/s", "edge/s", "whole us/message", "edge us/message"), rows)
    return ratios


def main() -> int:
    """Measure, or say in words what this machine lacks; print the JSON line."""
    arguments = parser("The gateway over AMQP against its AMQP engine alone.").parse_args()
    rounds, share = rounds_of(arguments), 0.1 if arguments.quick else 1.0
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        try:
            program = peers.driver(folder, peers.DRIVERS / "azure")
        except PeerMissing as missing:
            print(f"Not measured: {missing}")
            return conclude("gateway_amqp", {}, not_measured=[str(missing)])
        sides = {WHOLE: stack.enter_context(whole(folder)), EDGE: stack.enter_context(edge(folder))}
        turns: dict[str, Callable[[], dict[str, Found]]] = {
            name: partial(drive_all, program, side, share) for name, side in sides.items()
        }
        say(f"{rounds} rounds of {', '.join(MODES)} on each side")
        seen = take_turns(turns, rounds)
    print(f"{BODY_BYTES} B, 16 partitions, synced to disk, one gateway process; medians of {rounds} rounds")
    ratios = show(seen)
    return conclude("gateway_amqp", ratios, rounds=rounds)


if __name__ == "__main__":
    sys.exit(main())
