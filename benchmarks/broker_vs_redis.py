"""How much of plain Redis' speed is left once messages have locks, sequence numbers and totals?

Both sides are driven by the same loop over the same connections to the same redis-servers, one after the other, in
rounds that swap who goes first. What is printed are the medians of each round's own fraction, so a slow moment of the
machine hurts both sides alike. 1.00 means as fast as plain Redis.

    send      pq_send of b messages                 against RPUSH of b values
    receive   pq_receive of b messages under a lock against LPOP with count b
    complete  pq_complete of what one receive gave  against XACK + XDEL of b entries of a stream
    cycle     all three                             against RPUSH + LPOP: no locks, at most once, a hard bound

The library is used as its clients use it: bodies of some kilobytes go past Lua, a small one through it. Each number
stands twice: by the clock, which contains this driver's own Python, and by the servers' processor time.
Behind them stands what was aimed at, by the clock.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring import cycle
from benchmarks.measuring.lanes import Cost, Lane, ask_all, drive, measured, repeated, total, wire
from benchmarks.measuring.messages import POOL_CALLS, stored_forms
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import ALWAYS, EVERYSEC, OFF, broker_lanes

from partitionedqueue.broker.keys import QueueKeys

KEYS = QueueKeys("bench")
BODY_BYTES = 1024
SERVERS = ((OFF, 1), (OFF, 16), (EVERYSEC, 1), (ALWAYS, 1), (ALWAYS, 16))
MESSAGES_A_ROUND = {1: 8_000, 10: 24_000, 100: 48_000}
TARGETS = {  # for one broker; (fsync, phase) → b = 1, 10, 100
    (OFF, "send"): (0.25, 0.45, 0.45),
    (OFF, "receive"): (0.15, 0.28, 0.25),
    (OFF, "complete"): (0.35, 1.00, 1.50),
    (OFF, "cycle"): (0.14, 0.30, 0.33),
    (ALWAYS, "cycle"): (0.35, 0.50, 0.45),
}

Round = dict[str, Cost]


class Scenario(NamedTuple):
    """What one line of the table is about."""

    fsync: str
    brokers: int
    batch: int

    def key(self, phase: str) -> str:
        """The name of one ratio in the JSON line."""
        return f"{phase}_b{self.batch}_{self.fsync}_x{self.brokers}"

    def target(self, phase: str) -> float | None:
        """What was aimed at, if anything."""
        targets = TARGETS.get((self.fsync, phase)) if self.brokers == 1 else None
        return targets[list(MESSAGES_A_ROUND).index(self.batch)] if targets else None


def round_of_broker(lanes: Sequence[Lane], pool: Sequence[cycle.Batch], count: int) -> Round:
    """Send, receive and complete through the library; `count` calls of each on every lane."""
    costs = {"send": cycle.send(lanes, cycle.Sender(KEYS), pool, count)}
    costs["receive"], held = cycle.receive(lanes, KEYS, pool, count)
    costs["complete"] = cycle.complete(lanes, KEYS, held)
    costs["cycle"] = total(*costs.values())
    return costs


def round_of_redis(lanes: Sequence[Lane], pool: Sequence[cycle.Batch], count: int) -> Round:
    """The nearest plain commands: a list for send and receive, a stream for complete."""
    batch = len(pool[0])
    pushes = repeated([wire("RPUSH", "plain", *messages) for messages in pool], count)
    costs = {"send": measured(lanes, [pushes] * len(lanes))}
    costs["receive"] = measured(lanes, [[wire("LPOP", "plain", batch)] * count] * len(lanes))
    costs["cycle"] = total(*costs.values())
    adds = repeated([b"".join(wire("XADD", "stream", "*", "m", each) for each in messages) for messages in pool], count)
    read = wire("XREADGROUP", "GROUP", "g", "c", "COUNT", batch, "STREAMS", "stream", ">")
    ask_all(lanes, wire("XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM"))
    drive(lanes, [adds] * len(lanes), replies_each=batch)
    drive(lanes, [[read] * count] * len(lanes))
    completes = [[complete_of([entry[0] for entry in reply[0][1]]) for reply in lane.replies] for lane in lanes]
    costs["complete"] = measured(lanes, completes, replies_each=2)
    ask_all(lanes, wire("DEL", "stream"))
    return costs


def complete_of(ids: Sequence[bytes]) -> bytes:
    """What a stream's reader does with the entries that it has finished with."""
    return wire("XACK", "stream", "g", *ids) + wire("XDEL", "stream", *ids)


def fractions(scenario: Scenario, lanes: Sequence[Lane], messages: int, rounds: int) -> dict[str, Cost]:
    """Phase → how much of plain Redis the broker reaches: medians over all rounds."""
    count = max(POOL_CALLS, messages // (scenario.batch * scenario.brokers))
    pool = [stored_forms(scenario.batch, BODY_BYTES) for _ in range(POOL_CALLS)]
    sides = {
        "broker": lambda: round_of_broker(lanes, pool, count),
        "redis": lambda: round_of_redis(lanes, pool, count),
    }
    seen = take_turns(sides, rounds)
    return {
        phase: Cost(
            median(costs["redis"][phase].clock_s / costs["broker"][phase].clock_s for costs in seen),
            median(costs["redis"][phase].cpu_s / costs["broker"][phase].cpu_s for costs in seen),
        )
        for phase in ("send", "receive", "complete", "cycle")
    }


def row(scenario: Scenario, found: Mapping[str, Cost]) -> list[str]:
    """One line of the table."""
    cells = [scenario.fsync, str(scenario.brokers), str(scenario.batch)]
    for phase, fraction in found.items():
        target = scenario.target(phase)
        aim = "" if target is None else f" {'<' if fraction.clock_s < target else '≥'} {target:.2f}"
        cells.append(f"{fraction.clock_s:.2f} ({fraction.cpu_s:.2f}){aim:7}")
    return cells


def main() -> int:
    """Measure every scenario; print the table and the JSON line."""
    arguments = parser("The broker against plain Redis commands, as fractions.").parse_args()
    rounds, share = rounds_of(arguments), 8 if arguments.quick else 1
    rows: list[list[str]] = []
    ratios: dict[str, float] = {}
    cpu_ratios: dict[str, float] = {}
    below: list[str] = []
    for fsync, brokers in SERVERS:
        with broker_lanes(brokers, fsync) as lanes:
            for batch, messages in MESSAGES_A_ROUND.items():
                scenario = Scenario(fsync, brokers, batch)
                say(f"append-only file {fsync}, brokers {brokers}, batch {batch}")
                found = fractions(scenario, lanes, messages // share, rounds)
                rows.append(row(scenario, found))
                ratios |= {scenario.key(phase): each.clock_s for phase, each in found.items()}
                cpu_ratios |= {scenario.key(phase): round(each.cpu_s, 3) for phase, each in found.items()}
                below += [scenario.key(p) for p, each in found.items() if each.clock_s < (scenario.target(p) or 0)]
    print(f"Fractions of plain Redis, medians of {rounds} rounds: by the clock (by the servers' processor time) target")
    table(("fsync", "brokers", "batch", "send", "receive", "complete", "cycle"), rows)
    return conclude("broker_vs_redis", ratios, rounds=rounds, cpu_ratios=cpu_ratios, below_target=below)


if __name__ == "__main__":
    sys.exit(main())
