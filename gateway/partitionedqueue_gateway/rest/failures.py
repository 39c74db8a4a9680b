"""Errors of the domain as HTTP answers: one table, total (tests/contract walks every error through it).

Bodies are Azure's: `<Error><Code>403</Code><Detail>SubCode=40300. … TrackingId:…, SystemTracker:…, Timestamp:…`, which
SDKs and their users' programs look into.
"""

import logging
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from aiohttp import web

from partitionedqueue.model import errors
from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway.access import failures as access
from partitionedqueue_gateway.entities import changes, failures
from partitionedqueue_gateway.entities.ranges import LOCK_LOST
from partitionedqueue_gateway.rest import refusals

_log = logging.getLogger(__name__)


class Refusal(NamedTuple):
    """What a client is told: the status, Azure's sub-code (its first three digits need not be the status), and words.

    `words` are Azure's or ours where the error's own would say too much; "" gives the error's own. After `retry_s`
    seconds the same request may work; 0: nothing is said about it.
    """

    status: int
    sub_code: int
    words: str = ""
    retry_s: int = 0


INTERNAL_ERROR: Final = Refusal(500, 50000, "The service was unable to process the request.")
BAD_REQUEST: Final = Refusal(400, 40000)
UNAUTHORIZED: Final = Refusal(401, 40100)
NOT_FOUND: Final = Refusal(404, 40400)
GONE: Final = Refusal(410, 41000)
QUOTA_EXCEEDED: Final = Refusal(403, 40300, retry_s=5)
TOO_LARGE: Final = Refusal(403, 40300)
"""Azure documents 403 for a message that is too large, as for a queue that is full."""
NOT_NOW: Final = Refusal(403, 40301)
SERVER_BUSY: Final = Refusal(503, 50002, retry_s=1)
PARTITION_AWAY: Final = Refusal(
    503, 50002, "The server is busy: a partition that this needs cannot be reached. Try again.", retry_s=1
)

REFUSALS: Final[Mapping[type[PartitionedQueueError], Refusal]] = {
    errors.InvalidManifest: BAD_REQUEST,
    errors.InvalidMessage: BAD_REQUEST,
    errors.MessageTooLarge: TOO_LARGE,
    errors.PartitionKeyConflict: BAD_REQUEST,
    errors.BatchKeyConflict: BAD_REQUEST,
    errors.BrokerRefusal: INTERNAL_ERROR,
    errors.LockLost: Refusal(404, 40400, LOCK_LOST),
    errors.QueueFull: QUOTA_EXCEEDED,
    errors.EntityDisabled: NOT_NOW,
    errors.MessageNotFound: NOT_FOUND,
    errors.SessionRequired: BAD_REQUEST,
    errors.SessionsNotSupported: BAD_REQUEST,
    errors.SessionCannotBeLocked: Refusal(409, 40901),
    errors.SessionLockLost: NOT_FOUND,
    errors.TooManyLocks: QUOTA_EXCEEDED,
    errors.ImmutableSetting: BAD_REQUEST,
    # No client of this wire claims messages (Spark does).
    errors.ClaimFenced: INTERNAL_ERROR,
    errors.ClaimLost: INTERNAL_ERROR,
    errors.ClaimAhead: INTERNAL_ERROR,
    # Trouble of ours that passes, or that an operator ends: clients try again.
    errors.Misplaced: SERVER_BUSY,
    errors.SendForgotten: Refusal(503, 50004, retry_s=1),
    errors.TryAgain: SERVER_BUSY,
    errors.BrokerUnavailable: PARTITION_AWAY,
    errors.LoginRefused: PARTITION_AWAY,
    errors.BrokerTooOld: INTERNAL_ERROR,
    errors.BrokerTooNew: INTERNAL_ERROR,
    errors.BrokerFault: INTERNAL_ERROR,
    failures.NoCredentials: PARTITION_AWAY,
    failures.EntityNotFound: NOT_FOUND,
    failures.QueueGone: GONE,
    failures.NoSessionAvailable: Refusal(408, 40800),
    failures.SendNotAllowed: BAD_REQUEST,
    changes.QueueExists: Refusal(409, 40900),
    changes.ChangeConflict: Refusal(409, 40901, retry_s=1),
    changes.ChangeRefused: BAD_REQUEST,
    changes.ChangesNotTaken: Refusal(501, 50100),
    changes.SourceUnavailable: SERVER_BUSY,
    access.PoliciesUnreadable: INTERNAL_ERROR,
    access.TokenRefused: UNAUTHORIZED,
    access.MalformedToken: Refusal(401, 40105),
    access.InvalidSignature: Refusal(401, 40103),
    access.InvalidAudience: Refusal(401, 40104),
    access.ExpiredToken: UNAUTHORIZED,
    access.Unauthorized: UNAUTHORIZED,
    refusals.MissingToken: Refusal(401, 40102),
    refusals.InvalidRequest: BAD_REQUEST,
    refusals.BodyTooLarge: TOO_LARGE,
    refusals.BodyTooSlow: Refusal(408, 40800),
    refusals.NotSupported: Refusal(501, 50100),
    refusals.EntityGone: GONE,
    refusals.TooManyRequests: SERVER_BUSY,
}

_ADDRESS: Final = re.compile(r"^broker \S+: | at [\w.-]+:\d+")
"""Where a broker is, is not a client's business."""
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""XML 1.0 §2.2: characters that no document has, however they are written."""


def told(error: BaseException) -> Refusal:
    """What a client is told of an error; one that is not of the domain is a defect, and its words stay here."""
    if isinstance(error, web.HTTPException):  # aiohttp's own: there is no such route, say
        return Refusal(error.status, error.status * 100, f"{error.reason}.")
    if not isinstance(error, PartitionedQueueError):
        return INTERNAL_ERROR
    found = next((REFUSALS[kind] for kind in type(error).__mro__ if kind in REFUSALS), INTERNAL_ERROR)
    return found if found.words else found._replace(words=_ADDRESS.sub("", str(error)))


def answer_to(request: web.BaseRequest, error: BaseException) -> web.Response:
    """The answer to a request that failed; a defect is logged under the id that the client is told."""
    refusal = told(error)
    tracking = uuid.uuid4()
    if refusal.status == INTERNAL_ERROR.status:
        _log.error("%s %s failed; TrackingId:%s", request.method, request.path, tracking, exc_info=error)
    response = answer(request, refusal, tracking)
    if isinstance(error, web.HTTPMethodNotAllowed):
        response.headers["Allow"] = error.headers["Allow"]
    return response


def answer(request: web.BaseRequest, refusal: Refusal, tracking: uuid.UUID | None = None) -> web.Response:
    """A refusal as Azure writes it."""
    system = f"{request.headers.get('Host', '')}:{request.path}"
    moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
    detail = (
        f"SubCode={refusal.sub_code}. {refusal.words} "
        f"TrackingId:{tracking or uuid.uuid4()}, SystemTracker:{system}, Timestamp:{moment}"
    )
    body = f"<Error><Code>{refusal.status}</Code><Detail>{escape(_NO_XML.sub('?', detail))}</Detail></Error>"
    response = web.Response(status=refusal.status, text=body, content_type="application/xml")
    if refusal.retry_s:
        response.headers["Retry-After"] = str(refusal.retry_s)
    if refusal.status == UNAUTHORIZED.status:
        response.headers["WWW-Authenticate"] = "SharedAccessSignature"
    return response
