"""Whether what a broker keeps agrees with itself: every counter is recomputed from the raw structures.

The layout is that of docs/internals/broker.md and of the heads in broker-image/functions/includes. Every message that
is stored must be in exactly one place: ready, held or returned in a run, deferred, scheduled, or claimed.
"""

import struct
from collections import Counter

from harness import stored_forms
from harness.raw_keys import ENTRY, NEVER, RUN, SEGMENT, SESSION, Raw, Run, Session, charges, six
from partitionedqueue.broker.blocking import BlockingBroker

BUSY = 2**52
RENEWED, IN_SESSION, INDEXED = 1, 2, 8
SUB_QUEUES = ("/$DeadLetterQueue", "/$Transfer", "/$Transfer/$DeadLetterQueue")


class _Check:
    """One queue, looked through."""

    def __init__(self, raw: Raw, *, sessions: bool) -> None:
        self.raw = raw
        self.counters = raw.counters
        self.sessions = sessions
        self.bodies: dict[int, bytes] = {}  # what is stored
        self.places: dict[int, str] = {}  # where each message is
        self.scheduled: set[int] = set()
        self.due = raw.scores(":due")
        self.runs: dict[int, Run] = {}
        self.segments: list[int] = []

    def equal(self, name: str, found: object) -> None:
        assert self.counters[name] == found, f"{self.raw.queue}: {name} is {self.counters[name]}, and there are {found}"

    def all(self) -> None:
        self.look_at_segments()
        self.look_at_parked()
        self.look_at_runs()
        self.look_at_claims()
        if self.sessions:
            self.look_at_sessions()
        self.look_at_ready()
        self.look_at_expiries()
        self.look_at_keys()

    def put(self, sequence: int, where: str) -> None:
        assert sequence in self.bodies, f"{self.raw.queue}: {sequence} is {where}, but not stored"
        assert sequence not in self.places, f"{self.raw.queue}: {sequence} is {where}, and {self.places[sequence]}"
        self.places[sequence] = where

    def look_at_segments(self) -> None:
        tail = self.counters["tail"]
        waste = dead = 0
        gone = dict(self.raw.named("g"))
        self.segments = sorted(map(int, self.raw.scores(":segments")))
        for segment in self.segments:
            bodies = self.raw.ask("LRANGE", f":seg:{segment}", 0, -1)
            sizes = self.raw.ask("GET", f":sizes:{segment}") or b""
            length = min(tail - segment * SEGMENT, SEGMENT)
            assert len(bodies) == length > 0, f"segment {segment} has {len(bodies)} bodies, not {length}"
            assert len(sizes) == 4 * length, f"segment {segment} has {len(sizes) // 4} sizes, not {length}"
            record = gone.pop(str(segment), bytes(14 + SEGMENT // 8))
            bytes_gone, count_gone, blanked, bits = (
                six(record),
                record[6] + 256 * record[7],
                six(record, 8),
                record[14:],
            )
            found_count = found_bytes = 0
            for index, (body, (size,)) in enumerate(zip(bodies, struct.iter_unpack("<I", sizes), strict=True)):
                if bits[index // 8] >> index % 8 & 1:
                    found_count, found_bytes = found_count + 1, found_bytes + size
                else:
                    self.bodies[segment * SEGMENT + index + 1] = body
                    assert len(body) == size, f"{segment * SEGMENT + index + 1} has {len(body)} bytes, not {size}"
            assert (found_count, found_bytes) == (count_gone, bytes_gone), f"of segment {segment} other ones have gone"
            assert count_gone < SEGMENT, f"segment {segment} is there although all has gone"
            waste, dead = waste + bytes_gone - blanked, dead + count_gone
        assert not gone, f"{self.raw.queue}: something has gone from segments that are not there: {sorted(gone)}"
        self.equal("messages", len(self.bodies))
        self.equal("bytes", sum(map(len, self.bodies.values())))
        self.equal("waste", waste)
        self.equal("dead", dead)

    def look_at_parked(self) -> None:
        for segment, record in self.raw.named("d"):
            for index in record[::3]:
                self.put(int(segment) * SEGMENT + index + 1, "deferred")
        self.equal("deferred", len(self.places))
        for segment, bits in self.raw.named("h"):
            entries = self.raw.ask("GET", f":scheduled:{segment}") or b""
            times = {entries[at] + 256 * entries[at + 1]: six(entries, at + 2) for at in range(0, len(entries), 8)}
            waiting = [index for index in range(SEGMENT) if bits[index // 8] >> index % 8 & 1]
            for index in waiting:
                self.put(int(segment) * SEGMENT + index + 1, "scheduled")
                self.scheduled.add(int(segment) * SEGMENT + index + 1)
            assert self.due[b"s" + segment.encode()] <= min(times[index] for index in waiting)
        self.equal("scheduled", len(self.scheduled))

    def look_at_runs(self) -> None:
        for name, record in self.raw.named("r"):
            until, first, count, deliveries, size, kinds = RUN.unpack_from(record)
            run = Run(int(name), six(until), six(first), count, deliveries, six(size), kinds, record[RUN.size :])
            self.runs[run.id] = run
            assert run.id <= self.counters["run"]
            assert run.sequences(), f"run {run.id} holds nothing"
            for sequence in run.sequences():
                self.put(sequence, f"in run {run.id}")
            if run.until_ms and not run.held:
                assert run.size == sum(len(self.bodies[sequence]) for sequence in run.sequences())
        self.equal("runs", len(self.runs))
        returned = {run.id: run.sequences()[0] for run in self.runs.values() if run.until_ms == 0}
        assert {int(name): first for name, first in self.raw.scores(":returned").items()} == returned
        self.equal("returned", len(returned))
        self.equal("locked", sum(len(run.sequences()) for run in self.runs.values() if run.until_ms))
        self._look_at_locks()

    def _look_at_locks(self) -> None:
        locked = [run for run in self.runs.values() if run.until_ms and not run.kinds & IN_SESSION]
        indexed = {run.id: run.until_ms for run in locked if run.kinds & INDEXED}
        assert {int(name): at for name, at in self.due.items() if name.isdigit()} == indexed
        in_order = sorted((run for run in locked if run.id not in indexed), key=lambda run: run.id)
        times = [run.until_ms for run in in_order]
        assert times == sorted(times), "locks that need no index do not expire in order"
        assert not in_order or (in_order[0].id > self.counters["swept"] and times[-1] <= self.counters["fifo_until"])
        assert self.counters["due"] <= min([NEVER, *times, *self.due.values()]), "something is due before `due`"
        for name in self.raw.scores(":renewed"):
            run_id, sequence = map(int, name.split(b":"))
            assert run_id in self.runs, f"{name!r} is renewed, and there is no such run"
            assert self.runs[run_id].kinds & RENEWED
            assert sequence in self.runs[run_id].sequences()

    def look_at_claims(self) -> None:
        claimed = 0
        for name in self.raw.scores(":groups"):
            group = dict(zip(*[iter(self.raw.ask("HGETALL", f":group:{name.decode()}"))] * 2, strict=True))
            for entry in self.raw.ask("LRANGE", f":log:{name.decode()}", 0, -1):
                first, count, _ = struct.unpack("<QII", entry)
                for sequence in range(first, first + count):
                    self.put(sequence, f"claimed by {name.decode()}")
                claimed += count
                group[b"base"] = int(group[b"base"]) + count
            assert int(group[b"base"]) == int(group[b"next"])
        self.equal("claimed", claimed)

    def look_at_sessions(self) -> None:
        scores, state_bytes, locked = self.raw.scores(":sessions"), 0, 0
        states = self.raw.ask("HGETALL", ":states")
        states = dict(zip(states[::2], states[1::2], strict=True))
        held_in = {run.id: run for run in self.runs.values() if run.kinds & IN_SESSION}
        names = set()
        for name, record in self.raw.named("s"):
            session = self._session(name, record)
            names.add(name.encode())
            score = self._look_at_session(name, session)
            assert scores[name.encode()] == score, f"session {name!r} stands at {scores[name.encode()]}, not {score}"
            if session.lock and session.until_ms < NEVER - 1:  # one whose messages are claimed is held without an end
                assert self.due[b"l" + name.encode()] <= session.until_ms
            for run_id in session.held:
                assert run_id not in held_in or held_in.pop(run_id).until_ms == session.lock or not session.lock
            state = states.pop(name.encode(), None)
            assert session.state_bytes == (0 if state is None else len(state) + 1)
            state_bytes, locked = state_bytes + session.state_bytes, locked + (session.lock > 0)
        assert not held_in, f"no session holds the runs {sorted(held_in)}"
        assert not states
        assert names == set(scores)
        self.equal("sessions", len(names))
        self.equal("sessions_locked", locked)
        self.equal("state_bytes", state_bytes)

    def _session(self, name: str, record: bytes) -> Session:
        lock, until, taken, count, holes, chunks, state, held, front = SESSION.unpack_from(record)
        at = SESSION.size
        numbers_held = self.raw.ask("GET", f":held:{name}") or b""
        assert len(numbers_held) == held
        runs = [six(numbers_held, i) for i in range(0, held, 6)]
        numbers = (six(lock), six(until), six(taken), six(count), holes, chunks, state)
        return Session(*numbers, runs, record[at : at + front], record[at + front :])

    def _look_at_session(self, name: str, session: Session) -> int:
        """Its ready messages; returns where it must stand among the sessions."""
        chunks = self.raw.ask("LRANGE", f":more:{name}", 0, -1)
        assert len(chunks) == session.chunks
        ready, listed = [], 0
        for first, count, _ in ENTRY.iter_unpack(session.front + b"".join(chunks) + session.back):
            for sequence in range(six(first), six(first) + count):
                listed += 1
                if sequence in self.bodies:
                    ready.append(sequence)
                    self.put(sequence, f"ready in session {name!r}")
                    assert stored_forms.session_id(self.bodies[sequence]) == name
        assert ready == sorted(ready)
        assert len(ready) == session.count, (
            f"session {name!r} has {len(ready)} ready messages, and counts {session.count}"
        )
        assert listed - len(ready) == session.holes
        assert session.lock or session.held or session.count or session.state_bytes, f"session {name!r} is nothing"
        return BUSY if session.lock or session.held or not ready else ready[0]

    def look_at_ready(self) -> None:
        """What is stored and in no other place is ready: beyond head, where there are no sessions."""
        left = set(self.bodies) - set(self.places)
        if self.sessions:
            assert not left, f"{self.raw.queue}: {sorted(left)} are nowhere"
            return
        head, tail = self.counters["head"], self.counters["tail"]
        lost = [sequence for sequence in left if sequence <= head]
        assert not lost, f"{self.raw.queue}: {lost} were handed out and are nowhere"
        early = [sequence for sequence in self.places if sequence > head and sequence not in self.scheduled]
        assert not early, f"{self.raw.queue}: {early} are {self.places[early[0]]}, and were never handed out"
        absent = sum(1 for n in range(head + 1, tail + 1) if n not in self.bodies or n in self.scheduled)
        self.equal("holes", absent)

    def look_at_expiries(self) -> None:
        timed = 0
        for segment in self.segments:
            marks = self.raw.ask("GET", f":expiry:{segment}")
            if marks is None:
                continue
            timed += 1
            starts = [(marks[at] + 256 * marks[at + 1], six(marks, at + 2)) for at in range(0, len(marks), 8)]
            expiries = [at for index in range(SEGMENT) for at in [[t for i, t in starts if i <= index][-1]]]
            sequences = range(segment * SEGMENT + 1, (segment + 1) * SEGMENT + 1)
            ready = [at for sequence, at in zip(sequences, expiries, strict=True) if at and self._waits(sequence)]
            due = self.due.get(b"x%d" % segment)
            assert not ready or (due is not None and due <= min(ready)), (
                f"segment {segment} is due {due}, not {min(ready)}"
            )
        self.equal("timed", timed)

    def _waits(self, sequence: int) -> bool:
        """Whether a message is ready, returned ones included."""
        if sequence not in self.bodies:
            return False
        where = self.places.get(sequence, "ready")
        run = self.runs.get(int(where.removeprefix("in run "))) if where.startswith("in run ") else None
        return where.startswith("ready") or (run is not None and run.until_ms == 0)

    def look_at_keys(self) -> None:
        """No key is left of what has gone."""
        prefix = self.raw.queue.encode() + b":"
        for name in self.raw.broker.raw(("KEYS", self.raw.queue + ":*"))[0]:
            kind, _, rest = name[len(prefix) :].partition(b":")
            if kind in {b"seg", b"times", b"sizes", b"expiry"}:
                assert int(rest) in self.segments, f"{name!r} is left of a segment that has gone"
            elif kind == b"scheduled":
                assert b"h" + rest in self.raw.fields, f"{name!r} is left of what was scheduled"
            elif kind in {b"more", b"held"}:
                assert b"s" + rest in self.raw.fields, f"{name!r} is left of a session"


def _charge(counters: Counter[str]) -> int:
    charge = charges()
    own = counters["bytes"] + counters["waste"] + charge["message"] * counters["messages"]
    own += charge["dead"] * counters["dead"] + charge["run"] * counters["runs"]
    return own + charge["parked"] * (counters["deferred"] + counters["scheduled"])


def check(broker: BlockingBroker, queue: str, *, sessions: bool = False) -> None:
    """Look through a queue (by the key of its state) and its sub-queues; AssertionError for what does not fit."""
    root = Raw(broker, queue)
    _Check(root, sessions=sessions).all()
    sub_bytes = sub_charge = 0
    for path in SUB_QUEUES:
        raw = Raw(broker, queue + path)
        _Check(raw, sessions=False).all()
        sub_bytes, sub_charge = sub_bytes + raw.counters["bytes"], sub_charge + _charge(raw.counters)
    counters, charge = root.counters, charges()
    assert counters["sub_bytes"] == sub_bytes, f"sub_bytes is {counters['sub_bytes']}, not {sub_bytes}"
    assert counters["sub_charge"] == sub_charge, f"sub_charge is {counters['sub_charge']}, not {sub_charge}"
    generations = {
        counters["ids"]: counters["ids_count"],
        counters["ids"] - 1: counters["ids_before_count"],
    }
    kept = {int(name.rpartition(b":")[2]) for name in broker.raw(("KEYS", f"{queue}:ids:*"))[0]}
    for generation, count in generations.items():
        assert root.ask("HLEN", f":ids:{generation}") == count
    assert kept <= set(generations)
    side = sub_charge + counters["state_bytes"] + charge["session"] * counters["sessions"]
    side += charge["id"] * (counters["ids_count"] + counters["ids_before_count"])
    assert counters["side_charge"] == side, f"side_charge is {counters['side_charge']}, not {side}"
    for sender, _ in root.named("n"):
        assert b"n" + sender.encode() in root.scores(":due"), f"sender {sender!r} is never forgotten"
