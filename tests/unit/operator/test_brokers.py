"""Brokers that do not answer cost themselves time, and the others none."""

import asyncio
import time
from typing import Any

import pytest

from partitionedqueue.broker.replies import Totals
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.errors import BrokerUnavailable
from partitionedqueue_operator import brokers as module
from partitionedqueue_operator.brokers import Brokers, _Watched
from partitionedqueue_operator.loops import Pulse
from partitionedqueue_operator.observed import Key, Pod, Report
from partitionedqueue_operator.reconcile import BrokerTarget

SICK, WELL = Key("n", "sick"), Key("n", "well")
MANY = 3 * module.TROUBLED_AT_ONCE_MAX


def pods(key: Key) -> dict[int, Pod]:
    made = range(MANY if key == SICK else 1)
    return {n: Pod(f"{key.name}-broker-{n}", f"p-{n}", "198.18.0.1", True, False, f"c-{n}") for n in made}


def watched(key: Key) -> _Watched:
    return _Watched(BrokerTarget(len(pods(key)), BrokerSettings(), "d"), "secret")


async def test_thousands_that_do_not_answer_hold_up_no_others_and_are_all_asked_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    answer = asyncio.Event()

    async def ask(_self: Brokers, key: Key, _watched: _Watched, partition: int, pod: Pod) -> Report:
        if key == WELL:
            return Report(pod.incarnation)
        asked.append(partition)
        await answer.wait()
        return Report(pod.incarnation, "Unreachable", "no answer")

    monkeypatch.setattr(Brokers, "_ask", ask)
    monkeypatch.setattr(module, "ASKED_AT_ONCE_MAX", 1)
    brokers, sick, well = Brokers(pods, lambda _: None), watched(SICK), watched(WELL)
    sick.reports = {n: Report(pod.incarnation, "Unreachable", "no answer") for n, pod in pods(SICK).items()}
    round_of_sick = asyncio.create_task(brokers._round(SICK, sick))
    await asyncio.sleep(0.01)
    async with asyncio.timeout(10):
        await brokers._round(WELL, well)
    answer.set()
    await round_of_sick
    assert len(asked) == module.TROUBLED_AT_ONCE_MAX  # one round is no longer than one silence
    for _ in range(100):
        await brokers._round(SICK, sick)
    assert set(asked) == set(range(MANY))


async def test_a_broker_that_could_not_read_its_users_reads_them_at_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Client:
        """Answers all but the first ACL LOAD."""

        users_read = 0

        async def call(self, call: Any) -> Any:
            if call.words[:2] == ("ACL", "LOAD"):
                self.users_read += 1
                if self.users_read == 1:
                    raise BrokerUnavailable("the file is being written")
            return Totals()

    client = Client()
    brokers, one = Brokers(pods, lambda _: None), watched(WELL)
    monkeypatch.setattr(brokers, "_client", lambda *_: client)
    one.users_since = time.monotonic() - 2 * module.USERS_S
    one.reports[0] = Report("c-0", library="1", settings="d")
    for trouble in ("Unreachable", "", ""):
        report = await brokers._ask(WELL, one, 0, pods(WELL)[0])
        assert report.trouble == trouble
    assert client.users_read == 2


@pytest.mark.parametrize(("late_s", "told"), [(0.0, "Unreachable"), (2.0, "")])
async def test_a_silence_counts_only_where_the_operator_had_time_to_listen(
    monkeypatch: pytest.MonkeyPatch, late_s: float, told: str
) -> None:
    async def ask(_self: Brokers, _key: Key, _watched: _Watched, _partition: int, pod: Pod) -> Report:
        return Report(pod.incarnation, "Unreachable", "no answer within 3 s")

    monkeypatch.setattr(Brokers, "_ask", ask)
    pulse = Pulse()
    monkeypatch.setattr(pulse, "late_s", lambda _: late_s)
    brokers, well = Brokers(pods, lambda _: None, pulse), watched(WELL)
    well.reports = {0: Report("c-0")}
    await brokers._round(WELL, well)
    assert well.reports[0].trouble == told


async def test_another_file_of_users_is_read_again_however_long_ago_the_first_was() -> None:
    brokers, target = Brokers(pods, lambda _: None), watched(WELL).target
    brokers.see_to(WELL, target, "secret", "user a")
    one = brokers._watched[WELL]
    one.users_since -= 10 * module.USERS_S
    one.users_read[0] = "c-0"
    brokers.see_to(WELL, target, "secret", "user a")
    assert one.users_read
    brokers.see_to(WELL, target, "secret", "user b")
    assert not one.users_read
    assert time.monotonic() - one.users_since < module.USERS_S
