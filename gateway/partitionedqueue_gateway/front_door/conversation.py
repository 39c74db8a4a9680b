"""What the door and a protocol behind it promise each other. Both are plain shapes: neither imports the other."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias


class Wire(Protocol):
    """What a conversation is given: one connection, of whatever kind."""

    @property
    def peer(self) -> str:
        """Who it is, for logs: `address:port`."""

    @property
    def encrypted(self) -> bool:
        """Whether it came in over TLS."""

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send. Never blocks; what the peer does not read waits here, and `pause_writing` says that it does."""

    def pause_reading(self) -> None:
        """Hand nothing more over until `resume_reading`: the peer is slowed down."""

    def resume_reading(self) -> None:
        """Go on."""

    def close(self) -> None:
        """Send what was written, then close. `connection_lost` follows."""

    def abort(self) -> None:
        """Close at once. `connection_lost` follows."""


class Conversation(Protocol):
    """One connection's talk. All is called in the event loop's thread, and never again after `connection_lost`."""

    @property
    def opened(self) -> bool:
        """Whether the peer has logged in and opened; one that has not within `limits.GREETING_S_MAX` is cut off."""

    def data_received(self, data: bytes) -> None:
        """The peer has said something; never empty."""

    def pause_writing(self) -> None:
        """The peer does not read: write only what must be until `resume_writing`; after a while it is cut off."""

    def resume_writing(self) -> None:
        """It reads again."""

    def connection_lost(self) -> None:
        """It is over; whatever was held for the peer is given back."""

    async def drain(self) -> None:
        """This process ends: detach links and close, with conditions that clients retry elsewhere. Ends with
        `wire.close()`; it is cut off after `limits.END_S_MAX`.
        """


OpenConversation: TypeAlias = Callable[[Wire], Conversation]
