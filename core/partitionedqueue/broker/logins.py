"""How clients come by a user and a password that may change while they live."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from partitionedqueue.broker import access


class Credentials(NamedTuple):
    """A user of a broker, and its password."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r})"  # a password is nothing for a log


Login: TypeAlias = Callable[[Credentials | None], Awaitable[Credentials | None]]
"""Gives what to log in with, None where the broker asks for nothing; asked whenever a connection is made.

Its argument is what the broker has just refused, None where it has refused nothing: whoever has a newer password gives
that, others the same again. What it raises, whoever wanted the connection is told.
"""


def fixed(password: str | None, user: str | None = None) -> Login:
    """A password that does not change; None where the broker asks for none."""
    credentials = Credentials(user or access.DEFAULT, password) if password is not None else None

    async def login(_refused: Credentials | None) -> Credentials | None:
        return credentials

    return login


NO_LOGIN: Final = fixed(None)
