"""Management operations on sessions. Their requests and answers: docs/reference/amqp.md."""

from partitionedqueue.model import limits
from partitionedqueue_gateway.amqp import arguments, conditions
from partitionedqueue_gateway.amqp.engine.values import Array, Int, Timestamp
from partitionedqueue_gateway.amqp.failures import InvalidRequest
from partitionedqueue_gateway.amqp.operation import NO_CONTENT, Reply, Work


async def renew_session_lock(work: Work) -> Reply:
    """Hold a session for another lock duration."""
    return Reply({"expiration": Timestamp(await work.session().renew())})


async def get_session_state(work: Work) -> Reply:
    """What was kept with a session; null where nothing was."""
    return Reply({"session-state": await work.session().get_state() or None})


async def set_session_state(work: Work) -> Reply:
    """Keep something with a session; null or nothing at all takes it away (Go sends empty binary for it)."""
    state = work.arguments.get("session-state")
    if state is not None and not isinstance(state, bytes):
        raise InvalidRequest("session-state is binary or null")
    await work.session().set_state(state or None)
    return Reply({})


async def get_message_sessions(work: Work) -> Reply:
    """Ids of sessions, a page of them. When they were last updated is not looked at."""
    skip = arguments.whole(work.arguments, "skip", least=0, otherwise=0)
    most = limits.SESSIONS_LISTED_MAX
    top = arguments.whole(work.arguments, "top", least=1, most=most, otherwise=most)
    ids = await work.entity.list_sessions(skip, top)
    if not ids:
        return Reply(None, NO_CONTENT, "There are no further sessions.", conditions.SESSION_NOT_FOUND.symbol)
    return Reply({"skip": Int(skip + len(ids)), "sessions-ids": Array.of_strings(ids)})
