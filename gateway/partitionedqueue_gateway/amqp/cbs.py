"""`$cbs`: clients show tokens, and hold the claims in them for as long as those last (claims-based security)."""

import time
from typing import Final

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway.amqp import conditions
from partitionedqueue_gateway.amqp.engine.values import Int, Symbol
from partitionedqueue_gateway.amqp.failures import InvalidRequest, NotSupported
from partitionedqueue_gateway.amqp.requests import Answer, Request
from partitionedqueue_gateway.amqp.standing import Standing

PUT_TOKEN: Final = "put-token"  # noqa: S105 -- an operation's name
ACCEPTED: Final = 202


class TokenNode:
    """Answers for one connection."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    async def respond(self, request: Request) -> Answer:
        """Take a token in."""
        try:
            self._put(request)
        except PartitionedQueueError as error:
            symbol, status, words = conditions.told(error)
            return _answer(status, words, symbol)
        return _answer(ACCEPTED, "Accepted")

    def _put(self, request: Request) -> None:
        if request.operation != PUT_TOKEN:
            raise NotSupported(f"$cbs knows {PUT_TOKEN}, not {request.operation or 'a request without an operation'}")
        audience = request.text("name")
        if audience is None or not isinstance(request.body, str):
            raise InvalidRequest("put-token has the audience in its property 'name', and the token as its body")
        # Python says "jwt" of a shared access signature: the token itself tells what it is, whatever 'type' says.
        self._standing.put(str(request.body), audience, time.time())


def _answer(status: int, words: str, symbol: str | None = None) -> Answer:
    properties = {"status-code": Int(status), "status-description": words}
    if symbol is not None:
        properties["error-condition"] = Symbol(symbol)
    return Answer(properties)
