"""What an operation of a management node is given, and what it gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from partitionedqueue.model.errors import SessionLockLost
from partitionedqueue_gateway.amqp import arguments
from partitionedqueue_gateway.amqp.arguments import Arguments
from partitionedqueue_gateway.amqp.engine.values import Value
from partitionedqueue_gateway.entities.addresses import EntityAddress
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.session import Session

OK: Final = 200
NO_CONTENT: Final = 204


class Reply(NamedTuple):
    """`condition`: told beside a status that is no failure, as Azure does where there is nothing."""

    body: Mapping[str, Value] | None
    status: int = OK
    words: str = "OK"
    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One request: the entity that it is for, what it says, and who asks."""

    entity: Entity
    arguments: Arguments
    sessions: Mapping[tuple[EntityAddress, str], Session]
    """Those that the client holds, over links of this connection."""
    linked: Session | None
    """That of the link which the request names (`associated-link-name`)."""
    new_message_id: Callable[[], str]
    within_s: float

    def session(self) -> Session:
        """The session that is meant. Raises SessionLockLost where the client does not hold it."""
        session_id = arguments.text(self.arguments, "session-id")
        found = self.linked if session_id is None else self.sessions.get((self.entity.address, session_id))
        if found is None:
            raise SessionLockLost("this connection holds no such session; accept it first")
        return found

    def session_of_locks(self) -> Session | None:
        """The session that messages are held in; None where the entity has none."""
        return self.session() if self.entity.has_sessions else None
