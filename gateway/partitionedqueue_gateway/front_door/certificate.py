"""The gateway's certificate, as cert-manager puts it into a Secret, and read again when it has been renewed."""

import ssl
from pathlib import Path

from partitionedqueue.model.errors import PartitionedQueueError
from partitionedqueue_gateway import secret_files


class CertificateUnusable(PartitionedQueueError):
    """tls.crt and tls.key are no certificate chain with its key."""


class Certificate:
    """A folder with tls.crt (the chain) and tls.key. Raises OSError, CertificateUnusable."""

    def __init__(self, folder: Path) -> None:
        self._chain, self._key = folder / "tls.crt", folder / "tls.key"
        self._read: secret_files.Stamps | None = None
        self.context: ssl.SSLContext
        self.read()

    def read(self) -> bool:
        """Look at the files once; whether there is another certificate. New connections get it, old ones go on."""
        found = secret_files.stamps((self._chain, self._key))
        if found == self._read:
            return False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2  # what Azure asks for
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            # Without a password: an encrypted key would otherwise be asked for at the terminal.
            context.load_cert_chain(self._chain, self._key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise CertificateUnusable(f"{self._chain.parent} has no usable tls.crt and tls.key: {error}") from None
        self.context, self._read = context, found
        return True


def _no_password() -> str:
    raise ValueError("the key is encrypted")
