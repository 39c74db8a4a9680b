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


class AppendOnlyFileDamaged(BrokerDidNotStart):
    """A partition's append-only file cannot be read to its end."""

    def __init__(self, words: str, *, torn: bool) -> None:
        super().__init__(words)
        self.torn = torn
        """Whether only the end is missing, as when a writer was killed."""


class PartitionUnavailable(CommandFailed):
    """A partition that the command needs does not answer."""
