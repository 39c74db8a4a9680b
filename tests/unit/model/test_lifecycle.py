from partitionedqueue.model.lifecycle import COUNTS_A_DELIVERY, LIFECYCLE, NUMBERED_ANEW, Move, State


def test_every_state_is_in_the_table_and_can_be_come_to() -> None:
    assert set(LIFECYCLE) == set(State)
    begins = {State.READY, State.SCHEDULED}
    reached = {to for moves in LIFECYCLE.values() for to in moves.values()}
    assert begins | reached == set(State)


def test_every_move_is_some_states() -> None:
    assert {move for moves in LIFECYCLE.values() for move in moves} == set(Move)


def test_what_is_gone_stays_gone() -> None:
    assert LIFECYCLE[State.GONE] == {}


def test_what_is_held_neither_expires_nor_is_purged() -> None:
    for state in (State.LOCKED, State.DEFERRED_LOCKED, State.CLAIMED):
        assert not {Move.EXPIRED, Move.EXPIRED_TO_DEAD_LETTERS, Move.PURGE} & set(LIFECYCLE[state])


def test_a_deferred_message_comes_back_deferred_however_it_comes_back() -> None:
    held, free = LIFECYCLE[State.DEFERRED_LOCKED], LIFECYCLE[State.LOCKED]
    assert set(held) == set(free)
    back = {move for move, to in free.items() if to is State.READY}
    assert {held[move] for move in back} == {State.DEFERRED}
    assert {move: held[move] for move in set(held) - back - {Move.RENEW_LOCK}} == {
        move: free[move] for move in set(free) - back - {Move.RENEW_LOCK}
    }


def test_deliveries_are_counted_and_messages_numbered_anew_by_moves_of_the_table() -> None:
    for move in COUNTS_A_DELIVERY:
        assert {state for state, moves in LIFECYCLE.items() if move in moves} <= {
            State.LOCKED,
            State.DEFERRED_LOCKED,
            State.CLAIMED,
        }
    assert {to for moves in LIFECYCLE.values() for move, to in moves.items() if move in NUMBERED_ANEW} == {State.READY}
