"""As much of a Kubernetes client as the volumes need, of the standard library alone."""

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from harness.cluster.addresses import Slot

Object = dict[str, Any]
_TIMEOUT_SECONDS: Final = 10.0
_WATCH_SECONDS: Final = 300


class Api:
    """One cluster's API server, as its administrator."""

    def __init__(self, pki: Path, slot: Slot) -> None:
        self._address = str(slot.node(1).address)
        self._pki = pki

    def call(self, method: str, path: str, body: Object | None = None) -> Object:
        """One request. Raises OSError, or HTTPException when the answer is an error."""
        connection = self._connect(_TIMEOUT_SECONDS)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            answer: Object = json.loads(response.read() or b"{}")
        finally:
            connection.close()
        if response.status >= 300:
            raise http.client.HTTPException(f"{method} {path}: {answer.get('message', response.status)}")
        return answer

    def follow(self, path: str) -> Iterator[tuple[str, Object]]:
        """LISTED with all that there are, then ADDED, MODIFIED or DELETED with one, until the server ends it."""
        listed = self.call("GET", path)
        yield "LISTED", listed
        version = listed["metadata"]["resourceVersion"]
        connection = self._connect(_WATCH_SECONDS + 30.0)
        try:
            connection.request("GET", f"{path}?watch=1&resourceVersion={version}&timeoutSeconds={_WATCH_SECONDS}")
            for line in connection.getresponse():
                event = json.loads(line)
                if event["type"] in {"ADDED", "MODIFIED", "DELETED"}:
                    yield event["type"], event["object"]
        finally:
            connection.close()

    def _connect(self, seconds: float) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python does from 3.13 on: pods will
        context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        return http.client.HTTPSConnection(self._address, 6443, timeout=seconds, context=context)
