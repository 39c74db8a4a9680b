"""The Secret with the brokers' users: what each may do, and the passwords."""

import base64
import hmac
from typing import Any, Final

from partitionedqueue.broker import access
from partitionedqueue_operator.observed import Key
from partitionedqueue_operator.resources.subject import Subject

USERS_FILE: Final = "users.acl"


def password(operator_key: bytes, key: Key, user: str) -> str:
    """Derived and not drawn: a Secret that was deleted comes back as it was, and nobody has to log in anew.

    By the queue's name, not its uid: a queue that is applied again takes up brokers and programs that are still there.
    """
    words = f"{key.namespace}/{key.name}/{user}".encode()
    return base64.urlsafe_b64encode(hmac.digest(operator_key, words, "sha256")).decode().rstrip("=")


def broker_secret(subject: Subject, operator_key: bytes) -> dict[str, Any]:
    """`users.acl` is what the brokers read; each program is given its own password and no other."""
    passwords = {user: password(operator_key, subject.queue.key, user) for user in access.USERS}
    texts = {USERS_FILE: access.users_file(passwords)}
    texts |= {f"{user}-password": word for user, word in passwords.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": subject.metadata(),
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()},
    }
