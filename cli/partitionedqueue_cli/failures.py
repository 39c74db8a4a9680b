"""What can go wrong here, each named for what happened."""

from partitionedqueue.model.errors import PartitionedQueueError


class CommandFailed(PartitionedQueueError):
    """The command could not do what it was asked; the words say why."""


class FileUnreadable(CommandFailed):
    """A file that was named cannot be read."""


class FolderUnusable(CommandFailed):
    """The namespace's folder cannot be made, written or understood."""


class ServerUnusable(CommandFailed):
    """redis-server is missing or too old."""


class QueueDiffers(CommandFailed):
    """The folder's queue has other immutable properties than the manifest."""


class NamespaceDown(CommandFailed):
    """Nothing is running in the folder."""


class NamespaceUp(CommandFailed):
    """Something else is running in the folder."""


class NoSuchQueue(CommandFailed):
    """The namespace runs no queue of that name."""


class BrokerDidNotStart(CommandFailed):
    """A partition's redis-server ended before it was ready."""


class GatewayDidNotStart(CommandFailed):
    """The gateway ended, or was not ready in time."""


class FolderRefused(BrokerDidNotStart):
    """Somebody must decide before a broker starts over a partition's folder; the words come in several lines."""


class AppendOnlyFileDamaged(FolderRefused):
    """A partition's append-only file cannot be read to its end."""


class PartitionUnavailable(CommandFailed):
    """A partition that the command needs does not answer."""
