"""Which addresses, links and names a cluster has: arithmetic on the number of its slot, so that two never meet.

Only networks that are set aside for documentation and tests are used (RFC 5737: TEST-NET-2; RFC 2544: 198.18.0.0/15):
a mistake in a test can reach nothing real.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Final

SLOTS: Final = 4
_MACHINES: Final = IPv4Network("198.51.100.0/24")  # a /28 a slot: the host, and up to 13 nodes
_WORKLOADS: Final = IPv4Network("198.18.0.0/16")  # a /19 a slot: half of it pods, half of it services
# A /18 a slot: pods that only the API server believes in. kwok takes another address each time that it tries to write a
# pod's, and goes on past the end of its network: there is room for 8,000 pods twice.
_SIMULATED: Final = IPv4Network("198.19.0.0/16")
NODES_MAX: Final = 13


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """One node: where it is, and which addresses its pods get (250 pods fit)."""

    name: str
    address: IPv4Address
    pods: IPv4Network
    link: str
    netns: str
    cgroup: str


@dataclass(frozen=True, slots=True)
class Slot:
    """Everything that must be this cluster's alone."""

    number: int

    @property
    def name(self) -> str:
        return f"pqc{self.number}"

    @property
    def bridge(self) -> str:
        """The link on the host that the nodes hang on."""
        return self.name

    @property
    def machines(self) -> IPv4Network:
        return list(_MACHINES.subnets(new_prefix=28))[self.number]

    @property
    def host(self) -> IPv4Address:
        """The host's own address among the nodes; an operator that runs outside is seen under it."""
        return self.machines[1]

    @property
    def pods(self) -> IPv4Network:
        return self._halves()[0]

    @property
    def services(self) -> IPv4Network:
        return self._halves()[1]

    @property
    def simulated(self) -> IPv4Network:
        """What pods on simulated nodes say that they have; nobody is there, and whoever dials is told so at once."""
        return list(_SIMULATED.subnets(new_prefix=18))[self.number]

    @property
    def kubernetes(self) -> IPv4Address:
        """The service that pods reach the API server by."""
        return self.services[1]

    @property
    def dns(self) -> IPv4Address:
        return self.services[10]

    @property
    def api(self) -> str:
        """The API server, for everybody but pods."""
        return f"https://{self.node(1).address}:6443"

    @property
    def networks(self) -> tuple[IPv4Network, ...]:
        return (self.machines, self.pods, self.services, self.simulated)

    def node(self, number: int) -> NodeAddress:
        """Nodes count from 1; the first carries the control plane as well."""
        if not 1 <= number <= NODES_MAX:
            raise ValueError(f"a cluster has nodes 1 to {NODES_MAX}, not {number}")
        return NodeAddress(
            name=f"node-{number}",
            address=self.machines[number + 1],
            pods=list(self.pods.subnets(new_prefix=24))[number],
            link=f"{self.name}n{number}",
            netns=f"{self.name}-node-{number}",
            cgroup=f"{self.name}-node-{number}",
        )

    def nodes(self) -> list[NodeAddress]:
        """Every node that there could be: routes to all of them are laid once."""
        return [self.node(number) for number in range(1, NODES_MAX + 1)]

    def _halves(self) -> list[IPv4Network]:
        whole = list(_WORKLOADS.subnets(new_prefix=19))[self.number]
        return list(whole.subnets(prefixlen_diff=1))
