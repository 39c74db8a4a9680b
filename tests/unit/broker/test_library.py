from partitionedqueue.broker import calls, replies
from partitionedqueue.broker.keys import QueueKeys, place_of
from partitionedqueue.broker.refusals import error_of
from partitionedqueue.model.errors import BrokerFault, BrokerTooOld, BrokerUnavailable, LockLost, QueueFull


def test_place_of_counts_from_one() -> None:
    assert [place_of(n) for n in (1, 256, 257)] == [(0, 0), (0, 255), (1, 0)]


def test_a_call_may_be_repeated_only_where_that_does_nothing_twice() -> None:
    keys = QueueKeys("q")
    assert calls.send(keys, [b""], sender="s", number=1).repeatable
    assert not calls.send(keys, [b""]).repeatable
    assert not calls.receive(keys, most=1, lock_ms=1).repeatable
    assert not calls.complete(keys, [replies.Settlement(1, 1, 1)]).repeatable


def test_redis_words_become_the_domains() -> None:
    assert isinstance(error_of("a:1", "OOM command not allowed"), QueueFull)
    assert isinstance(error_of("a:1", "LOADING Redis is loading"), BrokerUnavailable)
    assert isinstance(error_of("a:1", "ERR unknown command 'FCALL', with args"), BrokerTooOld)
    assert isinstance(error_of("a:1", "ERR Function not found"), BrokerUnavailable)
    assert isinstance(error_of("a:1", "WRONGTYPE Operation"), BrokerFault)
    assert not issubclass(LockLost, BrokerUnavailable)
