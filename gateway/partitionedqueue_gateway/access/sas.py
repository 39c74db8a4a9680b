"""Shared access signatures: `SharedAccessSignature sr=<resource>&sig=<signature>&se=<expiry>&skn=<policy>`.

The signature is the base64 of HMAC-SHA256(key, sr + newline + se) over `sr` as it stands there, percent-encoded by
whatever encoder the client has: it is never encoded anew here. The fields come in any order.
"""

import base64
import binascii
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.failures import ExpiredToken, MalformedToken

PREFIX: Final = "SharedAccessSignature "
_FIELDS: Final = frozenset({"sr", "sig", "se", "skn"})
_EXPIRY_S_MAX: Final = 253_402_300_799  # 9999-12-31T23:59:59Z


class Signature(NamedTuple):
    """A token, taken apart and not yet believed."""

    policy: str
    resource: str
    expires_s: int
    signed: bytes
    signature: bytes


def parse(token: str) -> Signature:
    """Take a token apart. Raises MalformedToken."""
    if len(token) > limits.TOKEN_LENGTH_MAX or not token.startswith(PREFIX):
        raise MalformedToken
    fields: dict[str, str] = {}
    for part in token.removeprefix(PREFIX).strip().split("&"):
        name, equals, value = part.partition("=")
        if not equals or name in fields:
            raise MalformedToken
        fields[name] = value
    if not fields.keys() >= _FIELDS:
        raise MalformedToken
    expires = fields["se"]
    if not (expires.isascii() and expires.isdigit() and len(expires) <= 20):
        raise MalformedToken
    try:
        signature = base64.b64decode(unquote(fields["sig"]), validate=True)
        signed = f"{fields['sr']}\n{expires}".encode()
    except (binascii.Error, ValueError):
        raise MalformedToken from None
    return Signature(
        unquote_plus(fields["skn"]), unquote(fields["sr"]), min(int(expires), _EXPIRY_S_MAX), signed, signature
    )


def refuse_expired(token: Signature, now_s: float) -> None:
    """Raises ExpiredToken. To the second: Azure allows for no difference of clocks here either."""
    if token.expires_s <= now_s:
        raise ExpiredToken(f"{datetime.fromtimestamp(token.expires_s, UTC):%Y-%m-%dT%H:%M:%S.000Z}")
