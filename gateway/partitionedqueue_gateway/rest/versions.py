"""`api-version`: which ones are known. All of them mean the same here; without one it is the newest."""

import re
from typing import Final

from aiohttp import web

from partitionedqueue_gateway.rest.refusals import InvalidRequest

PARAMETER: Final = "api-version"
OLDEST: Final = "2013-10"
_DATE: Final = re.compile(r"20[1-9][0-9]-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?")


def check(request: web.BaseRequest) -> None:
    """Raises InvalidRequest for what is no version, or an older one than the first with partitioned entities."""
    version = request.query.get(PARAMETER)
    if version is not None and not (_DATE.fullmatch(version) and version >= OLDEST):
        raise InvalidRequest(
            f"The specified api-version '{version}' is not known; it is a month, {OLDEST} or later, 2021-05 say."
        )
