"""Carries connections from one address to another, as a load balancer does: one SDK's client dials port 443 only."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PIECE = 1 << 16


@contextmanager
def relayed(host: str, port: int, *, to: tuple[str, int]) -> Iterator[None]:
    """For a `with` block. Raises PermissionError where this port is root's."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
        threading.Thread(target=_accept, args=(listening, to), daemon=True).start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts


def _accept(listening: socket.socket, to: tuple[str, int]) -> None:
    while True:
        try:
            near, _ = listening.accept()
        except OSError:  # it is over
            return
        try:
            far = socket.create_connection(to, timeout=20)
        except OSError:
            near.close()
            continue
        far.settimeout(None)
        threading.Thread(target=_join, args=(near, far), daemon=True).start()


def _join(near: socket.socket, far: socket.socket) -> None:
    with near, far:
        back = threading.Thread(target=_carry, args=(far, near), daemon=True)
        back.start()
        _carry(near, far)
        back.join()


def _carry(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := one.recv(_PIECE):
            other.sendall(piece)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)
