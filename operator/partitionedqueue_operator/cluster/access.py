"""How to get in: the API server's address and this program's credentials, from the pod or from a kubeconfig."""

import os
import ssl
from collections.abc import Sequence
from typing import Any, Final, Self

import aiohttp
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config

CONNECTIONS_MAX: Final = 64


class Access:
    """Credentials; a token that the kubelet renews is read again in time."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration

    @classmethod
    async def find(cls) -> Self:
        """The service account's inside a pod, otherwise what KUBECONFIG or ~/.kube/config says."""
        configuration = Configuration()
        if "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        return cls(configuration)

    @property
    def server(self) -> str:
        """Where the API server is: https://host:port."""
        return str(self._configuration.host).rstrip("/")

    async def headers(self) -> dict[str, str]:
        """What a request must carry."""
        token = await self._configuration.get_api_key_with_prefix("BearerToken", "authorization")
        return {"Authorization": str(token)} if token else {}

    def session(
        self, *, headers: dict[str, str] | None = None, traces: Sequence[aiohttp.TraceConfig] = ()
    ) -> aiohttp.ClientSession:
        """A session of HTTP connections that trusts the API server's authority and nobody else's."""
        configuration = self._configuration
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
        # From Python 3.13 on this refuses authorities without a key usage, which clusters of several makers have; chain
        # and host name are checked all the same, as Kubernetes' own clients do.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        if not configuration.verify_ssl:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ssl=context),
            headers=headers or {},
            trace_configs=list(traces),
        )
