"""The cluster's own network on this machine: a bridge, and for each node a network namespace that hangs on it.

Nothing is forwarded to anywhere else: a node has no default route, and the host reaches pods and services by routes
that lead to the nodes.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from harness.cluster.addresses import NodeAddress, Slot

_KILL_SECONDS: Final = 120.0
_COMMAND_SECONDS: Final = 120.0  # moments, but for a machine that is in over its head


def create_network(slot: Slot) -> None:
    """The bridge, and the host's routes to every node that there could be."""
    _ip("link", "add", slot.bridge, "type", "bridge")
    _ip("address", "add", f"{slot.host}/{slot.machines.prefixlen}", "dev", slot.bridge)
    _ip("link", "set", slot.bridge, "up")
    for node in slot.nodes():
        _ip("route", "add", str(node.pods), "via", str(node.address), "dev", slot.bridge)
    # Any node's kube-proxy would do; the first is never lost.
    _ip("route", "add", str(slot.services), "via", str(slot.node(1).address), "dev", slot.bridge)
    _ip("route", "add", "unreachable", str(slot.simulated))


def remove_network(slot: Slot) -> None:
    """What create_network made, if it is there: a link takes its routes with it, one to nowhere has no link."""
    if _ip("-4", "route", "show", "type", "unreachable", "exact", str(slot.simulated)):
        _ip("route", "delete", "unreachable", str(slot.simulated))
    if Path(f"/sys/class/net/{slot.bridge}").exists():
        _ip("link", "delete", slot.bridge)


def attach(slot: Slot, node: NodeAddress) -> None:
    """The node's network namespace, on the bridge, with routes to the pods of all the others."""
    _ip("netns", "add", node.netns)
    _ip("link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", node.netns)
    _ip("link", "set", node.link, "master", slot.bridge, "up")
    inside = ("-n", node.netns)
    _ip(*inside, "link", "set", "lo", "up")
    _ip(*inside, "address", "add", f"{node.address}/{slot.machines.prefixlen}", "dev", "eth0")
    _ip(*inside, "link", "set", "eth0", "up")
    for other in slot.nodes():
        if other != node:
            _ip(*inside, "route", "add", str(other.pods), "via", str(other.address))
    # kube-proxy redirects what goes to a service, but only once the kernel knows some way for it.
    _ip(*inside, "route", "add", str(slot.services), "dev", "eth0")
    subprocess.run(
        ["nsenter", f"--net=/run/netns/{node.netns}", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"],
        check=True,
        timeout=_COMMAND_SECONDS,
    )


def detach(node: NodeAddress) -> None:
    """Kill whatever runs in the node, all at once, and take its network away: to others its plug has been pulled."""
    if Path(f"/run/netns/{node.netns}").exists():
        deadline = time.monotonic() + _KILL_SECONDS
        while pids := _ip("netns", "pids", node.netns).split():
            for pid in pids:
                _kill(int(pid))
            assert time.monotonic() < deadline, f"processes of {node.netns} cannot be killed: {pids}"
            time.sleep(0.05)
        _ip("netns", "delete", node.netns)
    if Path(f"/sys/class/net/{node.link}").exists():  # else it went with the other end
        with contextlib.suppress(AssertionError):  # it goes by itself at this moment
            _ip("link", "delete", node.link)


def in_use(slot: Slot) -> bool:
    """Whether this machine already routes any of the slot's networks somewhere."""
    routes = json.loads(_ip("-json", "-4", "route", "show", "table", "all") or "[]")
    taken = [IPv4Network(route["dst"], strict=False) for route in routes if route.get("dst") not in {None, "default"}]
    return any(network.overlaps(other) for network in slot.networks for other in taken if other.prefixlen)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False, timeout=_COMMAND_SECONDS)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout
