"""Tokens as each SDK makes them, and what no token may get away with."""

import base64
import hashlib
import hmac
import math
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitionedqueue_gateway.access.access import Access, Claims
from partitionedqueue_gateway.access.failures import (
    ExpiredToken,
    InvalidAudience,
    InvalidSignature,
    MalformedToken,
    TokenRefused,
    Unauthorized,
)
from partitionedqueue_gateway.access.policies import ALL_RIGHTS, Policies, Policy, Right
from partitionedqueue_gateway.access.scopes import Scope

KEY, OTHER = "c2VjcmV0LW9mLXRoZS1mb2xkZXI=", "YW5vdGhlci1vbmUtdGhhdC1pcy1uZXc="
ROOT = "RootManageSharedAccessKey"
NOW, LATER = 1_800_000_000, 1_800_003_600
Maker = Callable[..., str]


def policy(name: str = ROOT, *, rights: frozenset[Right] = ALL_RIGHTS, scope: Scope = ()) -> Policy:
    return Policy(name=name, keys=(KEY.encode(), OTHER.encode()), rights=rights, scope=scope)


def access(*policies: Policy) -> Access:
    return Access(Policies(policies or [policy()]))


def signature(key: str, sr: str, expires: int) -> str:
    return base64.b64encode(hmac.new(key.encode(), f"{sr}\n{expires}".encode(), hashlib.sha256).digest()).decode()


def python_sdk(uri: str, *, name: str = ROOT, key: str = KEY, expires: int = LATER) -> str:
    fields = {"sr": uri, "sig": signature(key, quote_plus(uri), expires), "se": str(expires), "skn": quote_plus(name)}
    return "SharedAccessSignature " + urlencode(fields)


def javascript_sdk(uri: str, *, name: str = ROOT, key: str = KEY, expires: int = LATER) -> str:
    def encoded(text: str) -> str:
        return quote(text, safe="-_.!~*'()")  # encodeURIComponent

    sr = encoded(uri)
    signed = encoded(signature(key, sr, expires))
    return f"SharedAccessSignature sr={sr}&sig={signed}&se={expires}&skn={encoded(name)}"


def go_sdk(uri: str, *, name: str = ROOT, key: str = KEY, expires: int = LATER) -> str:
    sr = quote_plus(uri).lower()  # with %3a and %2f
    fields = (("sig", signature(key, sr, expires)), ("se", str(expires)), ("skn", name))
    return f"SharedAccessSignature sr={sr}&{urlencode(fields)}"


def java_sdk(uri: str, *, name: str = ROOT, key: str = KEY, expires: int = LATER) -> str:
    sr = quote_plus(uri, safe="*")  # URLEncoder
    return f"SharedAccessSignature sr={sr}&sig={quote_plus(signature(key, sr, expires))}&se={expires}&skn={name}"


def by_hand(uri: str, *, name: str = ROOT, key: str = KEY, expires: int = LATER) -> str:
    """Nothing encoded, and in another order."""
    return f"SharedAccessSignature skn={name}&se={expires}&sig={signature(key, uri, expires)}&sr={uri}"


SDKS = {"py": python_sdk, "js": javascript_sdk, "go": go_sdk, "java": java_sdk, "by hand": by_hand}


@pytest.mark.parametrize("make", SDKS.values(), ids=SDKS)
@pytest.mark.parametrize("key", [KEY, OTHER], ids=["primary", "secondary"])
@pytest.mark.parametrize(
    "audience",
    [
        "sb://127.0.0.1:5672/orders",
        "amqp://127.0.0.1:5672/orders",
        "amqps://ns.example.com/Orders/$management",
        "https://ns.example.com/orders/subscriptions/invoices",
        "orders",
    ],
)
def test_a_token_of_an_sdk_opens_its_entity_with_either_key(make: Maker, key: str, audience: str) -> None:
    claims = access().verify_sas(make("sb://ns.example.com:5671/Orders", key=key), audience, NOW)
    assert claims.expires_s == LATER
    for right in Right:
        assert claims.allow(right, audience, NOW)
        assert claims.allow(right, "ORDERS/$DeadLetterQueue", NOW)
        assert claims.allow(right, "default/orders", NOW)
        assert not claims.allow(right, "orders-2", NOW)
        assert not claims.allow(right, "orders/orders", NOW)


