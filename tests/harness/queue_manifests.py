"""Specs that are refused or taken, changes that are or are not: the core and the API server take the same ones."""

from typing import Any, NamedTuple

from partitionedqueue.model.queue_spec import API_VERSION, KIND


class Refused(NamedTuple):
    """A spec that nobody takes. `words` are the core's, and the API server's too unless it has `its_own`."""

    spec: dict[str, Any]
    words: str
    its_own: str = ""


class Change(NamedTuple):
    """From one spec to another; no words: it is allowed."""

    before: dict[str, Any]
    after: dict[str, Any]
    words: str = ""


def manifest(name: str = "flights", **spec: Any) -> dict[str, Any]:
    """A queue's manifest."""
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


PARTITIONED = {"enablePartitioning": True}
_UNSUPPORTED, _AT_LEAST, _AT_MOST = "Unsupported value", "greater than or equal to", "less than or equal to"
_VOLUME = "a volume has at least 2Gi for each GB of its partition, since the partition's file is written anew"
_MEMORY = "limits.memory has at least 1280Mi for each GB of a partition, and 64Mi: it grows so large"
_LOCK = "write an ISO 8601 duration from PT5S to PT5M, such as PT1M"
_WINDOW = "write an ISO 8601 duration from PT20S to P7D, such as PT10M"
_LIFE = "write an ISO 8601 duration of at least PT1S, such as P14D"
_IDLE = "write an ISO 8601 duration of at least PT5M, such as P1D"
_ITSELF = "this is the queue itself; name another queue or topic"
_NAME = "write the name of a queue or topic of the same namespace"


def _memory(amount: str | int) -> dict[str, Any]:
    return {"resources": {"limits": {"memory": amount}}}


