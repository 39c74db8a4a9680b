from typing import Any

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.amqp.backlog import Backlog, Reading, Share


class Connection:
    """A connection's socket, as far as it is read from."""

    on: Any = True  # changes behind the type checker's back

    def __init__(self, backlog: Backlog) -> None:
        self.switched = 0
        self.share = Share(backlog, self._stop, self._go_on)

    def _stop(self) -> None:
        assert self.on
        self.on = False
        self.switched += 1

    def _go_on(self) -> None:
        assert not self.on
        self.on = True


def test_a_connection_is_not_read_from_while_much_of_it_is_not_stored() -> None:
    reading = Connection(Backlog())
    reading.share.update(limits.CONNECTION_SENDS_BYTES_MAX - 1)
    assert reading.on
    reading.share.update(limits.CONNECTION_SENDS_BYTES_MAX)
    assert not reading.on
    reading.share.update(limits.CONNECTION_SENDS_BYTES_MAX // 2 + 1)
    assert not reading.on
    reading.share.update(limits.CONNECTION_SENDS_BYTES_MAX // 2)
    assert reading.on


def _fill(backlog: Backlog) -> list[Connection]:
    several = [Connection(backlog) for _ in range(limits.SENDS_BYTES_MAX // limits.CONNECTION_SENDS_BYTES_MAX)]
    for one in several:
        one.share.update(limits.CONNECTION_SENDS_BYTES_MAX)
    return several


def test_all_connections_together_have_a_bound() -> None:
    backlog = Backlog()
    several = _fill(backlog)
    late = Connection(backlog)
    late.share.update(limits.SENDS_BYTES_SHARE + 1)
    assert not late.on
    for one in several:
        one.share.update(0)
    assert late.on
    assert all(one.on for one in several)


def test_one_message_of_the_largest_size_is_always_taken() -> None:
    backlog = Backlog()
    _fill(backlog)
    late = Connection(backlog)
    late.share.update(limits.SENDS_BYTES_SHARE)
    assert late.on


def test_a_connection_that_is_stopped_waits_in_line_once() -> None:
    backlog = Backlog()
    several = _fill(backlog)
    late = Connection(backlog)
    for more in range(1, 50):
        late.share.update(limits.SENDS_BYTES_SHARE + more)
    for one in several:
        one.share.update(0)
    assert late.on
    assert late.switched == 1
    assert backlog.bytes == limits.SENDS_BYTES_SHARE + 49


def test_a_connection_that_has_gone_is_not_told_any_more() -> None:
    backlog = Backlog()
    several = _fill(backlog)
    late = Connection(backlog)
    late.share.update(limits.SENDS_BYTES_SHARE + 1)
    late.share.leave()
    for one in several:
        one.share.update(0)
    assert not late.on
    assert backlog.bytes == limits.SENDS_BYTES_SHARE + 1  # it is not stored yet
    late.share.update(0)
    assert backlog.bytes == 0


def test_a_socket_is_read_from_again_when_no_reason_is_left() -> None:
    told: list[str] = []
    reading = Reading(lambda: told.append("pause"), lambda: told.append("resume"))
    reading.stop("a")
    reading.stop("b")
    reading.stop("b")
    reading.go_on("a")
    assert told == ["pause"]
    reading.go_on("b")
    reading.go_on("b")
    assert told == ["pause", "resume"]
