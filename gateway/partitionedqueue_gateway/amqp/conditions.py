"""Errors of the domain as AMQP conditions: one table, total (tests/contract walks every error through it)."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from partitionedqueue.model import errors
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway.access import failures as access
from partitionedqueue_gateway.amqp import failures as refused
from partitionedqueue_gateway.amqp.engine.performatives import AmqpError
from partitionedqueue_gateway.entities import changes, failures


class Condition(NamedTuple):
    """What a client is told: the condition's symbol, a management answer's status code, and words.

    `words` are Azure's, where SDKs or their users' tests read them; "" gives the error's own.
    """

    symbol: str
    status: int
    words: str = ""


INTERNAL_ERROR: Final = Condition("amqp:internal-error", 500, "The service was unable to process the request.")
NOT_FOUND: Final = Condition("amqp:not-found", 404)
NOT_ALLOWED: Final = Condition("amqp:not-allowed", 400)
NOT_IMPLEMENTED: Final = Condition("amqp:not-implemented", 501)
UNAUTHORIZED: Final = Condition("amqp:unauthorized-access", 401)
AUTH_FAILED: Final = Condition("com.microsoft:auth-failed", 401)
RESOURCE_LIMIT_EXCEEDED: Final = Condition("amqp:resource-limit-exceeded", 403)
DETACH_FORCED: Final = Condition("amqp:link:detach-forced", 503)
CONNECTION_FORCED: Final = Condition("amqp:connection:forced", 503)
MESSAGE_SIZE_EXCEEDED: Final = Condition("amqp:link:message-size-exceeded", 400)
ARGUMENT_ERROR: Final = Condition("com.microsoft:argument-error", 400)
ARGUMENT_OUT_OF_RANGE: Final = Condition("com.microsoft:argument-out-of-range", 400)
TIMEOUT: Final = Condition("com.microsoft:timeout", 408)
SERVER_BUSY: Final = Condition("com.microsoft:server-busy", 503)
PARTITION_AWAY: Final = Condition(
    "com.microsoft:server-busy", 503, "The server is busy: a partition that this needs cannot be reached. Try again."
)
SESSION_REQUIRED: Final = Condition(
    "amqp:not-allowed",
    400,
    "The SessionId was not set on a message, and it cannot be sent to the entity. "
    "Entities that have session support enabled can only receive messages that have the SessionId "
    "set to a valid value.",
)
ENTITY_DISABLED: Final = Condition("com.microsoft:entity-disabled", 400)
MESSAGE_NOT_FOUND: Final = Condition("com.microsoft:message-not-found", 404)
SESSION_NOT_FOUND: Final = Condition("com.microsoft:session-not-found", 404)
SESSION_CANNOT_BE_LOCKED: Final = Condition("com.microsoft:session-cannot-be-locked", 409)
MESSAGE_LOCK_LOST: Final = Condition(
    "com.microsoft:message-lock-lost",
    410,
    "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.",
)
SESSION_LOCK_LOST: Final = Condition(
    "com.microsoft:session-lock-lost",
    410,
    "The session lock has expired on the MessageSession. Accept a new MessageSession.",
)

CONDITIONS: Final[Mapping[type[PartitionedQueueError], Condition]] = {
    errors.InvalidManifest: INTERNAL_ERROR,
    errors.InvalidMessage: ARGUMENT_ERROR,
    errors.MessageTooLarge: MESSAGE_SIZE_EXCEEDED,
    errors.PartitionKeyConflict: NOT_ALLOWED,
    errors.BatchKeyConflict: NOT_ALLOWED,
    errors.BrokerRefusal: INTERNAL_ERROR,
    errors.LockLost: MESSAGE_LOCK_LOST,
    errors.QueueFull: RESOURCE_LIMIT_EXCEEDED,
    errors.EntityDisabled: ENTITY_DISABLED,
    errors.MessageNotFound: MESSAGE_NOT_FOUND,
    errors.SessionRequired: SESSION_REQUIRED,
    errors.SessionsNotSupported: NOT_ALLOWED,
    errors.SessionCannotBeLocked: SESSION_CANNOT_BE_LOCKED,
    errors.SessionLockLost: SESSION_LOCK_LOST,
    errors.TooManyLocks: RESOURCE_LIMIT_EXCEEDED,
    errors.ImmutableSetting: NOT_ALLOWED,
    # No client of this wire claims messages (Spark does).
    errors.ClaimFenced: INTERNAL_ERROR,
    errors.ClaimLost: INTERNAL_ERROR,
    errors.ClaimAhead: INTERNAL_ERROR,
    # Trouble of ours that passes, or that an operator ends: clients try again.
    errors.Misplaced: SERVER_BUSY,
    errors.SendForgotten: TIMEOUT,
    errors.TryAgain: SERVER_BUSY,
    errors.BrokerUnavailable: PARTITION_AWAY,
    errors.LoginRefused: PARTITION_AWAY,
    errors.BrokerTooOld: INTERNAL_ERROR,
    errors.BrokerTooNew: INTERNAL_ERROR,
    errors.BrokerFault: INTERNAL_ERROR,
    failures.NoCredentials: PARTITION_AWAY,
    failures.EntityNotFound: NOT_FOUND,
    failures.QueueGone: NOT_FOUND,
    failures.NoSessionAvailable: TIMEOUT,
    failures.SendNotAllowed: NOT_ALLOWED,
    # No client of this wire makes, changes or deletes queues.
    changes.QueueExists: NOT_ALLOWED,
    changes.ChangeConflict: SERVER_BUSY,
    changes.ChangeRefused: NOT_ALLOWED,
    changes.ChangesNotTaken: NOT_IMPLEMENTED,
    changes.SourceUnavailable: SERVER_BUSY,
    access.PoliciesUnreadable: INTERNAL_ERROR,
    access.TokenRefused: AUTH_FAILED,
    access.MalformedToken: AUTH_FAILED,
    access.InvalidSignature: AUTH_FAILED,
    access.InvalidAudience: AUTH_FAILED,
    access.ExpiredToken: AUTH_FAILED,
    access.Unauthorized: UNAUTHORIZED,
    refused.InvalidRequest: ARGUMENT_ERROR,
    refused.ArgumentOutOfRange: ARGUMENT_OUT_OF_RANGE,
    refused.NotSupported: NOT_IMPLEMENTED,
    refused.NotAllowed: NOT_ALLOWED,
    refused.TokenLapsed: UNAUTHORIZED,
    refused.OperationTimeout: TIMEOUT,
    refused.LinkDetached: DETACH_FORCED,
}


_ADDRESS: Final = re.compile(r"^broker \S+: | at [\w.-]+:\d+")
"""Where a broker is, is not a client's business."""


class Told(NamedTuple):
    """An error as a client is told of it."""

    symbol: str
    status: int
    description: str


def told(error: BaseException) -> Told:
    """What a client is told of an error; one that is not of the domain is a defect, and its words stay here."""
    if not isinstance(error, PartitionedQueueError):
        return Told(*INTERNAL_ERROR)
    found = next((CONDITIONS[kind] for kind in type(error).__mro__ if kind in CONDITIONS), INTERNAL_ERROR)
    return Told(found.symbol, found.status, found.words or _ADDRESS.sub("", str(error)))


def amqp_error(error: BaseException) -> AmqpError:
    """The same, for a link or an outcome."""
    symbol, _, description = told(error)
    return AmqpError(symbol, description)
