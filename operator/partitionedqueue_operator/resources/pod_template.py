"""The broker's pod, as a template."""

from typing import Any, Final

from partitionedqueue.model.placement import BROKER_PORT, maxmemory_bytes
from partitionedqueue_operator.observed import BROKER_CONTAINER, DURABILITY, MAXMEMORY, RESTARTED_AT
from partitionedqueue_operator.resources.config_map import start_seconds_max
from partitionedqueue_operator.resources.secret import USERS_FILE
from partitionedqueue_operator.resources.subject import Subject

_FOLDER: Final = "/opt/partitionedqueue"
_SECRETS: Final = "/etc/partitionedqueue"
_UID: Final = 10001  # the broker image's user
_CPU_ASKED: Final = "50m"
_MEMORY_ASKED_MB: Final = 64  # an empty broker's; a full one's is its limit, and most partitions are mostly empty
_START_SECONDS_BESIDE: Final = 180  # start.sh gives up first, and says why
_MEMORY_BESIDE_MB: Final = 256  # for the process that rewrites the file: pages that are written to meanwhile


def broker_pod_template(subject: Subject) -> dict[str, Any]:
    """Everything Pod Security's `restricted` asks for; nothing but /data and /tmp can be written."""
    pods = subject.spec.broker
    annotations = {
        **pods.pod_annotations,
        # Brokers read these in the ConfigMap when they start: that they stand here too is what starts them anew.
        DURABILITY: subject.spec.durability.value,
        MAXMEMORY: str(maxmemory_bytes(subject.spec.partition_gb)),
    }
    if asked := subject.queue.annotations.get(RESTARTED_AT):
        annotations[RESTARTED_AT] = asked
    metadata: dict[str, Any] = {"labels": {**pods.pod_labels, **subject.labels}, "annotations": annotations}
    scheduling: dict[str, Any] = {
        "imagePullSecrets": [dict(secret) for secret in pods.image_pull_secrets],
        "nodeSelector": dict(pods.node_selector),
        "tolerations": [dict(toleration) for toleration in pods.tolerations],
        "affinity": dict(pods.affinity or {}),
        "priorityClassName": pods.priority_class_name,
    }
    return {
        "metadata": metadata,
        "spec": {
            **{name: value for name, value in scheduling.items() if value},
            "topologySpreadConstraints": [dict(c) for c in pods.topology_spread_constraints] or _spread(subject),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 30,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _UID,
                "runAsGroup": _UID,
                "fsGroup": _UID,
                # Otherwise each start changes the owner of every file there is.
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(subject)],
            "volumes": [
                {
                    "name": "users",
                    "secret": {
                        "secretName": subject.name,
                        "items": [{"key": USERS_FILE, "path": USERS_FILE}],
                        "defaultMode": 0o440,
                    },
                },
                {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
            ],
        },
    }


def _spread(subject: Subject) -> list[dict[str, Any]]:
    """Over zones and nodes as evenly as can be, without keeping a pod from running."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": subject.selector},
        }
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    ]


def _container(subject: Subject) -> dict[str, Any]:
    pods, settings = subject.spec.broker, subject.settings
    policy = pods.image_pull_policy
    start_s = start_seconds_max(subject.spec.partition_gb) + _START_SECONDS_BESIDE
    return {
        "name": BROKER_CONTAINER,
        "image": pods.image or settings.broker_image,
        "imagePullPolicy": policy.value if policy else settings.broker_image_pull_policy,
        "args": ["--aclfile", f"{_SECRETS}/{USERS_FILE}"],
        "envFrom": [{"configMapRef": {"name": subject.name}}],
        "env": [
            {
                "name": "REDISCLI_AUTH",
                "valueFrom": {"secretKeyRef": {"name": subject.name, "key": "default-password"}},
            }
        ],
        "ports": [{"name": "redis", "containerPort": BROKER_PORT, "protocol": "TCP"}],
        "resources": _resources(subject),
        # The port opens when the files are read and the library is loaded; reading a full partition takes its time.
        "startupProbe": {"tcpSocket": {"port": "redis"}, "periodSeconds": 1, "failureThreshold": start_s},
        # A process in the container costs a node some 50 ms of processor time, and a node may hold a hundred brokers:
        # so seldom, since the first look comes at once and the operator asks each broker itself.
        "livenessProbe": _probe("live.sh", period_s=60, timeout_s=10, failures=3),
        "readinessProbe": _probe("ready.sh", period_s=20, timeout_s=5, failures=2),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "users", "mountPath": _SECRETS, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 -- the pod's own
        ],
    }


def _probe(script: str, *, period_s: int, timeout_s: int, failures: int) -> dict[str, Any]:
    return {
        "exec": {"command": [f"{_FOLDER}/{script}"]},
        "periodSeconds": period_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": failures,
    }


def _resources(subject: Subject) -> dict[str, Any]:
    """No limit on the processor: a throttled broker keeps locks waiting, and its share is what it asks for."""
    asked, most = subject.spec.broker.resources.requests, subject.spec.broker.resources.limits
    memory = maxmemory_bytes(subject.spec.partition_gb) // 2**20 + _MEMORY_BESIDE_MB
    return {
        "requests": {"cpu": _CPU_ASKED, "memory": f"{_MEMORY_ASKED_MB}Mi", **asked},
        "limits": {"memory": f"{memory}Mi", **most},
    }
