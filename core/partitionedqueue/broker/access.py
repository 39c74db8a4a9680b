"""Who may do what on a broker: its users, and the file that `aclfile` names.

Beside the functions that a user may call stand the commands that those consist of, because Redis asks for both; so a
user may also run these by themselves, on the queue's keys. What nobody gets but who needs it: the library, the
configuration, other keys, other users. tests/image tries each user on a real server.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

DEFAULT: Final = "default"
"""Of the pod's own scripts, and of whoever has a shell in it: everything."""
OPERATOR: Final = "operator"
GATEWAY: Final = "gateway"
SPARK: Final = "spark"
SPARK_SENDER: Final = "spark-sender"
"""A job that writes has a password of its own: one that reads a queue can put nothing into it."""
USERS: Final = (DEFAULT, OPERATOR, GATEWAY, SPARK, SPARK_SENDER)

KEYS: Final = "~pq:*"
CHANNELS: Final = "&pq:*"

DATA_COMMANDS: Final = (
    "append", "exists", "get", "getrange", "hdel", "hget", "hgetall", "hmget", "hset", "lindex", "llen", "lpop",
    "lrange", "lset", "ltrim", "publish", "rpop", "rpush", "set", "setrange", "time", "unlink", "zadd", "zcard",
    "zcount", "zrange", "zrem", "zscore",
)  # fmt: skip
"""All that the library's functions consist of."""

MESSAGE_FUNCTIONS: Final = (
    "pq_abandon", "pq_about", "pq_accept_session", "pq_apply", "pq_cancel_scheduled", "pq_complete", "pq_dead_letter",
    "pq_defer", "pq_list_sessions", "pq_next_due", "pq_peek", "pq_purge", "pq_receive",
    "pq_receive_deferred", "pq_release_session", "pq_renew_lock", "pq_renew_session", "pq_resubmit", "pq_send",
    "pq_send_pushed", "pq_session_state", "pq_sweep", "pq_totals",
)  # fmt: skip
CLAIM_FUNCTIONS: Final = (
    "pq_about", "pq_claim", "pq_claim_acknowledge", "pq_claim_open", "pq_claim_renew", "pq_claimed", "pq_receive",
    "pq_states", "pq_totals",
)  # fmt: skip
SENDING_FUNCTIONS: Final = ("pq_about", "pq_send", "pq_send_pushed", "pq_totals")
MANAGING_FUNCTIONS: Final = ("pq_about", "pq_configure", "pq_next_due", "pq_purge", "pq_sweep", "pq_totals")

_FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    OPERATOR: MANAGING_FUNCTIONS,
    GATEWAY: MESSAGE_FUNCTIONS,
    SPARK: CLAIM_FUNCTIONS,
    SPARK_SENDER: SENDING_FUNCTIONS,
}
_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    # A broker that is full takes no library, so maxmemory is lifted for that moment: CONFIG SET.
    OPERATOR: ("ping", "info", "function|load", "function|list", "config|get", "config|set", "acl|load", "acl|whoami"),
    GATEWAY: ("ping", "info", "multi", "exec", "discard", "subscribe", "unsubscribe"),
    SPARK: ("ping",),
    SPARK_SENDER: ("ping", "multi", "exec", "discard"),
}


def users_file(passwords: Mapping[str, str]) -> str:
    """The file, from the password of each of USERS, which it holds as digests only."""
    lines = [f"user {DEFAULT} on #{_digest(passwords[DEFAULT])} ~* &* +@all"]
    for user, functions in _FUNCTIONS.items():
        commands = [
            *_COMMANDS[user],
            *DATA_COMMANDS,
            *(f"{how}|{name}" for name in functions for how in ("fcall", "fcall_ro")),
        ]
        lines.append(
            f"user {user} on #{_digest(passwords[user])} resetchannels {KEYS} {CHANNELS} -@all +{' +'.join(commands)}"
        )
    return "\n".join(lines) + "\n"


def _digest(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()
