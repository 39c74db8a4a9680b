"""Entries as administration clients send them, and a client of the administration that hides nothing of HTTP."""

import http.client
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

ATOM = "{http://www.w3.org/2005/Atom}"
SERVICE_BUS = "{http://schemas.microsoft.com/netservices/2010/10/servicebus/connect}"
COUNTS = "{http://schemas.microsoft.com/netservices/2011/06/servicebus}"


def entry(kind: str = "QueueDescription", *, values: Mapping[str, object] | None = None, inside: str = "") -> str:
    """With these properties, text each; `inside` stands before them as it is."""
    shown = "".join(f"<{name}>{value}</{name}>" for name, value in (values or {}).items())
    return (
        f'<entry xmlns="{ATOM[1:-1]}"><content type="application/xml">'
        f'<{kind} xmlns="{SERVICE_BUS[1:-1]}">{inside}{shown}</{kind}></content></entry>'
    )


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def root(self) -> Element:
        found: Element = fromstring(self.body)
        return found

    @property
    def titles(self) -> list[str]:
        """Of a feed's entries."""
        return [one.findtext(f"{ATOM}title") or "" for one in self.root.iter(f"{ATOM}entry")]

    @property
    def values(self) -> dict[str, str]:
        """What an entry says of its queue; counts too, by their names."""
        description = self.root.find(f".//{SERVICE_BUS}QueueDescription")
        assert description is not None, self.body
        return {one.tag.rpartition("}")[2]: one.text or "" for one in description.iter()}


def ask(
    port: int, method: str, path: str, body: "str | bytes | None" = None, *, token: str | None = None, **more: str
) -> Answer:
    """One request on a connection of its own. `if_match` is If-Match."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    if token is not None:
        headers["Authorization"] = token
    try:
        connection.request(method, path, body=body.encode() if isinstance(body, str) else body, headers=headers)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.headers), answer.read().decode())
    finally:
        connection.close()
