"""The brokers' users on a real server: each can do what it must, and nothing else."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.deliveries import stored
from harness.servers import Server
from harness.start_script import Started, library_file, started
from harness.tour import Tour, commands_of
from partitionedqueue.broker import access, calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.broker.settings import BrokerSettings
from partitionedqueue.model.errors import BrokerUnavailable, LoginRefused, PartitionedQueueError

KEYS = QueueKeys("flights")
PASSWORDS = {user: f"the password of {user}" for user in access.USERS}
CLAIMING = ("pq_claim", "pq_claim_acknowledge", "pq_claim_open", "pq_claim_renew", "pq_claimed", "pq_states")

FORBIDDEN_TO_ALL_PROGRAMS: tuple[tuple[str | int, ...], ...] = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("FUNCTION", "DELETE", "partitionedqueue"),
    ("FUNCTION", "FLUSH"),
    ("SHUTDOWN", "NOSAVE"),
    ("SWAPDB", 0, 1),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "spark", "+@all"),
    ("ACL", "GETUSER", "default"),
    ("EVAL", "return 1", 0),
    ("KEYS", "*"),
    ("SCAN", 0),
    ("MONITOR",),
    ("REPLICAOF", "198.51.100.1", 6379),
    ("BGREWRITEAOF",),
    ("RENAME", KEYS.state, "pq:other"),
    ("EXPIRE", KEYS.state, 1),
    ("RESTORE", "pq:x", 0, "x"),
    ("GET", "another"),
    ("SET", "another", 1),
    ("PUBLISH", "another", ""),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("MODULE", "LIST"),
    ("SELECT", 1),
)
FORBIDDEN_BUT_TO_THE_OPERATOR: tuple[tuple[str | int, ...], ...] = (
    ("FUNCTION", "LOAD", "REPLACE", "#!lua name=partitionedqueue\n"),
    ("FUNCTION", "LIST"),
    ("CONFIG", "SET", "maxmemory", 0),
    ("CONFIG", "GET", "maxmemory"),
    ("ACL", "LOAD"),
    ("FCALL", "pq_configure", 1, KEYS.state, 0, 1),
)


@pytest.fixture(scope="module")
def broker(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A broker as the operator's pods run it, with users of their own."""
    base = tmp_path_factory.mktemp("access")
    folder, users = base / "data", base / "users.acl"
    folder.mkdir()
    users.write_text(access.users_file(PASSWORDS))
    own = {"REDISCLI_AUTH": PASSWORDS[access.DEFAULT]}
    with started(folder, library_file(base), "--aclfile", str(users), server=server.path, settings=own) as one:
        yield one.wait_until_ready()


def connected(broker: Started, user: str, password: str | None = None) -> BlockingBroker:
    return BlockingBroker(broker.address, username=user, password=password or PASSWORDS[user])


def refused(client: BlockingBroker, command: tuple[str | int, ...]) -> bool:
    """Whether a command is not permitted; whatever else is wrong with it does not count."""
    try:
        client.raw(command)
    except PartitionedQueueError as error:
        return "NOPERM" in str(error)
    return False


def test_nobody_is_let_in_without_the_password(broker: Started) -> None:
    for user in access.USERS:
        with connected(broker, user, "another") as client, pytest.raises(LoginRefused):
            client.call(calls.about())
    with BlockingBroker(broker.address) as client, pytest.raises(LoginRefused):
        client.call(calls.about())


def test_the_gateway_walks_through_every_command_of_messages(broker: Started) -> None:
    with connected(broker, access.OPERATOR) as operator, connected(broker, access.GATEWAY) as gateway:
        with connected(broker, access.SPARK) as spark:
            tour = SharedTour(operator, gateway, spark)
            tour.walk()
        assert tour.called == commands_of(operator)
        assert tour.by_gateway | set(CLAIMING) | {"pq_configure"} == tour.called


class SharedTour(Tour):
    """Walks through every command, each as the user whose business it is."""

    def __init__(self, operator: BlockingBroker, gateway: BlockingBroker, spark: BlockingBroker) -> None:
        super().__init__(gateway)
        self._operator, self._spark = operator, spark
        self.by_gateway: set[str] = set()

    def call(self, call: calls.Call[calls.T]) -> calls.T:
        name = str(call.words[1])
        self.called.add(name)
        if name == "pq_configure":
            return self._operator.call(call)
        if name in CLAIMING:
            return self._spark.call(call)
        self.by_gateway.add(name)
        return self._broker.call(call)


def test_the_gateway_listens_to_the_bell_of_its_queues_alone(broker: Started) -> None:
    with connected(broker, access.GATEWAY) as gateway:
        assert gateway.raw(("SUBSCRIBE", KEYS.wake))[0][0] == b"subscribe"
    with connected(broker, access.GATEWAY) as gateway:
        assert refused(gateway, ("SUBSCRIBE", "another"))
    with connected(broker, access.SPARK) as spark:
        assert refused(spark, ("SUBSCRIBE", KEYS.wake))


