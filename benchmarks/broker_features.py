"""What does a feature cost while it is used: duplicate detection, sessions, time to live, numbered sends?

Each feature has a queue of its own in one broker, and the same messages go through all of them in turn: send, receive,
complete, b at a time, over one connection. What is printed is each queue's speed as a fraction of the plain queue's in
the same round, medians over all rounds; .85 was aimed at.

    duplicates    a detection window of ten minutes; every message has an id that the queue has not seen
    sessions      64 accepted sessions that take turns, a batch is of one session
    default TTL   the queue gives every message an hour
    own TTL       every message brings an hour of its own
    numbered      the sender numbers its sends, so that one whose reply was lost can be repeated
    each session  every batch is a session of its own, that is accepted and released for it (no aim: two calls more)
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measuring import cycle
from benchmarks.measuring.lanes import Cost, Lane, measured, total, wire_of
from benchmarks.measuring.rounds import conclude, median, parser, rounds_of, say, table, take_turns
from benchmarks.measuring.servers import ALWAYS, OFF, broker_lanes

from partitionedqueue.broker import calls, replies
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.replies import SessionLock
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.message import Message
from partitionedqueue.model.stored_message import encode

BODY_BYTES = 1024
HOUR_MS = 3_600_000
WINDOW_MS = 600_000
SESSIONS = 64
MESSAGES_A_ROUND = {1: 6_000, 10: 20_000, 100: 40_000}
PLAIN = "plain"
EACH_SESSION = "each session"
AIM = 0.85

Round = dict[str, Cost]


@dataclass
class Side:
    """One queue with one feature, and what stays the same from round to round."""

    name: str
    settings: BrokerSettings = field(default_factory=BrokerSettings)
    ttl_ms: int | None = None
    numbered: bool = False
    sessions: list[SessionLock] = field(default_factory=list)
    pools: dict[int, list[cycle.Batch]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = QueueKeys(self.name.replace(" ", "-"))
        self.sender = cycle.Sender(
            self.keys,
            detects=bool(self.settings.dedupe_ms),
            numbered=self.numbered,
            sessions=bool(self.settings.sessions),
        )

    def pool(self, batch: int, count: int) -> list[cycle.Batch]:
        """The batches of one round: of one session each, and the same in every round."""
        if batch not in self.pools:
            sessions = count if self.name == EACH_SESSION else SESSIONS
            self.pools = {batch: [self._messages(f"session-{i:05}", batch) for i in range(min(count, sessions))]}
        return self.pools[batch]

    def _messages(self, session_id: str, batch: int) -> cycle.Batch:
        made = (
            Message(body=os.urandom(BODY_BYTES), session_id=session_id, message_id=f"{i}", time_to_live_ms=self.ttl_ms)
            for i in range(batch)
        )
        return [encode(message) for message in made]


def sides() -> list[Side]:
    """The plain queue, and one for each feature."""
    return [
        Side(PLAIN),
        Side("duplicates", BrokerSettings(dedupe_ms=WINDOW_MS)),
        Side("sessions", BrokerSettings(sessions=True)),
        Side("default TTL", BrokerSettings(ttl_ms=HOUR_MS)),
        Side("own TTL", ttl_ms=HOUR_MS),
        Side("numbered", numbered=True),
        Side(EACH_SESSION, BrokerSettings(sessions=True)),
    ]


def prepare(lane: Lane, side: Side) -> None:
    """Tell the broker of the queue, and accept its sessions once for all rounds."""
    lane.ask(wire_of(calls.configure(side.keys, partition=0, partitions=1, settings=side.settings)))
    if side.settings.sessions and side.name != EACH_SESSION:
        ids = [f"session-{i:05}" for i in range(SESSIONS)]
        raw = [lane.ask(wire_of(calls.accept_session(side.keys, each, lock_ms=cycle.LOCK_MS))) for each in ids]
        side.sessions = [held_session(reply) for reply in raw]


def renew_sessions(lane: Lane, side: Side) -> None:
    """Keep the sessions for the whole run, however long it takes."""
    for session in side.sessions:
        lane.ask(wire_of(calls.renew_session(side.keys, session, lock_ms=cycle.LOCK_MS)))


def held_session(raw: replies.Raw) -> SessionLock:
    """The session of an accept that must have succeeded."""
    session = replies.accepted_session(raw).session
    if session is None:
        raise AssertionError("the broker had no session to accept")
    return session


def one_round(lane: Lane, side: Side, batch: int, count: int) -> Round:
    """One cycle of `count` batches through one queue."""
    renew_sessions(lane, side)
    pool = side.pool(batch, count)
    costs: Round = {"send": cycle.send([lane], side.sender, pool, count)}
    sessions: Sequence[SessionLock | None] = side.sessions or cycle.OUTSIDE
    if side.name == EACH_SESSION:
        costs["accept"] = measured([lane], [[wire_of(calls.accept_session(side.keys, lock_ms=cycle.LOCK_MS))] * count])
        sessions = [held_session(raw) for raw in lane.replies]
    costs["receive"], held = cycle.receive([lane], side.keys, pool, count, sessions)
    costs["complete"] = cycle.complete([lane], side.keys, held, sessions)
    if side.name == EACH_SESSION:
        releases = [wire_of(calls.release_session(side.keys, session)) for session in sessions if session]
        costs["release"] = measured([lane], [releases])
    costs["cycle"] = total(*costs.values())
    return costs


def fractions(lane: Lane, features: Sequence[Side], batch: int, count: int, rounds: int) -> dict[str, Round]:
    """Side → phase → how much of the plain queue's speed it has: medians over all rounds."""
    turns = {side.name: partial(one_round, lane, side, batch, count) for side in features}
    seen = take_turns(turns, rounds)
    return {
        side.name: {
            phase: Cost(
                median(costs[PLAIN][phase].clock_s / costs[side.name][phase].clock_s for costs in seen),
                median(costs[PLAIN][phase].cpu_s / costs[side.name][phase].cpu_s for costs in seen),
            )
            for phase in ("send", "receive", "complete", "cycle")
        }
        for side in features
        if side.name != PLAIN
    }


