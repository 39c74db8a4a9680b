"""How many HTTP requests does a gateway process answer, against plain aiohttp that makes one Redis call for each?

Two sides take turns under the same load: 64 connections that are kept, each with one request under way, 1 KB messages,
a shared access signature in every request. `send` is one request a message; `receive` two: it is locked, then
completed. `whole` is `pq up`: one gateway process, a queue of 16 partitions. `plain` is aiohttp over one redis-server.
Both sync every write to disk before they answer. Ratios are the whole's over the plain's: of requests a second of the
server process' own processor time, which is what a gateway process has to spend, and of requests a second by the
clock, where the whole shares the processors with the sixteen brokers that it keeps busy.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from benchmarks import gateway_amqp
from benchmarks.measuring import peers, servers
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import free_ports, running, temporary_folder

from harness.sas_tokens import sas_token

MEASURING = Path(__file__).resolve().parent / "measuring"
WHOLE, PLAIN = "whole", "plain"
MODES = ("send", "receive")
MESSAGES = 5_000
CONNECTIONS = 64
LOAD_S_MAX = 300.0
TARGET = 0.5
_ENDPOINT = re.compile(r"Endpoint=sb://[^:/]+:(\d+)/?;SharedAccessKeyName=([^;]+);SharedAccessKey=([^;]+)")


class Side(NamedTuple):
    """Something that listens, whom it lets in, and the processes whose time is its."""

    port: int
    token: str
    processes: frozenset[int]


class Found(NamedTuple):
    """Requests a second: by the clock, and of processor time."""

    by_clock: float
    by_processor: float


@contextmanager
def whole(folder: Path) -> Iterator[Side]:
    """An embedded namespace with one queue."""
    with gateway_amqp.whole(folder) as side:
        found = _ENDPOINT.match(side.connection_string)
        assert found is not None, "the connection string has another form than was known"
        port, name, key = found.groups()
        token = sas_token(f"http://localhost:{port}/", expires_s=time.time() + 86_400, name=name, key=key)
        yield Side(int(port), token, side.processes)


@contextmanager
def plain(folder: Path) -> Iterator[Side]:
    """One redis-server behind aiohttp."""
    (port,) = free_ports(1)
    log = folder / "plain.log"
    with servers.brokers(1, servers.ALWAYS) as (broker,):
        program = [sys.executable, str(MEASURING / "http_edge.py"), str(port), str(broker.port)]
        with running(program, log) as process:
            peers.wait_for(port, "plain aiohttp", log)
            yield Side(port, "nobody", frozenset({process}))


def load(side: Side, mode: str, messages: int) -> Found:
    """One run of one mode."""
    before = peers.processor_s_of(side.processes)
    arguments = [str(side.port), mode, str(messages), str(CONNECTIONS), side.token]
    done = subprocess.run(
        [sys.executable, str(MEASURING / "http_load.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LOAD_S_MAX,
    )
    if done.returncode:
        raise RuntimeError(f"{mode}: {done.stderr.strip()[-1000:]}")
    told = json.loads(done.stdout)
    used_s = peers.processor_s_of(side.processes) - before
    return Found(told["requests"] / told["seconds"], told["requests"] / used_s)


def load_all(side: Side, messages: int) -> dict[str, Found]:
    """All modes, one after the other: what was sent is received."""
    return {mode: load(side, mode, messages) for mode in MODES}


def show(seen: Sequence[Mapping[str, Mapping[str, Found]]]) -> tuple[dict[str, float], dict[str, float]]:
    """The table; gives the ratios by the processor, and by the clock."""
    rows, by_processor, by_clock = [], {}, {}
    for mode in MODES:
        pairs = [(each[WHOLE][mode], each[PLAIN][mode]) for each in seen]
        by_processor[mode] = median(mine.by_processor / theirs.by_processor for mine, theirs in pairs)
        by_clock[mode] = median(mine.by_clock / theirs.by_clock for mine, theirs in pairs)
        figures = [
            median(getattr(each[side][mode], which) for each in seen)
            for which in Found._fields
            for side in (WHOLE, PLAIN)
        ]
        rows.append((mode, *(f"{figure:,.0f}" for figure in figures)))
    table(("mode", "whole/s", "plain/s", "whole/processor s", "plain/processor s"), rows)
    return by_processor, by_clock


def main() -> int:
    """Measure; print the JSON line."""
    arguments = parser("The gateway over HTTP against plain aiohttp with one Redis call.").parse_args()
    rounds, messages = rounds_of(arguments), MESSAGES // 10 if arguments.quick else MESSAGES
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        sides = {WHOLE: stack.enter_context(whole(folder)), PLAIN: stack.enter_context(plain(folder))}
        turns: dict[str, Callable[[], dict[str, Found]]] = {
            name: partial(load_all, side, messages) for name, side in sides.items()
        }
        say(f"{rounds} rounds of {', '.join(MODES)} on each side, {messages:,} messages each")
        seen = take_turns(turns, rounds)
    print(f"1 KB, {CONNECTIONS} connections, synced to disk; medians of {rounds} rounds; requests a second")
    ratios, clock_ratios = show(seen)
    below = [mode for mode, ratio in ratios.items() if ratio < TARGET]
    clock = {mode: round(ratio, 3) for mode, ratio in clock_ratios.items()}
    return conclude("gateway_rest", ratios, clock_ratios=clock, rounds=rounds, below_target=below)


if __name__ == "__main__":
    sys.exit(main())