def test_spark_claims_reads_with_native_commands_and_acknowledges(broker: Started) -> None:
    keys = QueueKeys("claimed")
    with connected(broker, access.GATEWAY) as gateway:
        gateway.call(calls.send(keys, [stored(b"%d" % n) for n in range(300)]))
    with connected(broker, access.SPARK) as spark:
        log = spark.call(calls.claim_open(keys, "spark", "job", 60_000))
        end = spark.call(calls.claim(keys, "spark", "job", 60_000, log.next, 300)).end
        assert len(spark.raw(("LRANGE", keys.segment(0), 0, -1))[0]) == 256
        assert spark.raw(("GET", keys.times(0)), ("HGET", keys.state, "g0"), ("ZRANGE", keys.segments, 0, -1))
        while spark.call(calls.claim_acknowledge(keys, "spark", "job", end)):
            pass
        assert spark.call(calls.totals(keys)).messages == 0


def test_the_operator_configures_counts_empties_and_loads_the_library(broker: Started) -> None:
    keys = QueueKeys("managed")
    with connected(broker, access.GATEWAY) as gateway, connected(broker, access.OPERATOR) as operator:
        operator.call(calls.configure(keys, partition=3, partitions=16, settings=BrokerSettings(lock_ms=5000)))
        gateway.call(calls.send(keys, [stored(b"one")]))
        assert operator.call(calls.totals(keys)).messages == 1
        operator.call(calls.purge(keys))
        assert operator.call(calls.totals(keys)).messages == 0
        operator.load_library()
        assert b"aof_last_write_status:ok" in operator.raw(("INFO", "persistence"))[0]
        assert operator.raw(("PING",), ("FUNCTION", "LIST"), ("CONFIG", "GET", "maxmemory"))


@pytest.mark.parametrize("user", [access.OPERATOR, access.GATEWAY, access.SPARK, access.SPARK_SENDER])
def test_no_program_may_do_what_is_not_its_business(broker: Started, user: str) -> None:
    with connected(broker, user) as client:
        assert [command for command in FORBIDDEN_TO_ALL_PROGRAMS if not refused(client, command)] == []


@pytest.mark.parametrize("user", [access.GATEWAY, access.SPARK, access.SPARK_SENDER])
def test_only_the_operator_touches_library_and_settings(broker: Started, user: str) -> None:
    with connected(broker, user) as client:
        assert [command for command in FORBIDDEN_BUT_TO_THE_OPERATOR if not refused(client, command)] == []


def test_sparks_sender_stores_small_and_large_batches_and_learns_what_the_queue_is_like(broker: Started) -> None:
    keys = QueueKeys("written")
    with connected(broker, access.OPERATOR) as operator:
        operator.call(calls.configure(keys, partition=0, partitions=1, settings=BrokerSettings(sessions=False)))
    with connected(broker, access.SPARK_SENDER) as sender:
        sender.call(calls.send(keys, [stored(b"one")], sender="s", number=1))
        sender.call(calls.send_pushed(keys, [stored(bytes(5000))], guess=1, sender="s", number=2))
        assert sender.call(calls.totals(keys)).messages == 2
        assert sender.call(calls.settings(keys)).sessions is False


def test_who_sends_cannot_claim_and_who_claims_cannot_send(broker: Started) -> None:
    send, claim = ("FCALL", "pq_send", 1, KEYS.state), ("FCALL", "pq_claim_open", 1, KEYS.state)
    with connected(broker, access.SPARK_SENDER) as sender:
        assert refused(sender, claim)
        assert refused(sender, ("FCALL", "pq_receive", 1, KEYS.state))
        assert not refused(sender, send)
    with connected(broker, access.SPARK) as spark:
        assert refused(spark, send)
        assert not refused(spark, claim)
    with connected(broker, access.GATEWAY) as gateway:
        assert refused(gateway, claim)
        assert not refused(gateway, send)
    with connected(broker, access.OPERATOR) as operator:
        assert refused(operator, send)
        assert refused(operator, claim)


def test_the_file_holds_no_password() -> None:
    text = access.users_file(PASSWORDS)
    assert not [password for password in PASSWORDS.values() if password in text]
    assert [line.split()[1] for line in text.splitlines()] == list(access.USERS)


def test_a_file_that_changed_is_taken_up_without_a_restart(folder: Path, library: Path, server: Server) -> None:
    users = folder.parent / "users.acl"
    users.write_text(access.users_file(PASSWORDS))
    own = {"REDISCLI_AUTH": PASSWORDS[access.DEFAULT]}
    with started(folder, library, "--aclfile", str(users), server=server.path, settings=own) as one:
        one.wait_until_ready()
        users.write_text(access.users_file(PASSWORDS | {access.SPARK: "a new one"}))
        with connected(one, access.OPERATOR) as operator, contextlib.suppress(BrokerUnavailable):
            operator.raw(("ACL", "LOAD"))  # Redis 7 sends everybody away, whoever asked for it included
        with connected(one, access.SPARK, "a new one") as spark:
            spark.call(calls.about())
        with connected(one, access.SPARK) as spark, pytest.raises(LoginRefused):
            spark.call(calls.about())
