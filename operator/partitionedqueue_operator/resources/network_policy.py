"""The NetworkPolicy: only the gateway, the operator and pods that are labelled as clients reach the brokers."""

from typing import Any

from partitionedqueue.model.placement import BROKER_CLIENT_LABEL, BROKER_PORT
from partitionedqueue_operator.observed import COMPONENT
from partitionedqueue_operator.resources.subject import INSTANCE_LABEL, NAME_LABEL, Subject

_NAMESPACE_NAME = "kubernetes.io/metadata.name"  # Kubernetes gives it to every namespace


def broker_network_policy(subject: Subject) -> dict[str, Any]:
    """Brokers call nobody, so no way out is left open."""
    release = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: subject.settings.namespace}},
        "podSelector": {
            "matchLabels": {NAME_LABEL: "partitionedqueue", INSTANCE_LABEL: subject.settings.release},
            "matchExpressions": [{"key": COMPONENT, "operator": "In", "values": ["gateway", "operator"]}],
        },
    }
    clients = {"namespaceSelector": {}, "podSelector": {"matchLabels": {BROKER_CLIENT_LABEL: "true"}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": subject.metadata(),
        "spec": {
            "podSelector": {"matchLabels": subject.selector},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [release, clients], "ports": [{"port": BROKER_PORT, "protocol": "TCP"}]}],
        },
    }
