"""The key that the brokers' passwords are derived from: one Secret in the operator's namespace, made once."""

import base64
import secrets
from typing import Final

from partitionedqueue_operator.cluster.api import CONFLICT, Api, ApiFault
from partitionedqueue_operator.cluster.kinds import SECRETS

NAME: Final = "partitionedqueue-operator-key"
_BYTES: Final = 32


async def operator_key(api: Api, namespace: str) -> bytes:
    """The key; it is drawn where there is none yet."""
    body = await api.get(SECRETS, namespace, NAME)
    if body is None:
        drawn = base64.b64encode(secrets.token_bytes(_BYTES)).decode()
        metadata = {"name": NAME, "namespace": namespace, "labels": {"app.kubernetes.io/name": "partitionedqueue"}}
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": drawn}}
        try:
            body = await api.create(SECRETS, manifest)
        except ApiFault as fault:
            if fault.status != CONFLICT:
                raise
            return await operator_key(api, namespace)
    return base64.b64decode(body["data"]["key"])