@pytest.mark.parametrize("make", SDKS.values(), ids=SDKS)
def test_a_token_for_the_namespace_opens_everything(make: Maker) -> None:
    claims = access().verify_sas(make("sb://ns.example.com/"), "sb://ns.example.com/orders", NOW)
    assert claims.allow(Right.SEND, "orders", NOW)
    assert claims.allow(Right.LISTEN, "team-a/orders/$management", NOW)
    assert claims.allow(Right.MANAGE, "", NOW)


@pytest.mark.parametrize("make", SDKS.values(), ids=SDKS)
def test_a_wrong_key_a_wrong_name_and_a_wrong_signature_are_told_alike(make: Maker) -> None:
    words = set()
    for token in (
        make("sb://h/orders", key="b3RoZXI="),
        make("sb://h/orders", name="Nobody"),
        make("sb://h/orders").replace("orders", "parcels"),
        make("sb://h/orders").replace(str(LATER), str(LATER + 1)),
    ):
        with pytest.raises(InvalidSignature) as refused:
            access().verify_sas(token, "sb://h/orders", NOW)
        words.add(str(refused.value))
    assert words == {"InvalidSignature: The token has an invalid signature."}


def test_an_expired_token_is_refused_in_azures_words_and_only_to_who_has_the_key() -> None:
    token = python_sdk("sb://h/orders", expires=NOW)
    with pytest.raises(ExpiredToken) as refused:
        access().verify_sas(token, "sb://h/orders", NOW)
    assert str(refused.value) == ("ExpiredToken: The token is expired. Expiration time: '2027-01-15T08:00:00.000Z'.")
    with pytest.raises(InvalidSignature):
        access().verify_sas(python_sdk("sb://h/orders", key=OTHER[::-1], expires=NOW), "sb://h/orders", NOW)
    assert access().verify_sas(token, "sb://h/orders", NOW - 1).expires_s == NOW


def test_claims_lapse_with_their_token() -> None:
    claims = access().verify_sas(python_sdk("sb://h/orders"), "sb://h/orders", NOW)
    assert claims.allow(Right.SEND, "orders", LATER - 1)
    assert not claims.allow(Right.SEND, "orders", LATER)


def test_an_expiry_beyond_all_years_counts_as_the_last() -> None:
    far = access().verify_sas(python_sdk("sb://h/orders", expires=10**18), "sb://h/orders", NOW)
    assert far.expires_s == 253_402_300_799


@pytest.mark.parametrize("audience", ["sb://h/parcels", "sb://h/", "sb://h/order", "sb://h/team-a/orders"])
def test_a_token_for_one_entity_is_for_no_other(audience: str) -> None:
    with pytest.raises(InvalidAudience):
        access().verify_sas(python_sdk("sb://h/orders"), audience, NOW)


def test_a_policy_of_one_entity_opens_no_more_than_that_whatever_its_token_says() -> None:
    door = access(policy("only", scope=("default", "orders")))
    claims = door.verify_sas(python_sdk("sb://h/", name="only"), "sb://h/orders", NOW)
    assert claims.scope == ("default", "orders")
    assert not claims.allow(Right.SEND, "parcels", NOW)
    with pytest.raises(InvalidAudience):
        door.verify_sas(python_sdk("sb://h/", name="only"), "sb://h/parcels", NOW)
    with pytest.raises(InvalidAudience):
        door.verify_sas(python_sdk("sb://h/parcels", name="only"), "sb://h/parcels", NOW)


