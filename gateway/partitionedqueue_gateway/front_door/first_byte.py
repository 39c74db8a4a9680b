"""What a client speaks, told by the first byte that it sends: none of the protocols begins like another."""

from enum import Enum, auto
from typing import Final


class Talk(Enum):
    """What is spoken at the door."""

    TLS = auto()
    AMQP = auto()
    HTTP = auto()


_TALKS: Final = {
    0x16: Talk.TLS,  # RFC 8446 §5.1: a record of type handshake
    ord("A"): Talk.AMQP,  # AMQP 1.0 §2.2: the header `AMQP`; no method of HTTP's own begins with an A
    **dict.fromkeys(b"CDGHOPT", Talk.HTTP),  # RFC 9110 §9: CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE
}


def talk_of(first: bytes) -> Talk | None:
    """What begins with this; None: nothing that is spoken here."""
    return _TALKS.get(first[0]) if first else None
