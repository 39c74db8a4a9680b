"""Errors in the domain's words, named for what happened."""


class PartitionedQueueError(Exception):
    """Whatever a caller may want to catch."""


class InvalidManifest(PartitionedQueueError):
    """A PartitionedQueue manifest says something that cannot be."""


class InvalidMessage(PartitionedQueueError):
    """A message that no queue takes, as it is."""


class MessageTooLarge(InvalidMessage):
    """Azure's limit: 256 KB in a partitioned entity."""


class PartitionKeyConflict(InvalidMessage):
    """SessionId and PartitionKey are both set and differ (Azure: InvalidOperation)."""


class BatchKeyConflict(InvalidMessage):
    """A batch goes into one partition, so all of its messages have one key (Azure: InvalidOperation)."""


class BrokerRefusal(PartitionedQueueError):
    """The broker says no, by contract; nothing was changed."""


class LockLost(BrokerRefusal):
    """The lock has expired, is another receiver's, or the message was settled already (Azure: MessageLockLost)."""


class QueueFull(BrokerRefusal):
    """The partition has no room (Azure: QuotaExceeded)."""


class EntityDisabled(BrokerRefusal):
    """The queue's status forbids it: Disabled, SendDisabled or ReceiveDisabled (Azure: MessagingEntityDisabled)."""


class MessageNotFound(BrokerRefusal):
    """No message with that sequence number is deferred, scheduled or dead-lettered here (Azure: MessageNotFound)."""


class SessionRequired(BrokerRefusal):
    """The queue has sessions, and the message or the receiver names none; or a batch two (Azure: InvalidOperation)."""


class SessionsNotSupported(BrokerRefusal):
    """A session is asked for, and the queue has none (Azure: InvalidOperation)."""


class SessionCannotBeLocked(BrokerRefusal):
    """Another receiver holds the session (Azure: SessionCannotBeLocked)."""


class SessionLockLost(BrokerRefusal):
    """The session's lock has expired, or another receiver has accepted the session since (Azure: SessionLockLost)."""


class TooManyLocks(BrokerRefusal):
    """So much is held under locks that no more is handed out; settle some of it first.

    Azure has no condition of its own for it; QuotaExceeded is the nearest.
    """


class ImmutableSetting(BrokerRefusal):
    """requiresSession and requiresDuplicateDetection are for ever (Azure: InvalidOperation)."""


class ClaimFenced(BrokerRefusal):
    """Another reader has taken the group's claim log over."""


class ClaimLost(BrokerRefusal):
    """Claimed messages were given back to the queue because their lease had lapsed."""


class ClaimAhead(BrokerRefusal):
    """A reader's position is beyond what its group has claimed: the data is older than the checkpoint."""


class Misplaced(BrokerRefusal):
    """The broker holds another partition than the caller takes it for."""


class SendForgotten(BrokerRefusal):
    """A retried send is too old for the broker to tell whether it was stored."""


class TryAgain(BrokerRefusal):
    """The broker is in the middle of something bounded; the same call works shortly."""


class BrokerUnavailable(PartitionedQueueError):
    """A broker is down or did not answer in time. Retriable.

    `outcome_unknown` is true where the call had been sent: it may have been carried out.
    """

    def __init__(self, words: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(words)
        self.outcome_unknown = outcome_unknown


class LoginRefused(BrokerUnavailable):
    """The broker does not take this user's password."""


class BrokerTooOld(PartitionedQueueError):
    """The redis-server has no Functions: 7.0 or newer is needed."""


class BrokerTooNew(BrokerRefusal):
    """A later library has written the broker's data; it is older than what it would read."""


class BrokerFault(PartitionedQueueError):
    """The broker broke its contract: a defect, or another library than ours."""
