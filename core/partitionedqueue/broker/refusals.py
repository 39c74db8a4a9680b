"""Redis' error replies as errors of the domain: one table, total."""

from collections.abc import Mapping
from typing import Final

import hiredis

from partitionedqueue.model.errors import (
    BrokerFault,
    BrokerTooNew,
    BrokerTooOld,
    BrokerUnavailable,
    ClaimAhead,
    ClaimFenced,
    ClaimLost,
    EntityDisabled,
    ImmutableSetting,
    LockLost,
    LoginRefused,
    MessageNotFound,
    Misplaced,
    PartitionedQueueError,
    QueueFull,
    SendForgotten,
    SessionCannotBeLocked,
    SessionLockLost,
    SessionRequired,
    SessionsNotSupported,
    TooManyLocks,
    TryAgain,
)

REFUSALS: Final[Mapping[str, type[PartitionedQueueError]]] = {
    "QUOTA": QueueFull,
    "DISABLED": EntityDisabled,
    "SESSIONREQUIRED": SessionRequired,
    "NOSESSIONS": SessionsNotSupported,
    "SESSIONLOCKED": SessionCannotBeLocked,
    "SESSIONLOCKLOST": SessionLockLost,
    "LOCKLOST": LockLost,
    "LOCKSFULL": TooManyLocks,
    "NOTFOUND": MessageNotFound,
    "IMMUTABLE": ImmutableSetting,
    "NEWERLAYOUT": BrokerTooNew,
    "CLAIMFENCED": ClaimFenced,
    "CLAIMLOST": ClaimLost,
    "CLAIMAHEAD": ClaimAhead,
    "MISPLACED": Misplaced,
    "SENDFORGOTTEN": SendForgotten,
    "TRYAGAIN": TryAgain,
    "BADCALL": BrokerFault,
    # Redis' own words.
    "OOM": QueueFull,  # maxmemory reached: refused before anything was done
    "MISCONF": BrokerUnavailable,  # the append-only file cannot be written
    "LOADING": BrokerUnavailable,
    "BUSY": BrokerUnavailable,
    "NOAUTH": LoginRefused,
    "WRONGPASS": LoginRefused,
    "NOPERM": BrokerFault,
}


def error_in(reply: object) -> str | None:
    """The words of an error reply, also where it is one of those that EXEC lists."""
    if isinstance(reply, hiredis.ReplyError):
        return str(reply)
    if isinstance(reply, list) and reply and isinstance(reply[-1], hiredis.ReplyError):
        return str(reply[-1])
    return None


def error_of(address: object, words: str) -> PartitionedQueueError:
    """The error that an error reply stands for; `words` is the reply, its code first."""
    code, _, rest = words.partition(" ")
    if "max number of clients" in words:
        return BrokerUnavailable(f"broker {address} has no connection to spare (maxclients)")
    if "Function not found" in words:
        return BrokerUnavailable(f"broker {address} has no library loaded yet")
    if "unknown command" in words and "FCALL" in words.upper():
        return BrokerTooOld(f"broker {address} knows no Functions; redis-server 7.0 or newer is needed")
    kind = REFUSALS.get(code, BrokerFault)
    if kind is QueueFull:
        return QueueFull(f"the partition at {address} is full; receive some of its messages first")
    return kind(f"broker {address}: {rest or words}" if kind is not BrokerFault else f"broker {address}: {words}")