def batches_of(share: int) -> dict[int, int]:
    """Batch size → how many batches a round; all sessions have as many."""
    return {
        batch: max(1, messages // share // batch // SESSIONS) * SESSIONS for batch, messages in MESSAGES_A_ROUND.items()
    }


def main() -> int:
    """Measure every feature; print the table and the JSON line."""
    arguments = parser("What each feature of a queue costs while it is used.").parse_args()
    rounds, share = rounds_of(arguments), 8 if arguments.quick else 1
    rows: list[list[str]] = []
    ratios: dict[str, float] = {}
    cpu_ratios: dict[str, float] = {}
    for fsync in (OFF, ALWAYS):
        with broker_lanes(1, fsync) as (lane,):
            features = sides()
            for side in features:
                prepare(lane, side)
            for batch, count in batches_of(share).items():
                say(f"append-only file {fsync}, batch {batch}")
                for name, found in fractions(lane, features, batch, count, rounds).items():
                    key = f"{name.replace(' ', '_')}_b{batch}_{fsync}"
                    ratios[key], cpu_ratios[key] = found["cycle"].clock_s, round(found["cycle"].cpu_s, 3)
                    cells = [f"{each.clock_s:.2f} ({each.cpu_s:.2f})" for each in found.values()]
                    short = name != EACH_SESSION and found["cycle"].clock_s < AIM
                    rows.append([name, fsync, str(batch), *cells, "<" if short else ""])
    print(f"Fractions of a plain queue, medians of {rounds} rounds: by the clock (by the broker's processor time)")
    table(("feature", "fsync", "batch", "send", "receive", "complete", "cycle", f"aim {AIM}"), rows)
    below = [key for key, value in ratios.items() if value < AIM and not key.startswith("each")]
    return conclude("broker_features", ratios, rounds=rounds, cpu_ratios=cpu_ratios, below_target=below)


if __name__ == "__main__":
    sys.exit(main())
