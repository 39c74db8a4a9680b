"""The Kubernetes API server over HTTP: one answer, or a watch's lines. Every wait has an end.

kubernetes' own client is used for what it does best, to find and refresh credentials. It watches in a blocking call,
which wants a thread for each watch, has no bound on the length of a line, and stays in it when a connection freezes;
here a watch is an asynchronous loop of a few lines whose silence is noticed.
"""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Self

import aiohttp
from kubernetes import config
from kubernetes.client.configuration import Configuration

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import limits

_CHUNK_BYTES = 1 << 16
_DONE = {200, 201, 202}


class NoCluster(PartitionedQueueError):
    """There is neither a kubeconfig nor a pod's service account; the words say what to do."""


class ApiUnavailable(PartitionedQueueError):
    """The API server cannot be reached, has fallen silent, or talks nonsense."""


class ApiRefused(PartitionedQueueError):
    """The API server says no. `status` is HTTP's; `message` is what it says, without who says it."""

    def __init__(self, status: int, words: str, message: str = "") -> None:
        super().__init__(words)
        self.status = status
        self.message = message or words


class ApiServer:
    """One API server, for one event loop."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def found(cls) -> Self:
        """The one that $KUBECONFIG names; in a pod, the one of its service account. Raises NoCluster."""
        configuration = Configuration()
        try:
            if "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ:
                config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
            else:
                config.load_kube_config(  # type: ignore[no-untyped-call]  # theirs
                    client_configuration=configuration, persist_config=False
                )
        except (config.ConfigException, OSError) as error:
            words = (
                f"no cluster is known ({error}); set KUBECONFIG, run in a pod, or take the queues of PQ_GATEWAY_FOLDER"
            )
            raise NoCluster(words) from error
        return cls(configuration)

    async def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """One answer, parsed. Raises ApiRefused, ApiUnavailable."""
        return await self._whole(path, parameters or {})

    async def write(self, method: str, path: str, body: Any, *, kind: str = "application/json") -> Any:
        """Send an object, or a part of one, as JSON of some kind; the answer, parsed. Raises as `get`."""
        return await self._whole(path, {}, method=method, sent=json.dumps(body).encode(), kind=kind)

    async def _whole(self, path: str, parameters: Mapping[str, str], **asked: Any) -> Any:
        waits = aiohttp.ClientTimeout(total=limits.API_ANSWER_S_MAX)
        body = bytearray()
        async with aclosing(self._pieces(path, parameters, waits, **asked)) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > limits.API_BYTES_MAX:
                    raise ApiUnavailable(f"the answer to {path} has more than {limits.API_BYTES_MAX} bytes")
        return _parsed(bytes(body), path)

    async def watch(self, path: str, parameters: Mapping[str, str]) -> AsyncGenerator[Any, None]:
        """Every line of a watch, parsed, until the API server ends it. Raises ApiRefused, ApiUnavailable."""
        waits = aiohttp.ClientTimeout(
            total=None, sock_connect=limits.API_ANSWER_S_MAX, sock_read=limits.WATCH_SILENT_S_MAX
        )
        begun = bytearray()
        async with aclosing(self._pieces(path, parameters, waits)) as pieces:
            async for piece in pieces:
                begun += piece
                if len(begun) > limits.WATCH_EVENT_BYTES_MAX:
                    raise ApiUnavailable(f"an event of {path} has more than {limits.WATCH_EVENT_BYTES_MAX} bytes")
                if b"\n" in piece:
                    *lines, begun = begun.split(b"\n")
                    for line in lines:
                        yield _parsed(bytes(line), path)

    async def close(self) -> None:
        """Close the connections; the next request opens new ones, with certificates as they are then."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _pieces(
        self,
        path: str,
        parameters: Mapping[str, str],
        waits: aiohttp.ClientTimeout,
        *,
        method: str = "GET",
        sent: bytes = b"",
        kind: str = "",
    ) -> AsyncGenerator[bytes, None]:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=_tls_of(self._configuration)))
        try:
            headers = await asyncio.to_thread(_headers_of, self._configuration)  # may read a file or ask a program
            async with self._session.request(
                method,
                self._configuration.host + path,
                params=parameters,
                headers=headers | ({"Content-Type": kind} if sent else {}),
                data=sent or None,
                timeout=waits,
                proxy=self._configuration.proxy,
                server_hostname=self._configuration.tls_server_name,
                allow_redirects=False,
            ) as response:
                if response.status not in _DONE:
                    raise _refused(response.status, await response.content.read(_CHUNK_BYTES))
                async for piece in response.content.iter_any():
                    yield piece
        except aiohttp.ClientSSLError as error:
            await self.close()  # the cluster's certificates may be others now
            raise ApiUnavailable(f"the API server cannot be trusted: {error}") from error
        except TimeoutError as error:
            raise ApiUnavailable("the API server does not answer") from error
        except aiohttp.ClientPayloadError as error:
            raise ApiUnavailable("the connection to the API server was lost") from error
        except (aiohttp.ClientError, OSError, config.ConfigException) as error:
            raise ApiUnavailable(f"the API server cannot be reached: {error}") from error


def _tls_of(configuration: Configuration) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        raise ApiUnavailable(f"the certificates for the API server cannot be read: {error}") from error
    # Python 3.13 asks more of certificates than Kubernetes' own clients do, and than several clusters' have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _headers_of(configuration: Configuration) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": "partitionedqueue-gateway"}
    token = configuration.get_api_key_with_prefix(
        "BearerToken", alias="authorization"
    )  # refreshed where it has expired
    return headers if token is None else {**headers, "Authorization": token}


def _parsed(body: bytes, path: str) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise ApiUnavailable(f"the API server's answer to {path} is no JSON") from error


def _refused(status: int, body: bytes) -> ApiRefused:
    """With a Status' own words, where it is one."""
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = body[:200].decode(errors="replace")
    return ApiRefused(status, f"the API server answers {status}: {message}", message)