def test_a_queue_that_is_called_like_a_namespace_does_not_open_it() -> None:
    claims = access().verify_sas(python_sdk("sb://h/team-a"), "sb://h/team-a", NOW)
    assert claims.allow(Right.LISTEN, "team-a/$DeadLetterQueue", NOW)
    assert not claims.allow(Right.LISTEN, "team-a/orders", NOW)
    whole = access(policy(scope=("team-a",))).verify_sas(python_sdk("sb://h/"), "sb://h/team-a/orders", NOW)
    assert whole.allow(Right.LISTEN, "team-a/orders", NOW)
    assert not whole.allow(Right.LISTEN, "team-a", NOW)
    for words in ("subscriptions", "subscriptions/$management", "messages"):
        assert not claims.allow(Right.LISTEN, f"team-a/{words}", NOW)
        assert whole.allow(Right.LISTEN, f"team-a/{words}", NOW)


def test_what_a_policy_does_not_grant_is_demanded_in_azures_words() -> None:
    door = access(policy(rights=frozenset({Right.LISTEN})))
    claims = door.verify_sas(python_sdk("sb://h/orders"), "sb://h/orders", NOW)
    claims.demand(Right.LISTEN, "orders", NOW)
    with pytest.raises(Unauthorized) as refused:
        claims.demand(Right.SEND, "orders", NOW)
    assert str(refused.value) == "Unauthorized access. 'Send' claim(s) are required to perform this operation."


@pytest.mark.parametrize(
    "token",
    [
        "",
        "SharedAccessSignature",
        "SharedAccessSignature ",
        "SharedAccessSignature sr=a&sig=b&se=1",
        "SharedAccessSignature sr=a&sig=b&se=soon&skn=c",
        "SharedAccessSignature sr=a&sig=!!&se=1&skn=c",
        "SharedAccessSignature sr=a&sr=b&sig=YQ==&se=1&skn=c",
        "SharedAccessSignature sr=a&sig=YQ==&se=-1&skn=c",
        "SharedAccessSignature sr=a&sig=YQ==&se=" + "9" * 30 + "&skn=c",
        "SharedAccessSignature sr=\ud800&sig=YQ==&se=1&skn=c",
        "Bearer eyJhbGciOi",
        "SharedAccessSignature sr=" + "a" * 9000 + "&sig=YQ==&se=1&skn=c",
    ],
)
def test_what_is_no_token_is_refused_as_such(token: str) -> None:
    with pytest.raises(MalformedToken):
        access().verify_sas(token, "sb://h/orders", NOW)


@given(st.text(max_size=200))
def test_nothing_that_somebody_makes_up_lets_them_in_or_breaks_anything(made_up: str) -> None:
    for token in (
        made_up,
        "SharedAccessSignature " + made_up,
        f"SharedAccessSignature sr={made_up}&sig=YQ==&se=1&skn=x",
    ):
        with pytest.raises(TokenRefused):
            access().verify_sas(token, made_up, NOW)


def test_sasl_plain_takes_a_policys_name_with_either_key() -> None:
    door = access(policy(rights=frozenset({Right.SEND})))
    for key in (KEY, OTHER):
        claims = door.verify_plain(ROOT, key)
        assert claims.allow(Right.SEND, "orders", NOW)
        assert not claims.allow(Right.LISTEN, "orders", NOW)
        assert claims.expires_s == math.inf
    for name, key in ((ROOT, "wrong"), ("", ""), ("Nobody", KEY), (ROOT, ""), ("", "-" * 44), (ROOT, "\ud800")):
        with pytest.raises(InvalidSignature):
            door.verify_plain(name, key)


def test_who_has_shown_nothing_may_do_nothing_unless_everybody_may() -> None:
    assert not access().anybody().allow(Right.LISTEN, "orders", NOW)
    open_door = Access(None)
    for claims in (
        open_door.anybody(),
        open_door.verify_sas("anything", "orders", NOW),
        open_door.verify_plain("", ""),
    ):
        assert isinstance(claims, Claims)
        assert claims.allow(Right.MANAGE, "orders", NOW)
