"""The kinds of objects that the operator has to do with, and where the API server has them."""

from dataclasses import dataclass
from typing import Final

from partitionedqueue.model.queue_spec import GROUP, KIND, PLURAL, VERSION


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of namespaced object."""

    name: str
    group: str
    version: str
    plural: str

    @property
    def api_version(self) -> str:
        """As manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """The path of an object, of a namespace's objects, or of all; `part` is a subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return root + within + "/" + "/".join(word for word in (self.plural, name, part) if word)


QUEUES: Final = Kind(KIND, GROUP, VERSION, PLURAL)
PODS: Final = Kind("Pod", "", "v1", "pods")
CLAIMS: Final = Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims")
EVENTS: Final = Kind("Event", "", "v1", "events")
SECRETS: Final = Kind("Secret", "", "v1", "secrets")
LEASES: Final = Kind("Lease", "coordination.k8s.io", "v1", "leases")
CHILDREN: Final = (
    SECRETS,
    Kind("ConfigMap", "", "v1", "configmaps"),
    Kind("Service", "", "v1", "services"),
    Kind("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets"),
    Kind("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies"),
    Kind("StatefulSet", "apps", "v1", "statefulsets"),
)
"""What the operator makes of a queue."""
WATCHED: Final = (QUEUES, *CHILDREN, PODS, CLAIMS)
BY_NAME: Final = {kind.name: kind for kind in WATCHED}
