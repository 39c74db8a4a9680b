"""The administration clients of Microsoft's SDKs, unmodified, over TLS: queues made, changed, listed and deleted."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from harness.own_certificate import write_certificate
from harness.pq_command import Pq, manifest, write
from harness.relay import relayed
from sdk.operations import FOLDER, SDKS
from sdk.programs import Program, SdkNotHere, sdk

IN_ORDER: Final = ("create_partitioned", "runtime_counts", "update", "list_pages", "delete")
LISTED: Final = ("list-a", "list-b", "list-c")
_PASSWORD: Final = "changeit"  # of a file with nothing but a certificate
_TLS_PORT: Final = 443


@dataclass(frozen=True, slots=True)
class Served:
    """An embedded namespace with TLS. `alone`: an address of its own, whose port 443 leads there where that can be."""

    pq: Pq
    certificate: Path
    connection: str
    alone: str | None

    def place(self, name: str) -> dict[str, str]:
        connection = self.connection
        if name == "java":
            key = connection.partition(";")[2].replace(";UseDevelopmentEmulator=true", "")
            connection = f"Endpoint=sb://{self.alone}/;{key}"
        unused = ("connection_wrong_key", "connection_expired", "connection_listen", "queue", "brief", "sessions")
        return {
            **dict.fromkeys(unused, ""),
            "connection": self.connection,
            "administration": connection,
            "administered": f"{name.title()}_Orders.1",
            "missing": "there-is-no-such-queue",
        }

    def trust(self, name: str) -> dict[str, str]:
        """The variables by which a language's client trusts the certificate."""
        if name == "java":
            store = self.certificate.with_name("trust.p12")
            options = ("-noprompt", "-storetype", "PKCS12", "-alias", "gateway", "-storepass", _PASSWORD)
            files = ("-file", str(self.certificate), "-keystore", str(store))
            subprocess.run(["keytool", "-importcert", *options, *files], check=True, capture_output=True, timeout=60)
            words = f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={_PASSWORD}"
            return {"JAVA_TOOL_OPTIONS": words}
        variable = {"python": "REQUESTS_CA_BUNDLE", "javascript": "NODE_EXTRA_CA_CERTS", "go": "SSL_CERT_FILE"}[name]
        return {variable: str(self.certificate)}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("administration")
    alone = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    certificate = write_certificate(folder / "tls", addresses=("127.0.0.1", alone))
    pq = Pq(folder)
    pq.environment["PQ_GATEWAY_TLS"] = str(certificate.parent)
    with ExitStack() as stack:
        stack.callback(pq.end)
        pq.up(write(folder / "queues.yaml", *(manifest(name, partitioned=False) for name in LISTED)))
        port = int(pq.record()["gateway"]["port"])
        try:
            stack.enter_context(relayed(alone, _TLS_PORT, to=("127.0.0.1", port)))
        except PermissionError:
            alone = ""
        yield Served(pq, certificate, pq.done("connection-string").strip(), alone or None)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SDKS)
def test_an_administration_client_makes_sees_changes_lists_and_deletes_a_queue(
    name: str, served: Served, tmp_path: Path
) -> None:
    if name == "java" and served.alone is None:
        pytest.skip("Java's administration client dials port 443, which only root may open here")
    try:
        program = Program(sdk(name), tmp_path / "program.log", **served.trust(name))
    except SdkNotHere as error:
        pytest.skip(str(error))
    try:
        for operation in IN_ORDER:
            outcome = program.run(f"administration.{operation}", served.place(name))
            assert outcome.outcome == "passed", f"{operation}: {outcome.said}"
    finally:
        program.end()
    assert served.pq.record()["queues"].keys() == set(LISTED)


@pytest.mark.parametrize("name", SDKS)
def test_each_language_has_all_of_these_operations(name: str) -> None:
    suffix = {"python": ".py", "javascript": ".js", "go": ".go", "java": ".java"}[name]
    for operation in IN_ORDER:
        stem = "".join(map(str.title, operation.split("_"))) if name == "java" else operation
        assert (FOLDER / name / "administration" / f"{stem}{suffix}").is_file()
