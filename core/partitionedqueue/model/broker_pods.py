"""How a queue's broker pods are run and stored, where its owner says so.

The pods' own fields keep Kubernetes' names and shapes, since they are passed on to the pod template as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from partitionedqueue.model import limits
from partitionedqueue.model.manifest_fields import Choice, Field, Group, Listed, Named, Passed, Quantity, Text


class ImagePullPolicy(StrEnum):
    """When a node asks the registry for an image."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a broker pod asks for and may use, as quantities by resource."""

    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPods:
    """What a queue's owner wants of its broker pods; None or empty leaves it to the operator."""

    image: str | None = None
    image_pull_policy: ImagePullPolicy | None = None
    image_pull_secrets: tuple[Mapping[str, Any], ...] = ()
    resources: Resources = field(default_factory=Resources)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    affinity: Mapping[str, Any] | None = None
    topology_spread_constraints: tuple[Mapping[str, Any], ...] = ()
    priority_class_name: str | None = None
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The volume of each partition; None leaves the class to the cluster and the size to the partition's."""

    storage_class_name: str | None = None
    size: str | None = None


_QUANTITIES: Final = Named(limits.RESOURCES_MAX, Quantity())
_LABEL: Final = Text(limits.LABEL_CHARACTERS_MAX)
_ANNOTATION: Final = Text(limits.ANNOTATION_CHARACTERS_MAX)
_OURS: Final = "messaging.partitionedqueue.io/"
_NAME: Final = Text(limits.OBJECT_NAME_CHARACTERS_MAX)
_RESOURCES: Final[Mapping[str, tuple[str, Field]]] = {
    "requests": ("requests", _QUANTITIES),
    "limits": ("limits", _QUANTITIES),
}
_BROKER: Final[Mapping[str, tuple[str, Field]]] = {
    "image": ("image", Text(limits.IMAGE_CHARACTERS_MAX)),
    "imagePullPolicy": ("image_pull_policy", Choice(ImagePullPolicy)),
    "imagePullSecrets": ("image_pull_secrets", Listed(limits.IMAGE_PULL_SECRETS_MAX, Passed())),
    "resources": ("resources", Group(Resources, _RESOURCES)),
    "nodeSelector": ("node_selector", Named(limits.POD_LABELS_MAX, _LABEL)),
    "tolerations": ("tolerations", Listed(limits.TOLERATIONS_MAX, Passed())),
    "affinity": ("affinity", Passed()),
    "topologySpreadConstraints": (
        "topology_spread_constraints",
        Listed(limits.TOPOLOGY_SPREAD_CONSTRAINTS_MAX, Passed()),
    ),
    "priorityClassName": ("priority_class_name", _NAME),
    "podLabels": ("pod_labels", Named(limits.POD_LABELS_MAX, _LABEL, (_OURS, "app.kubernetes.io/"))),
    "podAnnotations": ("pod_annotations", Named(limits.POD_LABELS_MAX, _ANNOTATION, (_OURS,))),
}
_STORAGE: Final[Mapping[str, tuple[str, Field]]] = {
    "storageClassName": ("storage_class_name", _NAME),
    "size": ("size", Quantity(example="4Gi", or_whole=False)),
}

BROKER: Final = Group(BrokerPods, _BROKER)
STORAGE: Final = Group(Storage, _STORAGE)
