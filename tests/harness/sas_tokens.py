"""Shared access signatures as Python's SDK makes them, and the policies that they are signed by."""

import base64
import hashlib
import hmac
from urllib.parse import quote_plus, urlencode

from partitionedqueue_gateway.access.access import Access
from partitionedqueue_gateway.access.policies import ALL_RIGHTS, Policies, Policy, Right

KEY = "c2VjcmV0LW9mLXRoZS1mb2xkZXI="
ROOT = "RootManageSharedAccessKey"
LISTENER = "Listener"
SENDER = "Sender"


def access_by_policies() -> Access:
    """One policy that may do everything, one that may only listen, one that may only send."""
    rights = {ROOT: ALL_RIGHTS, LISTENER: frozenset({Right.LISTEN}), SENDER: frozenset({Right.SEND})}
    keys = (KEY.encode(),)
    return Access(Policies(Policy(name=name, keys=keys, rights=may, scope=()) for name, may in rights.items()))


def sas_token(uri: str, *, expires_s: float, name: str = ROOT, key: str = KEY) -> str:
    expires = int(expires_s)
    signed = hmac.new(key.encode(), f"{quote_plus(uri)}\n{expires}".encode(), hashlib.sha256).digest()
    fields = {"sr": uri, "sig": base64.b64encode(signed).decode(), "se": str(expires), "skn": name}
    return "SharedAccessSignature " + urlencode(fields)
