"""Manifests as a person gives them: a file of YAML, as kubectl takes it."""

from pathlib import Path
from typing import Any

import yaml

from partitionedqueue.model import entity_name
from partitionedqueue.model.queue_spec import parse_manifests
from partitionedqueue_cli.failures import FileUnreadable

_KEPT = ("apiVersion", "kind", "metadata", "spec")


def read(path: Path) -> list[dict[str, Any]]:
    """The manifests of a file, each one valid, without what a cluster adds. Raises FileUnreadable, InvalidManifest."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileUnreadable(f"{path} is no text: {error.reason} at byte {error.start}") from error
    specs = parse_manifests(text, source=str(path))
    documents = [document for document in yaml.safe_load_all(text) if document is not None]
    return [
        {
            **{key: document[key] for key in _KEPT if key in document},
            "metadata": {"name": spec.name, "namespace": spec.namespace, **_shown(spec.name, document["metadata"])},
        }
        for spec, document in zip(specs, documents, strict=True)
    ]


def _shown(name: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The one annotation that means something here: what clients call the queue."""
    shown = entity_name.shown_name(metadata)
    return {} if shown == name else {"annotations": {entity_name.ANNOTATION: shown}}
