"""A broker and the model of it: both are asked, and all that can be seen of them is compared."""

from collections.abc import Callable
from typing import Any

from harness.clock import Clock
from harness.deliveries import PEEK_BYTES, drain
from harness.message_life import DEAD_LETTERS, ROOT, TRANSFER_DEAD_LETTERS, TRANSFERS, Refused
from harness.partition_model import PartitionModel
from harness.raw_keys import charges
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.calls import Call
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.refusals import REFUSALS
from partitionedqueue.broker.replies import SessionLock
from partitionedqueue.model.errors import BrokerRefusal
from partitionedqueue.model.lifecycle import State
from partitionedqueue.model.stored_message import enqueued_times

PATHS = (ROOT, DEAD_LETTERS, TRANSFERS, TRANSFER_DEAD_LETTERS)
CODE_OF = {kind: code for code, kind in REFUSALS.items() if code != "OOM"}


class Agreement:
    """One partition of one queue, twice."""

    def __init__(
        self, broker: BlockingBroker, keys: QueueKeys, clock: Clock, model: PartitionModel, quota: int
    ) -> None:
        self.broker = broker
        self.model = model
        self.clock = clock
        self.quota = quota
        self.keys = {ROOT: keys, DEAD_LETTERS: keys.dead_letters, TRANSFERS: keys.transfers}
        self.keys[TRANSFER_DEAD_LETTERS] = keys.transfers.dead_letters
        self.runs_given: dict[str, set[int]] = {path: set() for path in PATHS}
        self.deliveries_shown: dict[str, dict[int, int]] = {}

    # ---- asking both

    def _outcome(self, call: Call[Any]) -> tuple[str, Any]:
        try:
            return "", self.broker.call(call)
        except BrokerRefusal as refusal:
            return CODE_OF[type(refusal)], None

    @staticmethod
    def _expected(what: Callable[[], Any]) -> tuple[str, Any]:
        try:
            return "", what()
        except Refused as refused:
            return refused.code, None

    def both(self, call: Call[Any], what: Callable[[], Any]) -> Any:
        """The broker's reply, None for a refusal; the model refuses the same, or gives the same."""
        code, reply = self._outcome(call)
        expected_code, expected = self._expected(what)
        name = call.words[1]
        assert code == expected_code, f"{name!r}: the broker says {code or 'yes'}, the model {expected_code or 'yes'}"
        assert reply == expected, f"{name!r}: the broker says {reply}, the model {expected}"
        return reply

    def let_time_pass(self, ms: int) -> None:
        self.model.let_time_pass(self.clock.advance(ms))

    def _room(self, messages: int) -> int | None:
        """How many bytes so many messages may have."""
        if not self.quota:
            return None
        return self.quota - self.broker.call(calls.totals(self.keys[ROOT])).charge - charges()["message"] * messages

    def _locked_until(self, lock_ms: int, session: SessionLock | None) -> int:
        if lock_ms == 0:
            return 0
        if session is not None:
            return self.model.sessions[session.session_id].locked_until_ms
        return self.clock.now_ms + (self.model.settings.lock_ms if lock_ms < 0 else lock_ms)

    # ---- the same in every respect

    def agree(self) -> None:
        """Have all due work done; then everything that can be seen is the same."""
        due = drain(self.broker, self.keys[ROOT], self.clock.now_ms)
        event = self.model.next_event(PATHS)
        assert event is None or 0 <= due <= event, f"pq_sweep would be back at {due}, but something is due at {event}"
        for path in PATHS:
            self._shows_the_same(path)
        totals = self.broker.call(calls.totals(self.keys[ROOT]))
        model = self.model
        assert totals.bytes == model.bytes()
        assert totals.dead_letters == len(model.queues[DEAD_LETTERS].messages)
        assert totals.transfers == len(model.queues[TRANSFERS].messages)
        assert totals.transfer_dead_letters == len(model.queues[TRANSFER_DEAD_LETTERS].messages)
        assert totals.sessions == len(model.acceptable_sessions())
        assert totals.sessions_locked == sum(1 for session in model.sessions.values() if session.lock)
        in_order = model.root.in_order()
        assert totals.oldest == (in_order[0].enqueued_ms if in_order else 0)
        window_ms = model.settings.dedupe_ms
        lately = [sent_ms for sent_ms in model.sent_ids.values() if model.now_ms - sent_ms < window_ms]
        assert len(lately) <= totals.remembered <= 2 * len(model.sent_ids)  # of two windows, one id perhaps in both
        if model.settings.sessions:
            self._lists_the_same_sessions()

    def _lists_the_same_sessions(self) -> None:
        """Those that have something; the ones that may be accepted first, by their oldest messages."""
        listed, expected = (
            self.broker.call(calls.list_sessions(self.keys[ROOT], most=1000)),
            self.model.listed_sessions(),
        )
        assert set(listed) == expected, f"{listed} are listed, not {expected}"
        assert len(listed) == len(expected)
        acceptable = self.model.acceptable_sessions()
        oldest_first = dict.fromkeys(k.session for k in self.model.root.of(State.READY) if k.session in acceptable)
        assert listed[: len(acceptable)] == list(oldest_first)

    def _shown(self, path: str) -> list[tuple[int, int, int, bytes]]:
        """All that peek shows; what is new there is told to the model."""
        queue, keys, start = self.model.queues[path], self.keys[path], 1
        self.deliveries_shown[path] = {}
        shown: list[tuple[int, int, int, bytes]] = []
        while start:
            part = self.broker.call(calls.peek(keys, from_sequence=start, most=1000, bytes_most=PEEK_BYTES))
            start = part.next
            for run in part.runs:
                times = enqueued_times(run.first, len(run.messages), run.marks)
                for place, one in enumerate(run.messages):
                    sequence = run.first + place
                    if sequence not in queue.used:
                        self.model.number(path, sequence, one, times[place])
                    shown.append((sequence, int(run.state), times[place], one))
                    self.deliveries_shown[path][sequence] = run.deliveries
        return shown

    def _shows_the_same(self, path: str) -> None:
        queue, keys = self.model.queues[path], self.keys[path]
        shown, expected = self._shown(path), self.model.shown(path)
        broker_alone, model_alone = [k for k in shown if k not in expected], [k for k in expected if k not in shown]
        assert shown == expected, f"{path!r}: the broker alone has {broker_alone}, the model alone {model_alone}"
        for kept in queue.messages.values():
            known = kept.state is State.DEFERRED or (
                kept.state is State.READY and not (path == ROOT and self.model.settings.sessions)
            )
            told, counted = self.deliveries_shown[path][kept.sequence], kept.deliveries if known else 0
            assert told == counted, f"{path!r} {kept.sequence} shows {told} deliveries, not {counted}, as {kept.state}"
        assert not queue.arriving, f"{path!r} lacks {queue.arriving}"
        totals = self.broker.call(calls.totals(keys))
        assert queue.used == set(range(1, totals.last + 1)), "numbers were left out"
        assert totals.messages == len(queue.messages)
        assert totals.ready == len(queue.of(State.READY))
        assert totals.locked == len(queue.of(State.LOCKED, State.DEFERRED_LOCKED))
        assert totals.deferred == len(queue.of(State.DEFERRED))
        assert totals.scheduled == len(queue.of(State.SCHEDULED))
        assert totals.claimed == len(queue.of(State.CLAIMED))
