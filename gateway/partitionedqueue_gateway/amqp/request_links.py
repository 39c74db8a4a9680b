"""Pairs of links by which clients ask: requests come over one, answers go over the other, told by their address."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp import conditions, requests
from partitionedqueue_gateway.amqp.endpoint import Endpoint
from partitionedqueue_gateway.amqp.engine import outcomes, terminus
from partitionedqueue_gateway.amqp.engine.events import MessageReceived
from partitionedqueue_gateway.amqp.engine.link import Link, ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.engine.outcomes import ACCEPTED
from partitionedqueue_gateway.amqp.failures import InvalidRequest, NotAllowed
from partitionedqueue_gateway.amqp.peer import Peer
from partitionedqueue_gateway.amqp.requests import Answer, Request
from partitionedqueue_gateway.entities.addresses import NodeAddress

Respond: TypeAlias = Callable[[Request], Awaitable[Answer]]
"""Carries a request out; it never raises what a client may be told of."""


class RequestLink(Endpoint):
    """Over which requests come. As many are under way as the client has credit for."""

    def __init__(
        self, peer: Peer, link: ReceivingLink, node: NodeAddress, rights: tuple[Right, ...], respond: Respond
    ) -> None:
        super().__init__(link, f"{node.entity.path}/{node.node.value}")
        self.link: ReceivingLink = link
        self.rights = rights
        self._peer = peer
        self._node = node
        self._respond = respond
        self._under_way = 0

    def grant(self) -> None:
        """Let the client ask as often as there is room; whether it waits for an answer or not."""
        room = limits.REQUESTS_AT_ONCE - self._under_way
        if self.link.credit < room // 2:
            self.link.grant(room)

    def message(self, event: MessageReceived) -> None:
        """One has come: it is answered when it has been carried out."""
        try:
            request = requests.read(event.payload)
        except InvalidRequest as error:
            self.link.settle(event.delivery_id, outcomes.rejected(conditions.amqp_error(error)))
            self.grant()
            return
        self._under_way += 1
        size = len(event.payload) + limits.SEND_BYTES_BESIDE
        self._peer.unanswered_bytes += size
        self._peer.begin(self._carry_out(request, event)).add_done_callback(partial(self._carried_out, size))

    def _carried_out(self, size: int, _: object) -> None:
        self._under_way -= 1
        self._peer.unanswered_bytes -= size
        self.grant()
        self._peer.answer_soon()

    async def _carry_out(self, request: Request, event: MessageReceived) -> None:
        if event.state and outcomes.code_of(event.state) == outcomes.TRANSACTIONAL_CODE:
            error = NotAllowed("transactions are not served")
            self.link.settle(event.delivery_id, outcomes.rejected(conditions.amqp_error(error)))
            return
        answer = await self._respond(request)
        if not event.settled:
            self.link.settle(event.delivery_id, ACCEPTED)
        reply = reply_link(self._peer.endpoints.values(), self._node, request.reply_to, self.link)
        if reply is not None:
            reply.give(requests.write(answer, request))
        self._peer.answer_soon()

    def begin_drain(self) -> bool:
        """What was asked is answered first."""
        return self._under_way > 0


class ReplyLink(Endpoint):
    """Over which answers go, settled: nobody asks what became of them."""

    def __init__(self, peer: Peer, link: SendingLink, node: NodeAddress, rights: tuple[Right, ...]) -> None:
        super().__init__(link, f"{node.entity.path}/{node.node.value}")
        self.link: SendingLink = link
        self.rights = rights
        self.node = node
        self._peer = peer
        self._waiting: deque[bytes] = deque()
        self._count = 0

    def give(self, message: bytes) -> None:
        """Send an answer, as soon as the client takes it."""
        peer = self._peer
        if len(self._waiting) >= limits.ANSWERS_KEPT_MAX or peer.answers_bytes >= limits.ANSWERS_BYTES_MAX:
            peer.detach(self.link, InvalidRequest("the answers to requests wait for credit, and are too many"))
            return
        self._waiting.append(message)
        peer.answers_bytes += len(message)
        self.credit_changed()

    def credit_changed(self) -> None:
        """Send what waits."""
        while self._waiting and self._peer.reads and self.link.sendable:
            self._count += 1
            message = self._waiting.popleft()
            self._peer.answers_bytes -= len(message)
            self.link.send(message, self._count.to_bytes(8), settled=True)
        if not self._waiting:
            self.link.drained()

    def writable(self) -> None:
        """The client reads again."""
        self.credit_changed()

    def close(self) -> None:
        """Whoever asked has gone."""
        self._peer.answers_bytes -= sum(map(len, self._waiting))
        self._waiting.clear()

    def begin_drain(self) -> bool:
        """The answers to what was asked go over it."""
        return self._peer.busy


def open_request_link(
    peer: Peer, link: Link, node: NodeAddress, rights: tuple[Right, ...], respond: Respond, *, bytes_max: int
) -> None:
    """Either link of a pair. `bytes_max`: of a request."""
    if isinstance(link, SendingLink):
        reply = ReplyLink(peer, link, node, rights)
        peer.add(reply)
        link.attach(source=link.source, target=link.target, properties={})
        reply.credit_changed()
        return
    assert isinstance(link, ReceivingLink)
    endpoint = RequestLink(peer, link, node, rights, respond)
    peer.add(endpoint)
    link.attach(source=link.source, target=link.target, properties={}, max_message_size=bytes_max)
    endpoint.grant()


def reply_link(endpoints: Iterable[object], node: NodeAddress, reply_to: str | None, asked: Link) -> ReplyLink | None:
    """The link that an answer goes over.

    By the address that its client has given it, or its name (JavaScript); without a reply address (Python to $cbs) the
    one of the same node and AMQP session, or else the newest.
    """
    found = [one for one in endpoints if isinstance(one, ReplyLink) and one.node == node]
    found.sort(key=lambda one: one.link.session is not asked.session)  # Java's are all called alike
    if reply_to is not None:
        for one in found:
            if terminus.address_of(one.link.target) == reply_to:
                return one
        for one in found:
            if one.link.name == reply_to:
                return one
    beside = [one for one in found if one.link.session is asked.session]
    return next(iter(reversed(beside or found)), None)
