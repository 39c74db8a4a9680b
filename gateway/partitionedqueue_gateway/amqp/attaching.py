"""What a client attaches a link to, and whether it may."""

import time
from typing import Final

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits
from partitionedqueue_gateway.access.failures import Unauthorized
from partitionedqueue_gateway.access.policies import Right
from partitionedqueue_gateway.amqp import conditions, session_links
from partitionedqueue_gateway.amqp.cbs import TokenNode
from partitionedqueue_gateway.amqp.engine import terminus
from partitionedqueue_gateway.amqp.engine.link import Link, ReceivingLink, SendingLink
from partitionedqueue_gateway.amqp.failures import InvalidRequest, NotSupported
from partitionedqueue_gateway.amqp.management import ManagementNode
from partitionedqueue_gateway.amqp.peer import Peer
from partitionedqueue_gateway.amqp.receiver_links import open_receiver
from partitionedqueue_gateway.amqp.request_links import open_request_link
from partitionedqueue_gateway.amqp.sender_links import open_sender
from partitionedqueue_gateway.entities import addresses
from partitionedqueue_gateway.entities.addresses import Node, NodeAddress

_ANYBODY: Final[tuple[Right, ...]] = ()
_MANAGERS: Final = (Right.LISTEN, Right.SEND, Right.MANAGE)


def attach(peer: Peer, link: Link) -> None:
    """Answer a client's wish for a link: at once, but for a session that is waited for."""
    try:
        _attach(peer, link)
    except PartitionedQueueError as error:
        peer.endpoints.pop(link, None)
        link.refuse(conditions.amqp_error(error))


def _attach(peer: Peer, link: Link) -> None:
    if terminus.is_coordinator(link.target):
        raise NotSupported("transactions are not served")
    address = terminus.address_of(link.source if isinstance(link, SendingLink) else link.target)
    if address is None:
        which = "source" if isinstance(link, SendingLink) else "target"
        raise InvalidRequest(f"the {which} of a link has the address of a queue, as text")
    node = addresses.parse_node(address)
    if node.node is Node.CBS:
        tokens = TokenNode(peer.standing)
        open_request_link(peer, link, node, _ANYBODY, tokens.respond, bytes_max=limits.TOKEN_REQUEST_BYTES_MAX)
    elif node.node is Node.MANAGEMENT:
        _attach_management(peer, link, node)
    else:
        _attach_entity(peer, link, node)


def _attach_management(peer: Peer, link: Link, node: NodeAddress) -> None:
    path, now_s = f"{node.entity.path}/{node.node.value}", time.time()
    if not any(peer.standing.allow(right, path, now_s) for right in _MANAGERS):
        raise Unauthorized(Right.LISTEN)
    entity = peer.services.entities.open(node.entity)
    managing = ManagementNode(peer, node.entity, path)
    bytes_max = entity.message_bytes_max + limits.REQUEST_BYTES_BESIDE
    open_request_link(peer, link, node, _MANAGERS, managing.respond, bytes_max=bytes_max)


def _attach_entity(peer: Peer, link: Link, node: NodeAddress) -> None:
    path = node.entity.path
    sends = isinstance(link, ReceivingLink)
    peer.standing.demand(Right.SEND if sends else Right.LISTEN, path, time.time())
    entity = peer.services.entities.open(node.entity)
    if isinstance(link, ReceivingLink):
        open_sender(peer, link, entity, path)
    elif isinstance(link, SendingLink):
        opened = session_links.open_session_receiver if session_links.is_asked_for(link) else open_receiver
        opened(peer, link, entity, path)