REFUSED = (
    Refused({"sizeGb": 1}, "unknown field spec.sizeGb", 'unknown field "spec.sizeGb"'),
    Refused(
        {"broker": {"tolerance": []}}, "unknown field spec.broker.tolerance", 'unknown field "spec.broker.tolerance"'
    ),
    Refused({**PARTITIONED, "sizeGB": 6}, "a partitioned queue has 1, 2, 3, 4, 5"),
    Refused({"sizeGB": 6}, "a queue without partitions has 1, 2, 3, 4, 5, 10, 20, 40, 80"),
    Refused({"sizeGB": 0}, "write a whole number from 1 to 80", _AT_LEAST),
    Refused({"sizeGB": 81}, "write a whole number from 1 to 80", _AT_MOST),
    Refused({"sizeGB": "1"}, "write a whole number from 1 to 80", "must be of type integer"),
    Refused({"sizeGB": True}, "write a whole number from 1 to 80", "must be of type int"),
    Refused({"enablePartitioning": "yes"}, "write true or false", "must be of type boolean"),
    Refused({"partitionLayout": "Eight"}, "it is one of SixteenPerGB, Sixteen", _UNSUPPORTED),
    Refused({"status": "active"}, "it is one of Active, Disabled", _UNSUPPORTED),
    Refused({"durability": "Sometimes"}, "it is one of Always, EverySecond, None", _UNSUPPORTED),
    Refused({"deletionPolicy": "Orphan"}, "it is one of Retain, DeleteIfEmpty, Delete", _UNSUPPORTED),
    Refused({"maxDeliveryCount": 0}, "write a whole number from 1 to 2000", _AT_LEAST),
    Refused({"maxDeliveryCount": 2001}, "write a whole number from 1 to 2000", _AT_MOST),
    Refused({"lockDuration": 60}, _LOCK, "must be of type string"),
    *(
        Refused({field: text}, words)
        for field, words, texts in (
            ("lockDuration", _LOCK, ("PT4.999S", "PT5M1S", "PT300.001S", "P1D", "P1M", "1m", "", "P", "PT", "PT1M ")),
            (
                "duplicateDetectionHistoryTimeWindow",
                _WINDOW,
                ("PT19S", "P8D", "P7DT1S", "PT168H1S", "P99999999D", "P1W"),
            ),
            ("defaultMessageTimeToLive", _LIFE, ("PT0.9S", "P0D", "P1Y", "P1DT", "P1234567890123456789D", "-P1D")),
            ("autoDeleteOnIdle", _IDLE, ("PT4M59S", "PT299.999S", "P0D", "pt5m")),
        )
        for text in texts
    ),
    Refused({"userMetadata": "x" * 1025}, "must be text of at most 1,024 characters", "Too long"),
    Refused({"forwardTo": "Orders"}, _NAME),
    Refused({"forwardTo": "orders/one"}, _NAME),
    Refused({"forwardTo": "2nd"}, _NAME),
    Refused({"forwardTo": "x" * 46}, _NAME, "Too long"),
    Refused({"forwardDeadLetteredMessagesTo": "x."}, _NAME),
    Refused({"requiresSession": True, "forwardTo": "a"}, "cannot be set where spec.requiresSession is true"),
    Refused({"forwardTo": "flights"}, _ITSELF),
    Refused({"forwardDeadLetteredMessagesTo": "flights"}, _ITSELF),
    Refused({"storage": {"size": "much"}}, "write an amount such as 4Gi"),
    Refused({"storage": {"size": 4}}, "write an amount such as 4Gi", "must be of type string"),
    Refused({"storage": {"size": "2047Mi"}}, _VOLUME),
    Refused({**PARTITIONED, "sizeGB": 5, "partitionLayout": "Sixteen", "storage": {"size": "9Gi"}}, _VOLUME),
    Refused({"sizeGB": 80, "storage": {"size": "159Gi"}}, _VOLUME),
    Refused({"broker": _memory("1343Mi")}, _MEMORY),
    Refused({"broker": _memory(1409286143)}, _MEMORY),
    Refused({"sizeGB": 10, "broker": _memory("12G")}, _MEMORY),
    Refused({"broker": _memory("lots")}, "write an amount such as 500m, 2 or 4Gi"),
    Refused({"broker": {"resources": {"requests": {"cpu": "a lot"}}}}, "write an amount such as 500m, 2 or 4Gi"),
    Refused({"broker": {"imagePullPolicy": "always"}}, "it is one of Always, IfNotPresent, Never", _UNSUPPORTED),
    Refused({"broker": {"nodeSelector": {"disk": "x" * 64}}}, "must be text of at most 63 characters", "Too long"),
    Refused({"broker": {"tolerations": [{}] * 33}}, "must be a list of at most 32 items", "Too many"),
    Refused(
        {"broker": {"podLabels": {"app.kubernetes.io/name": "mine"}}},
        "messaging.partitionedqueue.io/ and app.kubernetes.io/ are for the operator to set; choose another name",
    ),
    Refused(
        {"broker": {"podAnnotations": {"messaging.partitionedqueue.io/applied": "x"}}},
        "messaging.partitionedqueue.io/ is for the operator to set; choose another name",
    ),
)

TAKEN: tuple[dict[str, Any], ...] = (
    {},
    {**PARTITIONED, "sizeGB": 5, "partitionLayout": "Sixteen", "storage": {"size": "10Gi"}},
    {"sizeGB": 80},
    *({"lockDuration": text} for text in ("PT5S", "PT5M", "PT300S", "PT4M60S", "P0DT5.0000000S", "PT0H1M")),
    *({"duplicateDetectionHistoryTimeWindow": text} for text in ("PT20S", "P7D", "P6DT24H", "PT168H", "PT604800.0S")),
    *(
        {"defaultMessageTimeToLive": text}
        for text in ("PT1S", "P10675199DT2H48M5.4775807S", "P123456789012345678D", "PT999999H")
    ),
    *({"autoDeleteOnIdle": text} for text in ("PT5M", "PT300S", "P1D", "P10675199DT2H48M5.4775807S")),
    {"requiresSession": True, "forwardDeadLetteredMessagesTo": "letters"},
    {"userMetadata": "x" * 1024, "status": "SendDisabled", "durability": "None", "deletionPolicy": "Retain"},
    {"broker": _memory("1344Mi")},
    {"broker": _memory(1409286144), "storage": {"size": "2Gi", "storageClassName": ""}},
    {"broker": {"resources": {"requests": {"cpu": 1, "memory": "1e9"}, "limits": {"cpu": "1500m"}}}},
)

