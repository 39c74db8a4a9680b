"""The description of the data plane, for programs: OpenAPI 3.1."""

from importlib import resources
from typing import Final

from aiohttp import web

PATH: Final = "/$openapi"
FILE: Final = "openapi.yaml"


class Description:
    """Says what it says to everybody: it is the same for every namespace, and nobody's secret."""

    def __init__(self) -> None:
        self._text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")

    def routes(self) -> list[web.RouteDef]:
        """What is answered here."""
        return [web.get(PATH, self.describe)]

    async def describe(self, _request: web.Request) -> web.Response:
        """All of it."""
        return web.Response(text=self._text, content_type="application/yaml")
