"""What NetworkPolicies mean, as nftables rules. Decides only; `enforcer` puts the rules in force.

The network plugins that enforce policies come as images from registries, which this cluster has no way to. As
elsewhere, a connection that was let through stays, and this machine, which stands for the nodes, may always connect.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.cluster.addresses import Slot

Object = Mapping[str, Any]
TABLE: Final = "inet network_policies"
_DIRECTIONS: Final = {"Ingress": ("ingress", "from", "saddr"), "Egress": ("egress", "to", "daddr")}


@dataclass(frozen=True, slots=True)
class World:
    """What the API server says there is. Pods are those with an address among the slot's pods."""

    pods: tuple[Object, ...]
    labels_of_namespaces: Mapping[str, Mapping[str, str]]
    policies: tuple[Object, ...]


def ruleset(world: World, slot: Slot) -> str:
    """For `nft -f`: the whole table, in place of the one before. The same for every node."""
    chains = {way: list(_chains(world, way)) for way in _DIRECTIONS}
    jumps = [
        f"ip {'daddr' if way == 'Ingress' else 'saddr'} {address} jump {name}"
        for way in _DIRECTIONS
        for name, address, _ in chains[way]
    ]
    start = ["ct state established,related accept", f"ip saddr {slot.host} accept", *jumps]
    lines = [f"table {TABLE} {{}}", f"delete table {TABLE}", f"table {TABLE} {{"]
    for way in _DIRECTIONS:
        for name, _, rules in chains[way]:
            lines.append(_chain(name, [*rules, "drop"]))
    # A pod reaches an API server on its own node by the hook `input`.
    for hook in ("forward", "input"):
        lines.append(_chain(hook, [f"type filter hook {hook} priority filter; policy accept;", *start]))
    return "\n".join([*lines, "}", ""])


def _chain(name: str, rules: list[str]) -> str:
    return "\n".join([f"  chain {name} {{", *(f"    {rule}" for rule in rules), "  }"])


def _chains(world: World, way: str) -> Iterator[tuple[str, str, list[str]]]:
    """For each pod that some policy isolates in this direction: its chain's name, its address, what may pass."""
    rules_key, peers_key, field = _DIRECTIONS[way]
    for pod in world.pods:
        isolating = [policy for policy in world.policies if _applies(policy, pod, way)]
        if not isolating:
            continue
        address = pod["status"]["podIP"]
        rules = []
        for policy in isolating:
            for rule in policy["spec"].get(rules_key) or []:
                peers = _addresses(world, policy, rule.get(peers_key) or [], field)
                for ports in _ports(world, rule.get("ports") or [], pod if way == "Ingress" else None):
                    rules += [" ".join(part for part in (peer, ports, "return") if part) for peer in peers]
        yield f"{way.lower()}-{address.replace('.', '-')}", address, rules


def _applies(policy: Object, pod: Object, way: str) -> bool:
    here = policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
    spec = policy["spec"]
    return here and way in spec["policyTypes"] and matches(spec.get("podSelector") or {}, _labels(pod))


def _addresses(world: World, policy: Object, peers: list[Object], field: str) -> list[str]:
    """One match a peer; an empty one, which matches everybody, where there are no peers."""
    if not peers:
        return [""]
    found = []
    for peer in peers:
        if block := peer.get("ipBlock"):
            if ":" in block["cidr"]:  # no pod here has an IPv6 address
                continue
            excepted = "".join(f" ip {field} != {each}" for each in block.get("except") or [])
            found.append(f"ip {field} {block['cidr']}{excepted}")
            continue
        addresses = sorted({pod["status"]["podIP"] for pod in world.pods if _is_peer(world, policy, peer, pod)})
        if addresses:
            found.append(f"ip {field} {{ {', '.join(addresses)} }}")
    return found


def _is_peer(world: World, policy: Object, peer: Object, pod: Object) -> bool:
    namespace = pod["metadata"]["namespace"]
    if (spaces := peer.get("namespaceSelector")) is None:
        fits = bool(namespace == policy["metadata"]["namespace"])
    else:
        fits = matches(spaces, world.labels_of_namespaces.get(namespace, {}))
    return fits and matches(peer.get("podSelector") or {}, _labels(pod))


def _ports(world: World, ports: list[Object], target: Object | None) -> Iterator[str]:
    """One match a port; a name is looked up in the pod that is connected to."""
    if not ports:
        yield ""
    for port in ports:
        protocol = port.get("protocol", "TCP").lower()
        number = port.get("port")
        if number is None:
            yield f"meta l4proto {protocol}"
        elif isinstance(number, str):
            targets = [target] if target else world.pods
            if named := sorted({each for pod in targets for each in _named(pod, number, protocol)}):
                yield f"{protocol} dport {{ {', '.join(map(str, named))} }}"
        else:
            yield f"{protocol} dport {number}" + (f"-{port['endPort']}" if "endPort" in port else "")


def _named(pod: Object, name: str, protocol: str) -> Iterable[int]:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or []:
            if port.get("name") == name and port.get("protocol", "TCP").lower() == protocol:
                yield port["containerPort"]


def _labels(pod: Object) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """A label selector; an empty one matches everything."""
    plain = all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items())
    return plain and all(_holds(each, labels) for each in selector.get("matchExpressions") or [])


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    values = expression.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[expression["operator"]]
