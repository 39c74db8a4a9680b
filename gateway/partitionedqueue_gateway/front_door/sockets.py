"""The ports that the gateway listens on."""

import errno
import socket
from dataclasses import dataclass
from typing import Final

from partitionedqueue_gateway import limits

_NO_IPV6: Final = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """One port. `tls_only`: who does not begin with TLS is turned away; otherwise the first byte tells.

    `variable` is what sets its port. `operations`: health, counts and metrics are answered there, without a login.
    """

    name: str
    variable: str
    port: int
    tls_only: bool = False
    operations: bool = False


def bound(host: str | None, port: int, *, shared: bool) -> socket.socket:
    """A socket on a port, not listening yet. `shared`: several processes have the port. Raises OSError.

    Without a host it is every address of the machine, of both families where the machine knows both.
    """
    if host is not None:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bound(family, kind, address, shared=shared)
    if socket.has_dualstack_ipv6():
        try:
            return _bound(socket.AF_INET6, socket.SOCK_STREAM, ("::", port), shared=shared)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return _bound(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", port), shared=shared)  # noqa: S104 -- asked for


def prepare(connection: socket.socket) -> None:
    """Have the kernel send at once what is written, and end a connection whose client has vanished.

    asyncio turns Nagle's algorithm off for sockets that it has accepted itself alone; with it an answer may wait 40 ms
    for the client's acknowledgement of the one before. What a vanished client is owed would be locked for nobody.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, limits.CLIENT_SILENT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, limits.CLIENT_PROBE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, limits.CLIENT_PROBES)
    gone_ms = 1000 * (limits.CLIENT_SILENT_S + limits.CLIENT_PROBE_S * limits.CLIENT_PROBES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, gone_ms)


def port_of(one: socket.socket) -> int:
    """The port that a socket has."""
    return int(one.getsockname()[1])


def _bound(family: int, kind: int, address: object, *, shared: bool) -> socket.socket:
    one = socket.socket(family, kind)
    try:
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6 and address[0] == "::":  # type: ignore[index]  # an address is a tuple here
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        one.bind(address)  # type: ignore[arg-type]  # of that family
    except BaseException:
        one.close()
        raise
    return one