_KEYS = "cannot be changed: keys map onto the number of partitions. Make another queue"
_VOLUMES = "the volumes of a queue cannot be changed"
_NONE = "None cannot be chosen or left later"
_SESSIONS = {"requiresSession": True}
_DETECTING = {"requiresDuplicateDetection": True}

CHANGES = (
    Change({}, PARTITIONED, "whether a queue is partitioned cannot be changed"),
    Change(PARTITIONED, {}, "whether a queue is partitioned cannot be changed"),
    Change({}, {"enablePartitioning": False, "partitionLayout": "SixteenPerGB", "sizeGB": 1}),
    Change({"enablePartitioning": False, "sizeGB": 1}, {}),
    Change(PARTITIONED, {**PARTITIONED, "partitionLayout": "Sixteen"}, f"the layout of a queue's partitions {_KEYS}"),
    Change({**PARTITIONED, "sizeGB": 2}, {**PARTITIONED, "sizeGB": 3}, f"sizeGB of a partitioned queue {_KEYS}"),
    Change({**PARTITIONED, "sizeGB": 2}, PARTITIONED, f"sizeGB of a partitioned queue {_KEYS}"),
    Change({}, _SESSIONS, "whether a queue has sessions cannot be changed"),
    Change(_SESSIONS, {}, "whether a queue has sessions cannot be changed"),
    Change({}, _DETECTING, "whether a queue detects duplicates cannot be changed"),
    Change(_DETECTING, {}, "whether a queue detects duplicates cannot be changed"),
    Change({"sizeGB": 2}, {"sizeGB": 1, "storage": {"size": "8Gi"}}, "sizeGB cannot become less"),
    Change({"sizeGB": 1}, {"sizeGB": 2}, _VOLUMES),
    Change({"sizeGB": 1}, {"sizeGB": 2, "storage": {"size": "4Gi"}}),
    Change({"storage": {"size": "20Gi"}}, {"sizeGB": 10, "storage": {"size": "20Gi"}}),
    Change({}, {"storage": {"size": "5Gi"}}, _VOLUMES),
    Change({}, {"storage": {"size": "4096Mi"}}),
    Change({"storage": {"size": "4Gi"}}, {}),
    Change({}, {"storage": {"storageClassName": "fast"}}, _VOLUMES),
    Change({"storage": {"storageClassName": "fast"}}, {"storage": {"storageClassName": "slow"}}, _VOLUMES),
    Change({"storage": {"storageClassName": "fast"}}, {"storage": {"storageClassName": "fast", "size": "4Gi"}}),
    Change({"durability": "Always"}, {"durability": "None"}, _NONE),
    Change({"durability": "None"}, {}, _NONE),
    Change({"durability": "Always"}, {"durability": "EverySecond"}),
    *(
        Change({}, change)
        for change in (
            {"lockDuration": "PT30S"},
            {"maxDeliveryCount": 1},
            {"defaultMessageTimeToLive": "P1D"},
            {"deadLetteringOnMessageExpiration": True},
            {"duplicateDetectionHistoryTimeWindow": "PT30S"},
            {"autoDeleteOnIdle": "P1D"},
            {"forwardTo": "others"},
            {"forwardDeadLetteredMessagesTo": "others"},
            {"status": "Disabled"},
            {"userMetadata": "mine"},
            {"deletionPolicy": "Delete"},
            {"broker": {"image": "elsewhere/broker:1", "podLabels": {"team": "a"}}},
        )
    ),
)
