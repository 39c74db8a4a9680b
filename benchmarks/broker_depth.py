"""Does a broker stay as fast with millions of messages?

Two queues in one broker, one with a thousand messages, one with five million; both are sent to, received from and
completed in turns, in small steps so that their depth stays. Printed is the deep queue's speed as a fraction of the
shallow one's, medians over all rounds. It may be 1.3 times slower (.77); .90 was aimed at.
"""

import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring import cycle
from benchmarks.measuring.lanes import Cost, Lane, drive, information, repeated, total, wire_of
from benchmarks.measuring.messages import batches, stored_forms
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import OFF, broker_lanes

from partitionedqueue.broker import calls
from partitionedqueue.broker.keys import QueueKeys

BODY_BYTES = 100
SHALLOW, DEEP = "shallow", "deep"
DEPTHS = {SHALLOW: 1_000, DEEP: 5_000_000}
STEP_MESSAGES = 500
STEPS_A_ROUND = {1: 40, 10: 200, 100: 400}
FILL_BATCH, FILL_WINDOW, FILL_STEP = 250, 8, 500_000
PHASES = ("send", "receive", "complete", "cycle")
LEAST = 1 / 1.3

Round = dict[str, Cost]


def fill(lane: Lane, name: str, count: int) -> None:
    """Bring a queue to its depth."""
    keys = QueueKeys(name)
    pool = [wire_of(calls.send(keys, each)) for each in batches(stored_forms(FILL_BATCH * 16, BODY_BYTES), FILL_BATCH)]
    for done in range(0, count, FILL_STEP):
        drive([lane], [repeated(pool, min(FILL_STEP, count - done) // FILL_BATCH)], window=FILL_WINDOW)
        if count > FILL_STEP:
            say(f"{done + FILL_STEP:,} of {count:,} messages stored")


def one_round(lane: Lane, name: str, batch: int, steps: int) -> Round:
    """So many small steps of send, receive and complete."""
    keys = QueueKeys(name)
    sender = cycle.Sender(keys)
    pool = batches(stored_forms(STEP_MESSAGES, BODY_BYTES), batch)
    costs: dict[str, list[Cost]] = defaultdict(list)
    for _ in range(steps):
        costs["send"].append(cycle.send([lane], sender, pool, len(pool)))
        received, held = cycle.receive([lane], keys, pool, len(pool))
        costs["receive"].append(received)
        costs["complete"].append(cycle.complete([lane], keys, held))
    summed = {phase: total(*each) for phase, each in costs.items()}
    return summed | {"cycle": total(*summed.values())}


def fractions(lane: Lane, batch: int, steps: int, rounds: int) -> dict[str, float]:
    """Phase → the deep queue's speed as a fraction of the shallow one's; `cpu` by the broker's processor time."""
    seen = take_turns({name: partial(one_round, lane, name, batch, steps) for name in DEPTHS}, rounds)
    by_clock = {
        phase: median(costs[SHALLOW][phase].clock_s / costs[DEEP][phase].clock_s for costs in seen) for phase in PHASES
    }
    return by_clock | {"cpu": median(costs[SHALLOW]["cycle"].cpu_s / costs[DEEP]["cycle"].cpu_s for costs in seen)}


def main() -> int:
    """Fill two queues, measure them in turns; print the table and the JSON line."""
    arguments = parser("A queue of millions against a queue of a thousand.").parse_args()
    rounds, share = rounds_of(arguments), 10 if arguments.quick else 1
    ratios: dict[str, float] = {}
    rows = []
    with broker_lanes(1, OFF) as (lane,):
        for name, count in DEPTHS.items():
            fill(lane, name, count if name == SHALLOW else count // share)
        used_bytes = int(information(lane, "memory")["used_memory"])
        for batch, steps in STEPS_A_ROUND.items():
            say(f"batch {batch}")
            found = fractions(lane, batch, max(2, steps // share), rounds)
            ratios |= {f"{phase}_b{batch}": value for phase, value in found.items()}
            rows.append([str(batch), *(f"{value:.2f}" for value in found.values())])
    print(f"{DEPTHS[DEEP] // share:,} messages ({used_bytes / 2**30:.2f} GB) against {DEPTHS[SHALLOW]:,}:")
    print(
        f"the deep queue's speed as a fraction of the shallow one's, medians of {rounds} rounds; at least {LEAST:.2f}"
    )
    table(("batch", *PHASES, "processor time"), rows)
    below = [name for name, value in ratios.items() if value < LEAST]
    return conclude("broker_depth", ratios, rounds=rounds, used_bytes=used_bytes, below_target=below)


if __name__ == "__main__":
    sys.exit(main())
