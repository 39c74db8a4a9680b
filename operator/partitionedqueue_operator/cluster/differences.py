"""Whether an object in the cluster is as it was applied. Fields that others have added are theirs."""

from collections.abc import Mapping
from typing import Any, Final

from partitionedqueue.model import quantities
from partitionedqueue_operator.observed import Manifest

_WHOLE: Final = frozenset({"selector", "matchLabels", "nodeSelector"})
"""Mappings in which one entry more means something else."""
_AMOUNTS: Final = frozenset({"requests", "limits", "sizeLimit"})


def differs(wanted: Manifest, live: Manifest) -> bool:
    """Whether something that is wanted is not so. The API server fills in what nobody has said."""
    return _differs(wanted, live, "")


def _differs(wanted: Any, live: Any, name: str) -> bool:
    if isinstance(wanted, Mapping):
        if not isinstance(live, Mapping):
            return bool(wanted)
        if name in _WHOLE and wanted.keys() != live.keys():
            return True
        within = name if name in _AMOUNTS else None
        return any(_differs(value, live.get(key), within or key) for key, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(live, list) or len(wanted) != len(live):
            return bool(wanted) or bool(live)
        return any(_differs(one, other, name) for one, other in zip(wanted, live, strict=True))
    if wanted != live and name in _AMOUNTS and isinstance(live, str):
        return quantities.amount(str(wanted)) != quantities.amount(live)
    return bool(wanted != live)
