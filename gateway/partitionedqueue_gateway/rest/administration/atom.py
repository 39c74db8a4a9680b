"""ATOM documents: what clients send is taken apart within bounds, what they get is written as their parsers need it.

JavaScript's parser goes by literal names: no prefix on an element, but `i:` on types and `d2p1:` on counts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError
from xml.sax.saxutils import escape, quoteattr

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from partitionedqueue_gateway.rest.refusals import InvalidRequest

ATOM: Final = "http://www.w3.org/2005/Atom"
SERVICE_BUS: Final = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
COUNTS: Final = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
MISSING_TITLE: Final = "Publicly Listed Services"
"""Of the empty feed that stands for an entity that there is not: Go's client looks for these words."""

Value: TypeAlias = "str | Sequence[tuple[str, str]]"
"""Text, or the counts within an element."""
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""XML 1.0 §2.2: characters that no document has, however they are written."""


@dataclass(frozen=True, slots=True)
class Description:
    """What an entry says of something: `kind` is the element's name, QueueDescription say."""

    kind: str
    values: Mapping[str, str]
    """Text by name; an element with others inside it has ""."""
    nested: frozenset[str]
    """Those that have others inside."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing: `path` behind the host, as clients call it, and what is said of it, in order."""

    path: str
    title: str
    kind: str
    created: str
    updated: str
    values: Sequence[tuple[str, Value]]


def read(body: bytes) -> Description:
    """What a client has sent: an entry whose content is one description. Raises InvalidRequest."""
    try:
        # No DTD: neither entities that grow nor such as are fetched.
        entry = fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise InvalidRequest(f"The body is no XML that is taken here: {_words(error)}.") from None
    if entry.tag != f"{{{ATOM}}}entry":
        raise InvalidRequest(f"The body is no entry of {ATOM}.")
    contents = entry.findall(f"{{{ATOM}}}content")
    if len(contents) != 1 or len(contents[0]) != 1:
        raise InvalidRequest("The entry has no content with one description in it.")
    return _description(contents[0][0])


def _words(error: Exception) -> str:
    return "a document type or an entity is declared" if isinstance(error, DefusedXmlException) else str(error)


def _description(element: Element) -> Description:
    prefix = f"{{{SERVICE_BUS}}}"
    if not element.tag.startswith(prefix):
        raise InvalidRequest(f"The description is not in the namespace {SERVICE_BUS}.")
    values: dict[str, str] = {}
    nested: set[str] = set()
    for one in element:
        name = one.tag.removeprefix(prefix)
        if one.tag == name:
            raise InvalidRequest(f"{one.tag} is not in the namespace {SERVICE_BUS}.")
        if name in values:
            raise InvalidRequest(f"{name} is there twice.")
        values[name] = (one.text or "").strip() if name != "UserMetadata" else one.text or ""
        if len(one):
            nested.add(name)
    return Description(element.tag.removeprefix(prefix), values, frozenset(nested))


def entry(one: Entry, host: str) -> str:
    """A document with one entry."""
    return f'<?xml version="1.0" encoding="utf-8"?>{_entry(one, host)}'


def feed(title: str, address: str, updated: str, entries: Iterable[Entry], host: str, *, after: str = "") -> str:
    """A document with several; `address` is where it was asked for, `after` where the next page is."""
    # Python's client takes the second of two links for the next page's.
    links = [_link("self", address), *([_link("next", after)] if after else [])]
    return (
        f'<?xml version="1.0" encoding="utf-8"?><feed xmlns="{ATOM}"><title type="text">{text(title)}</title>'
        f"<id>{text(address)}</id><updated>{updated}</updated>{''.join(links)}"
        f"{''.join(_entry(one, host) for one in entries)}</feed>"
    )


def _entry(one: Entry, host: str) -> str:
    address = f"https://{host}/{quote(one.path)}"  # JavaScript's client takes the name from it
    values = "".join(_element(name, value) for name, value in one.values)
    return (
        f'<entry xmlns="{ATOM}"><id>{text(address)}</id><title type="text">{text(one.title)}</title>'
        f"<published>{one.created}</published><updated>{one.updated}</updated>"
        f"<author><name>{text(host)}</name></author>{_link('self', address)}"
        f'<content type="application/xml"><{one.kind} xmlns="{SERVICE_BUS}" xmlns:i="{INSTANCE}">'
        f"{values}</{one.kind}></content></entry>"
    )


def _element(name: str, value: Value) -> str:
    if isinstance(value, str):
        return f"<{name}>{text(value)}</{name}>" if value else f"<{name}/>"
    counts = "".join(f"<d2p1:{count}>{text(number)}</d2p1:{count}>" for count, number in value)
    return f'<{name} xmlns:d2p1="{COUNTS}">{counts}</{name}>'


def _link(relation: str, address: str) -> str:
    return f'<link rel="{relation}" href={quoteattr(_NO_XML.sub("?", address))}/>'


def text(words: str) -> str:
    """Words as they stand in a document."""
    return escape(_NO_XML.sub("?", words))
