import math

import pytest

from harness.sas_tokens import LISTENER, ROOT, SENDER, access_by_policies, sas_token
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.access import Access
from partitionedqueue_gateway.access.failures import TokenRefused, Unauthorized
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp.failures import InvalidRequest
from partitionedqueue_gateway.amqp.standing import Standing

NOW = 1_800_000_000.0
QUEUE = "sb://localhost:5672/letters"


class Told:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def standing(access: Access | None = None) -> Standing:
    return Standing(access or access_by_policies(), Told())


def test_nobody_may_do_anything_who_has_shown_nothing() -> None:
    mine = standing()
    assert not mine.allow(Right.LISTEN, "letters", NOW)
    with pytest.raises(Unauthorized, match="'Send' claim"):
        mine.demand(Right.SEND, "letters", NOW)


def test_everybody_may_do_everything_where_there_are_no_policies() -> None:
    standing(Access(None)).demand(Right.MANAGE, "letters", NOW)


def test_a_token_lets_in_until_it_lapses() -> None:
    mine = standing()
    mine.put(sas_token(QUEUE, expires_s=NOW + 10), QUEUE, NOW)
    mine.demand(Right.SEND, "letters", NOW + 9)
    mine.demand(Right.LISTEN, "LETTERS/$DeadLetterQueue", NOW + 9)
    mine.demand(Right.LISTEN, "letters/$management", NOW + 9)
    assert mine.first_end_s() == NOW + 10
    assert not mine.allow(Right.SEND, "letters", NOW + 10)
    mine.forget_lapsed(NOW + 10)
    assert mine.first_end_s() == math.inf


def test_a_token_for_one_entity_says_nothing_of_another() -> None:
    mine = standing()
    mine.put(sas_token(QUEUE, expires_s=NOW + 10), QUEUE, NOW)
    assert not mine.allow(Right.SEND, "parcels", NOW)
    assert not mine.allow(Right.SEND, "letters2", NOW)


def test_the_latest_token_for_an_audience_counts() -> None:
    mine = standing()
    mine.put(sas_token(QUEUE, expires_s=NOW + 10), QUEUE, NOW)
    mine.put(sas_token(QUEUE, expires_s=NOW + 3_600), QUEUE, NOW)
    assert mine.first_end_s() == NOW + 3_600


def test_a_refused_token_leaves_the_earlier_one_as_it_was() -> None:
    mine = standing()
    mine.put(sas_token(QUEUE, expires_s=NOW + 10), QUEUE, NOW)
    with pytest.raises(TokenRefused, match="InvalidSignature"):
        mine.put(sas_token(QUEUE, expires_s=NOW + 99, key="wrong"), QUEUE, NOW)
    assert mine.allow(Right.SEND, "letters", NOW)


def test_claims_of_several_policies_add_up() -> None:
    mine = standing()
    mine.put(sas_token(QUEUE, expires_s=NOW + 10, name=LISTENER), QUEUE, NOW)
    assert not mine.allow(Right.SEND, "letters", NOW)
    other = QUEUE + "/$management"
    mine.put(sas_token(QUEUE, expires_s=NOW + 10, name=SENDER), other, NOW)
    assert mine.allow(Right.SEND, "letters", NOW)
    assert mine.allow(Right.LISTEN, "letters", NOW)


def test_a_policys_name_and_key_are_good_for_the_whole_connection() -> None:
    mine = standing()
    mine.log_in(ROOT, "c2VjcmV0LW9mLXRoZS1mb2xkZXI=")
    mine.demand(Right.MANAGE, "letters", NOW * 2)
    with pytest.raises(TokenRefused):
        mine.log_in(ROOT, "another")


def test_a_connection_has_tokens_for_so_many_audiences() -> None:
    mine = standing(Access(None))
    for number in range(limits.TOKENS_MAX - 1):
        mine.put("", f"sb://localhost/{number}", NOW)
    with pytest.raises(InvalidRequest, match="at most"):
        mine.put("", "sb://localhost/one-more", NOW)
    mine.put("", "sb://localhost/1", NOW)


def test_whoever_waits_for_the_end_of_a_claim_is_told_of_each_new_one() -> None:
    told = Told()
    mine = Standing(access_by_policies(), told)
    mine.put(sas_token(QUEUE, expires_s=NOW + 10), QUEUE, NOW)
    assert told.times == 1
