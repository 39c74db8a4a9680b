"""The provisioner of StorageClass `standard`: folders on the node that a pod was scheduled to, while they are claimed.

Kubernetes' own hostPath provisioner makes folders that only root may write to and forgets on which node they are.
"""

import http.client
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.cluster.addresses import Slot
from harness.cluster.api import Api, Object

PROVISIONER: Final = "partitionedqueue.invalid/node-folder"
_AGAIN_SECONDS: Final = 0.5
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_WANTED_OF: Final = "volume.kubernetes.io/storage-provisioner"
_MADE_BY: Final = "pv.kubernetes.io/provisioned-by"


class Volumes:
    """Of one cluster. What it fails to do now it does a little later: the cluster's state says what is left to do."""

    def __init__(self, cluster: Path, slot: Slot) -> None:
        self._nodes = cluster / "nodes"
        self._api = Api(cluster / "pki", slot)

    def serve(self) -> None:
        """Never returns."""
        claims = (self._api_path("persistentvolumeclaims"), self._provide)
        volumes = (self._api_path("persistentvolumes"), self._remove)
        threading.Thread(target=self._follow, args=claims, daemon=True).start()
        self._follow(*volumes)

    @staticmethod
    def _api_path(kind: str) -> str:
        return f"/api/v1/{kind}"

    def _follow(self, path: str, handle: Callable[[Object], None]) -> None:
        while True:
            try:
                for kind, each in self._api.follow(path):
                    for item in each["items"] if kind == "LISTED" else [each]:
                        if kind != "DELETED":
                            handle(item)
            except (OSError, http.client.HTTPException, ValueError) as error:
                sys.stderr.write(f"{path}: {error}\n")  # an API server that starts, or starts again
            time.sleep(_AGAIN_SECONDS)

    def _provide(self, claim: Object) -> None:
        notes = claim["metadata"].get("annotations", {})
        node = notes.get(_SELECTED_NODE)
        if claim["spec"].get("volumeName") or notes.get(_WANTED_OF) != PROVISIONER or not node:
            return
        volume = volume_for(claim, node)
        folder = self._folder(volume)
        if folder.parent.is_dir():  # a simulated node has nowhere to put one
            folder.mkdir(exist_ok=True)
            folder.chmod(0o777)  # whoever a pod runs as
        try:
            self._api.call("POST", "/api/v1/persistentvolumes", volume)
        except http.client.HTTPException as error:
            if "already exists" not in str(error):
                raise

    def _remove(self, volume: Object) -> None:
        ours = volume["metadata"].get("annotations", {}).get(_MADE_BY) == PROVISIONER
        released = volume.get("status", {}).get("phase") == "Released"
        going = volume["metadata"].get("deletionTimestamp")
        if ours and released and not going and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            shutil.rmtree(self._folder(volume), ignore_errors=True)
            self._api.call("DELETE", f"/api/v1/persistentvolumes/{volume['metadata']['name']}")

    def _folder(self, volume: Object) -> Path:
        node = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"][0]
        return self._nodes / str(node) / "volumes" / str(volume["metadata"]["name"])


def volume_for(claim: Object, node: str) -> Object:
    """The PersistentVolume that answers a claim whose pod goes to `node`."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_MADE_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"],
            "volumeMode": "Filesystem",
            "local": {"path": f"/var/lib/volumes/{name}"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
                    ]
                }
            },
        },
    }
