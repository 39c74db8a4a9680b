"""What Azure's clients say of a queue, as fields of a PartitionedQueue's spec.

An update says everything, as SDKs send it: what it leaves out and Azure knows goes back to its default. What Azure does
not know (durability, storage, …) stays as it is.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from partitionedqueue.model import durations, limits
from partitionedqueue.model.entity_name import ANNOTATION, object_name
from partitionedqueue.model.queue_spec import API_VERSION, FIELDS, KIND, QueueSpec
from partitionedqueue_gateway.entities import addresses
from partitionedqueue_gateway.entities.changes import ChangeRefused
from partitionedqueue_gateway.entities.queue import QueueName
from partitionedqueue_gateway.rest.administration.atom import Description
from partitionedqueue_gateway.rest.refusals import InvalidRequest

QUEUE: Final = "QueueDescription"
FOR_EVER: Final = "P10675199DT2H48M5.4775807S"
"""What Azure writes where nothing ends: .NET's TimeSpan.MaxValue."""
_FOR_EVER_MS: Final = 10_675_199 * 86_400_000
_MB_A_GB: Final = 1024
_DURATION: Final = re.compile(
    r"P(?:(\d{1,18})D)?(?:T(?:(\d{1,18})H)?(?:(\d{1,18})M)?(?:(\d{1,18})(?:\.(\d{1,18}))?S)?)?", re.ASCII
)


def _flag(name: str, words: str) -> bool:
    if words.lower() not in {"true", "false", "1", "0"}:
        raise InvalidRequest(f"{name} is {words!r}; write true or false")
    return words.lower() in {"true", "1"}


