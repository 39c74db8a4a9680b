"""A certificate for 127.0.0.1 and more that signs itself, in cert-manager's form."""

import subprocess
from collections.abc import Sequence
from pathlib import Path


def write_certificate(folder: Path, *, name: str = "gateway", addresses: Sequence[str] = ("127.0.0.1",)) -> Path:
    """tls.crt and tls.key in a folder; gives the former, which is also what a client has to trust."""
    folder.mkdir(parents=True, exist_ok=True)
    made = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"))
    names = ",".join(["DNS:localhost", *(f"IP:{one}" for one in addresses)])
    whose = ("-subj", f"/CN={name}", "-addext", f"subjectAltName={names}")
    done = subprocess.run(
        ["openssl", "req", "-x509", *made, *files, *whose], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return folder / "tls.crt"
