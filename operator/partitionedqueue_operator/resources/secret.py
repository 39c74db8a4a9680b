"""The Secret with the brokers' users: what each may do, and the passwords."""

import base64
import binascii
import hashlib
import hmac
from typing import Any, Final

from partitionedqueue.broker import access
from partitionedqueue_operator.observed import Key, Manifest
from partitionedqueue_operator.resources.subject import Subject

USERS_FILE: Final = "users.acl"


def password(operator_key: bytes, key: Key, user: str) -> str:
    """Derived and not drawn: a Secret that was deleted comes back as it was, and nobody has to log in anew.

    By the queue's name, not its uid: a queue that is applied again takes up brokers and programs that are still there.
    """
    words = f"{key.namespace}/{key.name}/{user}".encode()
    return base64.urlsafe_b64encode(hmac.digest(operator_key, words, "sha256")).decode().rstrip("=")


def password_in(live: Manifest | None, operator_key: bytes, key: Key, user: str) -> str:
    """The one that brokers have; where the Secret does not hold it, the one that they are to have.

    What the brokers run with is kept although the operator's key is another one by now: it was lost, or the operator
    was installed anew in another namespace. It counts where `users.acl` holds its digest.
    """
    word, users = _text(live, f"{user}-password"), _text(live, USERS_FILE).splitlines()
    begins = f"user {user} on #{hashlib.sha256(word.encode()).hexdigest()} "
    if word and any(line.startswith(begins) for line in users):
        return word
    return password(operator_key, key, user)


def users_in(live: Manifest | None) -> str:
    """The file of users; '' where there is none."""
    return _text(live, USERS_FILE)


def _text(live: Manifest | None, name: str) -> str:
    try:
        return base64.b64decode(((live or {}).get("data") or {}).get(name, "")).decode()
    except (binascii.Error, ValueError):
        return ""


def broker_secret(subject: Subject, operator_key: bytes, live: Manifest | None = None) -> dict[str, Any]:
    """`users.acl` is what the brokers read; each program is given its own password and no other.

    `live` is the Secret that there is.
    """
    passwords = {user: password_in(live, operator_key, subject.queue.key, user) for user in access.USERS}
    texts = {USERS_FILE: access.users_file(passwords)}
    texts |= {f"{user}-password": word for user, word in passwords.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": subject.metadata(),
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()},
    }
