"""The API server as a person's kubeconfig reaches it: plain GETs, each with an end, and its refusals in words."""

import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import config
from kubernetes.client.configuration import Configuration

from partitionedqueue_cli.failures import CommandFailed


class ClusterUnreachable(CommandFailed):
    """There is no cluster to ask, or it does not answer."""


class ClusterRefused(CommandFailed):
    """The API server, or what it passed the request on to, says no: the `status`, and the `body` if it is JSON."""

    def __init__(self, status: int, words: str, body: Any) -> None:
        super().__init__(words)
        self.status = status
        self.body = body


class ClusterApi:
    """One cluster. `namespace` is what commands act in that name none."""

    def __init__(self, configuration: Configuration, namespace: str, timeout_s: float) -> None:
        self.namespace = namespace
        self._configuration = configuration
        self._timeout_s = timeout_s
        self._pool = _pool(configuration)

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """One answer, parsed. Raises ClusterRefused, ClusterUnreachable."""
        headers = {"Accept": "application/json"}
        token = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token is not None:
            headers["Authorization"] = token
        query = f"?{urlencode(parameters)}" if parameters else ""
        try:
            response = self._pool.request(
                "GET", self._configuration.host + path + query, headers=headers, timeout=self._timeout_s, retries=False
            )
        except urllib3.exceptions.HTTPError as error:
            words = f"the cluster at {self._configuration.host} cannot be reached: {error}"
            raise ClusterUnreachable(words) from error
        body = _parsed(response.data)
        if response.status != 200:
            raise ClusterRefused(response.status, _refusal(response.status, body, response.data), body)
        if body is None:
            raise ClusterUnreachable(f"{self._configuration.host} answers, but not as an API server does")
        return body


def connect(kubeconfig: Path | None, context: str | None, *, timeout_s: float) -> ClusterApi:
    """The cluster that kubectl would take; in a pod without a kubeconfig, its own. Raises ClusterUnreachable."""
    configuration, file = Configuration(), str(kubeconfig) if kubeconfig is not None else None
    try:
        if file is None and context is None and "KUBECONFIG" not in os.environ and _is_in_a_pod():
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
            return ClusterApi(configuration, _namespace_of_pod(), timeout_s)
        config.load_kube_config(  # type: ignore[no-untyped-call]  # theirs
            config_file=file, context=context, client_configuration=configuration, persist_config=False
        )
        contexts, active = config.list_kube_config_contexts(config_file=file)  # type: ignore[no-untyped-call]  # theirs
    except (config.ConfigException, OSError) as error:
        words = f"no cluster is known: {str(error).rstrip('.')}; set KUBECONFIG, or say --kubeconfig and --context"
        raise ClusterUnreachable(words) from error
    chosen = next((one for one in contexts if one["name"] == context), active)
    return ClusterApi(configuration, chosen["context"].get("namespace") or "default", timeout_s)


def _pool(configuration: Configuration) -> urllib3.PoolManager:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        raise ClusterUnreachable(f"the certificates of the kubeconfig cannot be read: {error}") from error
    # Python 3.13 asks more of certificates than kubectl does, and than several clusters' have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    how: dict[str, Any] = {"ssl_context": context}
    if configuration.tls_server_name:
        how |= {"server_hostname": configuration.tls_server_name, "assert_hostname": configuration.tls_server_name}
    if configuration.proxy:
        return urllib3.ProxyManager(configuration.proxy, **how)
    return urllib3.PoolManager(**how)


_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def _is_in_a_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and _POD.is_dir()


def _namespace_of_pod() -> str:
    return (_POD / "namespace").read_text(encoding="utf-8").strip()


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _refusal(status: int, body: Any, data: bytes) -> str:
    if status == 401:
        return "the cluster does not know you: log in anew, or choose another --context"
    words = body.get("message") if isinstance(body, dict) else None
    if words is None and isinstance(body, dict) and isinstance(body.get("error"), dict):
        words = body["error"].get("message")  # a gateway's
    return f"the cluster answers {status}: {words or data[:200].decode(errors='replace').strip()}"
