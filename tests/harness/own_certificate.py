"""A certificate for 127.0.0.1 that signs itself, in cert-manager's form."""

import subprocess
from pathlib import Path


def write_certificate(folder: Path, *, name: str = "gateway") -> Path:
    """tls.crt and tls.key in a folder; gives the former, which is also what a client has to trust."""
    folder.mkdir(parents=True, exist_ok=True)
    made = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"))
    whose = ("-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    done = subprocess.run(
        ["openssl", "req", "-x509", *made, *files, *whose], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return folder / "tls.crt"
