"""A certificate authority for one cluster, and a kubeconfig for everybody who speaks to its API server.

Each component has the identity that Kubernetes' built-in roles expect of it, so that RBAC holds for all of them.
"""

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.cluster.addresses import NodeAddress, Slot

_DAYS: Final = "3650"
# RFC 5280 §4.2.1 in full: Python from 3.13 on trusts no authority that does not say what its key is for.
_REQUESTS: Final = """
[req]
distinguished_name = name
x509_extensions = authority
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""
_EXTENSIONS: Final = (
    "basicConstraints = critical, CA:FALSE",
    "keyUsage = critical, digitalSignature",
    "extendedKeyUsage = clientAuth, serverAuth",
    "subjectKeyIdentifier = hash",
    "authorityKeyIdentifier = keyid",
)


@dataclass(frozen=True, slots=True)
class Authority:
    """The folder with the keys: `<name>.crt`, `<name>.key`, `<name>.conf`."""

    folder: Path
    slot: Slot

    def create(self) -> None:
        """Everything that the control plane needs, and `admin.conf` for people."""
        self.folder.mkdir(mode=0o700)
        (self.folder / "requests.cnf").write_text(_REQUESTS)
        self._key("ca")
        whose = ["-key", "ca.key", "-subj", "/CN=kubernetes", "-days", _DAYS]
        self._openssl("req", "-x509", "-new", "-config", "requests.cnf", *whose, "-out", "ca.crt")
        names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ]
        addresses = ["127.0.0.1", str(self.slot.kubernetes), str(self.slot.node(1).address)]
        alternatives = [f"DNS:{name}" for name in names] + [f"IP:{address}" for address in addresses]
        self._certificate("apiserver", "/CN=kube-apiserver", alternatives)
        self._certificate("apiserver-to-kubelet", "/O=system:masters/CN=kube-apiserver-kubelet-client")
        self._identity("admin", "/O=system:masters/CN=admin")
        self._identity("controller-manager", "/CN=system:kube-controller-manager")
        self._identity("scheduler", "/CN=system:kube-scheduler")
        self._identity("proxy", "/CN=system:kube-proxy")
        self._key("service-accounts")
        self._openssl("pkey", "-in", "service-accounts.key", "-pubout", "-out", "service-accounts.pub")

    def add_node(self, node: NodeAddress) -> None:
        """What the kubelet of `node` is, to the API server and to those who ask it for logs."""
        if not (self.folder / f"{node.name}.conf").exists():
            subject = f"/O=system:nodes/CN=system:node:{node.name}"
            self._identity(node.name, subject, [f"DNS:{node.name}", f"IP:{node.address}"])

    def _identity(self, name: str, subject: str, alternatives: list[str] | None = None) -> None:
        self._certificate(name, subject, alternatives)
        (self.folder / f"{name}.conf").write_text(self._kubeconfig(name))
        (self.folder / f"{name}.conf").chmod(0o600)

    def _certificate(self, name: str, subject: str, alternatives: list[str] | None = None) -> None:
        self._key(name)
        extensions = [*_EXTENSIONS]
        if alternatives:
            extensions.append(f"subjectAltName={','.join(alternatives)}")
        (self.folder / f"{name}.ext").write_text("\n".join(extensions) + "\n")
        whose = ["-key", f"{name}.key", "-subj", subject]
        self._openssl("req", "-new", "-config", "requests.cnf", *whose, "-out", f"{name}.csr")
        authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"]
        request = ["-in", f"{name}.csr", "-extfile", f"{name}.ext"]
        self._openssl("x509", "-req", *request, *authority, "-days", _DAYS, "-out", f"{name}.crt")

    def _key(self, name: str) -> None:
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def _kubeconfig(self, name: str) -> str:
        def data(file: str) -> str:
            return base64.b64encode((self.folder / file).read_bytes()).decode()

        cluster = f'{{server: "{self.slot.api}", certificate-authority-data: {data("ca.crt")}}}'
        user = f"{{client-certificate-data: {data(f'{name}.crt')}, client-key-data: {data(f'{name}.key')}}}"
        return (
            "apiVersion: v1\nkind: Config\n"
            f"clusters: [{{name: {self.slot.name}, cluster: {cluster}}}]\n"
            f"users: [{{name: {name}, user: {user}}}]\n"
            f"contexts: [{{name: {self.slot.name}, context: {{cluster: {self.slot.name}, user: {name}}}}}]\n"
            f"current-context: {self.slot.name}\n"
        )

    def _openssl(self, *arguments: str) -> None:
        done = subprocess.run(
            ["openssl", *arguments], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"openssl {' '.join(arguments)}: {done.stderr}"
