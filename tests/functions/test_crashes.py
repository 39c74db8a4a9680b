"""kill -9 in the middle of much going on: nothing acknowledged is lost, and nothing that was finished comes again."""

import itertools
import os
import random
import time
from pathlib import Path

import pytest

from harness import consistency
from harness.crash_load import LATEST_S, Client
from harness.deliveries import body_of, configure, drain, peeked, placed
from harness.ledger import ACTIVE, DEAD, DEFERRED, GONE, LOCK_MS, NEVER_STORED, Ledger
from harness.redis_servers import Broker, running_broker
from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys

KEYS = QueueKeys("crashes")
CLIENTS = 4
ROUNDS = int(os.environ.get("PQ_CRASHES", "5"))
REWRITES = ("--auto-aof-rewrite-min-size", "100kb", "--auto-aof-rewrite-percentage", "20")  # often under way
ROUND_S = (0.4, 1.2)  # of load, at least and at most
CALLS_A_ROUND, ROUND_S_MOST = 20, 5.0  # so many calls are made in any case, unless that takes too long


def done_by(clients: list[Client]) -> int:
    return sum(client.done for client in clients)


def one_round(server: Broker, clients: list[Client], seconds: float) -> list[Client]:
    """Load for a while, longer where the machine is slow, then the end; the same clients for the next round."""
    enough, latest = done_by(clients) + CALLS_A_ROUND, time.monotonic() + ROUND_S_MOST
    for client in clients:
        client.start()
    time.sleep(seconds)
    while done_by(clients) < enough and time.monotonic() < latest:
        time.sleep(0.02)
    server.kill()
    for client in clients:
        client.join(30.0)
        assert not client.is_alive()
        if client.fault is not None:
            raise client.fault
    return [client.again() for client in clients]


def drained(broker: BlockingBroker, ledger: Ledger, *, sessions: bool) -> None:
    """Receive all that is left, and let the ledger say whether it may be there."""
    drain(broker, KEYS, int(time.time() * 1000))
    if sessions:
        while (session := broker.call(calls.accept_session(KEYS)).session) is not None:
            while runs := broker.call(calls.receive(KEYS, most=1000, lock_ms=0, session=session)).runs:
                found_in_place(ledger, [one for _, one in placed(runs)], ACTIVE)
            broker.call(calls.release_session(KEYS, session))
    else:
        while runs := broker.call(calls.receive(KEYS, most=1000, lock_ms=0)).runs:
            found_in_place(ledger, [one for _, one in placed(runs)], ACTIVE)
    left = peeked(broker, KEYS)
    assert {state for _, state, _ in left} <= {1}, "only what is deferred is left"
    found_in_place(ledger, [one for _, _, one in left], DEFERRED)
    found_in_place(ledger, [one for _, _, one in peeked(broker, KEYS.dead_letters)], DEAD)


def found_in_place(ledger: Ledger, messages: list[bytes], place: str) -> None:
    """Each is there once, and may be; afterwards it is known to have gone."""
    for one in messages:
        ledger.is_in(body_of(one), place)
        ledger.places[body_of(one)] = {GONE}


def is_whole(broker: BlockingBroker, *, sessions: bool) -> None:
    """Counters and structures fit, and the bytes are exactly those of what can be seen."""
    consistency.check(broker, KEYS.state, sessions=sessions)
    shown = [one for keys in (KEYS, KEYS.dead_letters) for _, _, one in peeked(broker, keys)]
    assert broker.call(calls.totals(KEYS)).bytes == sum(map(len, shown))


@pytest.mark.timeout(120 + 10 * ROUNDS)
@pytest.mark.parametrize("sessions", [False, True], ids=["plain", "sessions"])
def test_a_broker_that_is_killed_again_and_again_keeps_its_word(tmp_path: Path, *, sessions: bool) -> None:
    seconds = random.Random(4)
    ledger = Ledger()
    with running_broker(tmp_path, settings=REWRITES) as server:
        with BlockingBroker(server.address) as broker:
            configure(broker, KEYS, sessions=sessions)
        clients = [Client(n, server.address, KEYS, ledger, sessions=sessions) for n in range(CLIENTS)]
        for _ in range(ROUNDS):
            clients = one_round(server, clients, seconds.uniform(*ROUND_S))
            server.start()
            with BlockingBroker(server.address) as broker:
                is_whole(broker, sessions=sessions)
        with BlockingBroker(server.address) as broker:
            for client in clients:
                client.settle_accounts(broker)
            time.sleep(max(LOCK_MS / 1000, LATEST_S) + 0.1)
            is_whole(broker, sessions=sessions)
            drained(broker, ledger, sessions=sessions)
            is_whole(broker, sessions=sessions)
            last = broker.call(calls.totals(KEYS)).last
    assert not ledger.wrong
    assert not ledger.overlapping()
    lost = {body: places for body, places in ledger.places.items() if not places & {GONE, NEVER_STORED}}
    assert not lost
    assert max(ledger.numbers) <= last
    assert done_by(clients) >= CALLS_A_ROUND * ROUNDS, "too little went on to tell anything"
    assert len(list(itertools.islice(ledger.holds, 50))) == 50
