"""A question to a DNS server over UDP: the host's own resolver knows nothing of the cluster's names."""

import random
import socket
import struct
from typing import Final

from harness.cluster.machine import NoClusterHere

_TRIES: Final = 5
_WAIT_SECONDS: Final = 2.0
_SUFFIXES: Final = {"svc": ".cluster.local", "local": ""}


def resolve(server: str, name: str) -> list[str]:
    """The A records of `name`, in which `.cluster.local` may be left out. Raises NoClusterHere when nobody answers."""
    full = name.rstrip(".") + _SUFFIXES.get(name.rstrip(".").rpartition(".")[2], ".svc.cluster.local")
    labels = b"".join(bytes([len(label)]) + label.encode() for label in full.split("."))
    number = random.randrange(1 << 16)
    # RFC 1035 §4.1: recursion desired, one question, type A, class IN
    question = struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(_WAIT_SECONDS)
        asking.connect((server, 53))
        for _ in range(_TRIES):
            try:
                asking.send(question)
                reply = asking.recv(4096)
            except OSError:
                continue
            if reply[:2] == question[:2]:
                return _addresses(reply, len(question))
    raise NoClusterHere(f"the cluster's DNS at {server} does not answer")


def _addresses(reply: bytes, position: int) -> list[str]:
    found = []
    (answers,) = struct.unpack_from(">H", reply, 6)
    for _ in range(answers):
        position = _after_name(reply, position)
        kind, _, _, length = struct.unpack_from(">2HIH", reply, position)
        position += 10
        if kind == 1:
            found.append(socket.inet_ntoa(reply[position : position + length]))
        position += length
    return found


def _after_name(reply: bytes, position: int) -> int:
    while length := reply[position]:
        if length >= 0xC0:  # a pointer, two bytes, ends a name
            return position + 2
        position += length + 1
    return position + 1