def _whole(name: str, words: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", words):
        raise InvalidRequest(f"{name} is {words!r}; write a whole number")
    return int(words)


def _duration(name: str, words: str) -> str | None:
    """As manifests have it: Java writes hours only, and .NET its longest time; None: for ever."""
    found = _DURATION.fullmatch(words)
    if found is None or not any(found.groups()):
        raise InvalidRequest(f"{name} is {words!r}; write an ISO 8601 duration such as PT1M")
    days, hours, minutes, seconds = (int(part or 0) for part in found.group(1, 2, 3, 4))
    length_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int(f"{found[5] or ''}000"[:3])
    return None if length_ms >= _FOR_EVER_MS else durations.text(length_ms)


def _plain(_name: str, words: str) -> str:
    return words


_MUTABLE: Final[Mapping[str, tuple[str, Callable[[str, str], Any]]]] = {
    "LockDuration": ("lockDuration", _duration),
    "DefaultMessageTimeToLive": ("defaultMessageTimeToLive", _duration),
    "DeadLetteringOnMessageExpiration": ("deadLetteringOnMessageExpiration", _flag),
    "DuplicateDetectionHistoryTimeWindow": ("duplicateDetectionHistoryTimeWindow", _duration),
    "MaxDeliveryCount": ("maxDeliveryCount", _whole),
    "AutoDeleteOnIdle": ("autoDeleteOnIdle", _duration),
    "Status": ("status", _plain),
    "UserMetadata": ("userMetadata", _plain),
}
_FIXED: Final = {
    "EnablePartitioning": "enablePartitioning",
    "RequiresSession": "requiresSession",
    "RequiresDuplicateDetection": "requiresDuplicateDetection",
}
_FORWARDS: Final = {
    "ForwardTo": "forwardTo",
    "ForwardDeadLetteredMessagesTo": "forwardDeadLetteredMessagesTo",
}
_ALWAYS: Final = {"IsAnonymousAccessible": "false", "EnableExpress": "false"}
"""What nobody can have otherwise, and would not want to believe that they had."""


def manifest(name: QueueName, title: str, given: Description) -> dict[str, Any]:
    """A new queue. Raises InvalidRequest, InvalidManifest and ChangeRefused, in Azure's names for what is wrong."""
    _refuse_what_there_is_not(given)
    spec = {key: value for key, value in _mutable(given).items() if value is not None}
    for word, key in _FIXED.items():
        if word in given.values:
            spec[key] = _flag(word, given.values[word])
    spec["sizeGB"] = _size_gb(given, partitioned=spec.get("enablePartitioning", False))
    for word in _FORWARDS:
        if given.values.get(word):
            _refuse_forwarding(word)
    metadata: dict[str, Any] = {"name": name.name, "namespace": name.namespace}
    if title != name.name:
        metadata["annotations"] = {ANNOTATION: title}
    made = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
    _refuse_its_size(QueueSpec.from_manifest(made, source=title), given)
    return made


def changes(queue: QueueSpec, given: Description) -> dict[str, Any]:
    """What a queue's spec is to say of all that may change; None: its default. Raises as `manifest` does.

    Of all, whether or not it is known as such: what this gateway knows may be older than what another one has written.
    """
    _refuse_what_there_is_not(given)
    for word, key in _FIXED.items():
        attribute = FIELDS[key][0]
        if word in given.values and _flag(word, given.values[word]) != getattr(queue, attribute):
            raise ChangeRefused(f"The value for the '{word}' property of an existing Queue cannot be changed.")
    wanted = _mutable(given)
    for word, key in _FORWARDS.items():
        now = getattr(queue, FIELDS[key][0])
        target = given.values.get(word)
        if target and object_name(addresses.parse(target).name) != now:
            _refuse_forwarding(word)
        wanted[key] = now if target else None
    if (size_gb := _size_of_changed(queue, given)) != queue.size_gb:
        wanted["sizeGB"] = size_gb
    _refuse_its_size(queue, given)
    return wanted


def _mutable(given: Description) -> dict[str, Any]:
    """Checked one by one, so that a refusal has Azure's name in it."""
    found: dict[str, Any] = {}
    for word, (key, read) in _MUTABLE.items():
        value = read(word, given.values[word]) if word in given.values else None
        if value is not None:
            FIELDS[key][1](word, value)
        found[key] = value
    return found


def _refuse_what_there_is_not(given: Description) -> None:
    for word, value in _ALWAYS.items():
        if given.values.get(word, value).lower() not in {value, "0"}:
            raise ChangeRefused(f"{word} is {given.values[word]}; it can only be {value} here.")
    if "AuthorizationRules" in given.nested:
        raise ChangeRefused(
            "AuthorizationRules are not taken here: policies are kept in Secrets, and may be for one entity."
        )


def _refuse_forwarding(word: str) -> None:
    raise ChangeRefused(f"{word} is not served yet: messages would stay in the queue.")


def _refuse_its_size(queue: QueueSpec, given: Description) -> None:
    """A message's largest size follows from the kind of queue; another one would not be kept to."""
    there_is = queue.message_bytes_max // 1024
    words = given.values.get("MaxMessageSizeInKilobytes")
    if words and _whole("MaxMessageSizeInKilobytes", words) != there_is:
        raise ChangeRefused(f"MaxMessageSizeInKilobytes is {words}; it is {there_is} in a queue of this kind.")


def _size_gb(given: Description, *, partitioned: bool) -> int:
    """Partitioned: what each of 16 partitions has; also what such a queue says of itself, 16 times as much."""
    words = given.values.get("MaxSizeInMegabytes")
    if not words:
        return 1
    megabytes = _whole("MaxSizeInMegabytes", words)
    sizes = limits.SIZES_GB_PARTITIONED if partitioned else limits.SIZES_GB_CONVENTIONAL
    meant = {size * _MB_A_GB: size for size in sizes}
    if partitioned:
        meant |= {size * _MB_A_GB * limits.PARTITIONS_PER_GB: size for size in sizes}
    if megabytes not in meant:
        allowed = ";".join(str(size * _MB_A_GB) for size in sizes)
        raise ChangeRefused(
            f"The specified value '{words}' of MaxSizeInMegabytes is invalid. The allowed values are: {allowed}."
        )
    return meant[megabytes]


def _size_of_changed(queue: QueueSpec, given: Description) -> int:
    words = given.values.get("MaxSizeInMegabytes")
    if not words or _whole("MaxSizeInMegabytes", words) == queue.max_size_in_megabytes:
        return queue.size_gb
    wanted = _size_gb(given, partitioned=queue.enable_partitioning)
    if wanted != queue.size_gb and queue.enable_partitioning:
        raise ChangeRefused(
            "The value for the 'MaxSizeInMegabytes' property of an existing partitioned Queue cannot be changed."
        )
    if wanted < queue.size_gb:
        raise ChangeRefused("MaxSizeInMegabytes of an existing Queue cannot become less.")
    return wanted
