"""Links over which clients receive a session's messages; the session is held for as long as the link."""

from typing import Final

from partitionedqueue.model import limits as model_limits
from partitionedqueue.model.errors import PartitionedQueueError, SessionCannotBeLocked
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp import conditions, link_properties
from partitionedqueue_gateway.amqp.endpoint import Endpoint
from partitionedqueue_gateway.amqp.engine import terminus
from partitionedqueue_gateway.amqp.engine.link import SendingLink
from partitionedqueue_gateway.amqp.engine.values import Described, Symbol, Value
from partitionedqueue_gateway.amqp.failures import ArgumentOutOfRange, InvalidRequest, NotAllowed, OperationTimeout
from partitionedqueue_gateway.amqp.link_properties import SESSION_FILTER
from partitionedqueue_gateway.amqp.peer import Peer
from partitionedqueue_gateway.amqp.receiver_links import ReceiverLink
from partitionedqueue_gateway.entities.entity import Entity
from partitionedqueue_gateway.entities.failures import NoSessionAvailable
from partitionedqueue_gateway.entities.session import Session

_TICKS_1970: Final = 621_355_968_000_000_000
"""Of .NET, 100 ns each, since the year 1."""


def ticks(ms: int) -> int:
    """A time as .NET counts it."""
    return ms * 10_000 + _TICKS_1970


def is_asked_for(link: SendingLink) -> bool:
    """Whether a link is to receive a session."""
    return SESSION_FILTER in terminus.filters_of(link.source)


def open_session_receiver(peer: Peer, link: SendingLink, entity: Entity, path: str) -> None:
    """Let a client receive a session, once one is had. Raises what forbids it: NotAllowed, EntityDisabled."""
    if not entity.has_sessions:
        raise NotAllowed(
            "A sessionful message receiver cannot be created on an entity that does not require sessions. "
            "Ensure RequiresSession is set to true when creating the Queue to enable sessionful behavior."
        )
    wanted = _session_id(terminus.filters_of(link.source)[SESSION_FILTER])
    peer.add(PendingSession(peer, link, entity, path, wanted))


def _session_id(asked: Value) -> str | None:
    """The session that a filter names, None for the next available. Go describes the value, others do not."""
    value = asked.value if isinstance(asked, Described) else asked
    if value is not None and not isinstance(value, str):
        raise InvalidRequest("the session filter is the id of a session, as text, or null for the next one available")
    if value is not None and len(value) > model_limits.SESSION_ID_CHARACTERS_MAX:
        most = model_limits.SESSION_ID_CHARACTERS_MAX
        raise ArgumentOutOfRange(f"the session id has {len(value)} characters; at most {most} are allowed")
    return None if value is None else str(value)


class PendingSession(Endpoint):
    """A link whose attach is not answered yet, since its session is not had yet."""

    rights = (Right.LISTEN,)

    def __init__(self, peer: Peer, link: SendingLink, entity: Entity, path: str, wanted: str | None) -> None:
        super().__init__(link, path)
        self.link: SendingLink = link
        self._peer = peer
        self._entity = entity
        self._wanted = wanted
        self._within_s = link_properties.timeout_s(
            link, limits.ACCEPT_SESSION_S_DEFAULT, most_s=limits.ACCEPT_SESSION_S_MAX
        )
        self._accepting = peer.begin(self._accept())

    async def _accept(self) -> None:
        try:
            session = await self._entity.accept_session(self._wanted, within_s=self._within_s)
        except NoSessionAvailable:
            self._refuse(OperationTimeout(self._within_s))
        except SessionCannotBeLocked:
            words = f"The requested session '{self._wanted}' cannot be accepted. It may be locked by another receiver."
            self._refuse(SessionCannotBeLocked(words))
        except PartitionedQueueError as error:
            self._refuse(error)
        else:
            self._attach(session)

    def _refuse(self, error: PartitionedQueueError) -> None:
        self._peer.endpoints.pop(self.link, None)
        self.link.refuse(conditions.amqp_error(error))
        self._peer.answer_soon()

    def _attach(self, session: Session) -> None:
        link, peer = self.link, self._peer
        if link.ended or link not in peer.endpoints:
            peer.services.release(session)
            return
        try:
            endpoint = SessionLink(peer, link, self._entity, self.path, session)
        except PartitionedQueueError as error:
            peer.services.release(session)
            self._refuse(error)
            return
        filters = dict(terminus.filters_of(link.source))
        asked = filters[SESSION_FILTER]
        accepted: Value = session.session_id
        if isinstance(asked, Described):
            accepted = Described(asked.descriptor, accepted)
        filters[Symbol(SESSION_FILTER)] = accepted
        assert link.source is not None
        peer.add(endpoint)
        link.attach(
            source=terminus.with_filters(link.source, filters),
            target=link.target,
            properties={link_properties.LOCKED_UNTIL: ticks(session.locked_until_ms)},
        )
        session.on_lost(endpoint.session_lost)
        endpoint.credit_changed()
        peer.answer_soon()

    def close(self) -> None:
        """The client does not want it any more."""
        self._accepting.cancel()


class SessionLink(ReceiverLink):
    """A link that has its session."""

    def __init__(self, peer: Peer, link: SendingLink, entity: Entity, path: str, session: Session) -> None:
        super().__init__(peer, link, entity, path, session)
        self.session = session
        self._place = (entity.address, session.session_id)
        peer.sessions[self._place] = session

    def session_lost(self, error: PartitionedQueueError) -> None:
        """Somebody else may have it by now."""
        self._lost(error)

    def close(self) -> None:
        """With the link the session goes: what is held in it goes back, uncounted."""
        super().close()
        if self._peer.sessions.get(self._place) is self.session:
            del self._peer.sessions[self._place]
            self._peer.services.release(self.session)
