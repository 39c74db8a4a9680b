"""Container images without a Docker daemon and without a registry: built by buildah, kept as archives in the cache.

A Dockerfile is built as a user would build it, with the repository as its context. What goes in is what git knows of
(so nothing that lies about gets into an image), and an unchanged tree costs a second.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from harness.cluster import binaries, build_context, machine, roots
from harness.cluster.cache import FOLDER, digest, made_once
from harness.cluster.progress import timed

REPOSITORY: Final = Path(__file__).parents[3]
DOCKERFILES: Final = {
    "broker": "broker-image/Dockerfile",
    "operator": "operator/Dockerfile",
    "gateway": "gateway/Dockerfile",
    "spark": "spark-on-k8s/Dockerfile",
}
BASE: Final = f"debian:{roots.SUITE}-slim"  # what the Dockerfiles have in FROM
_AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_AUTHORITIES_INSIDE: Final = "/mnt/ca.crt"
_BUILD_SECONDS_MAX: Final = 3600.0
_ARCHIVES_KEPT: Final = 2
_FREE_BYTES_MIN: Final = 15 * 1000**3


@dataclass(frozen=True, slots=True)
class Image:
    """An image as a pod names it, and the docker-archive that holds it. `key` differs when what went in does."""

    reference: str
    archive: Path
    key: str


def reference(name: str, version: str) -> str:
    """The project's image `name` as a pod names it."""
    return f"docker.io/partitionedqueue/{name}:{version}"


def chart_version() -> str:
    """The version that the chart installs: its appVersion."""
    chart = REPOSITORY / "charts" / "partitionedqueue" / "Chart.yaml"
    return str(yaml.safe_load(chart.read_text())["appVersion"])


def build(name: str, version: str) -> Image:
    """The project's image `name`, one of DOCKERFILES. Raises NoClusterHere with what the build said last."""
    return from_dockerfile(REPOSITORY / DOCKERFILES[name], reference(name, version))


def from_dockerfile(dockerfile: Path, named: str, context: Path = REPOSITORY) -> Image:
    """Any Dockerfile inside a git checkout; `context` is what its COPY lines are relative to."""
    if not dockerfile.is_file():
        raise machine.NoClusterHere(f"there is no {dockerfile}, so {named} cannot be built")
    inputs = build_context.of(dockerfile, context)
    version = named.rpartition(":")[2]
    key = digest(dockerfile.read_bytes(), named, inputs.digest())

    def make(folder: Path) -> None:
        _make_base()
        how = ["--layers", "--pull-never", "--isolation=chroot", "--network=host", f"--build-arg=VERSION={version}"]
        with timed(f"building {named}"), inputs.copied() as clean, _package_sources() as mounts:
            _buildah("bud", *how, *mounts, "--tag", named, "--file", str(dockerfile.resolve()), str(clean))
        _archive(named, folder / "image.tar")

    return Image(named, made_once(f"image-{_file_name(named)}", key, make) / "image.tar", key)


def from_program(program: Path, named: str, key: str) -> Image:
    """An image of nothing but one static program."""

    def make(folder: Path) -> None:
        with _container("scratch") as container:
            _buildah("add", container, str(program), f"/{program.name}")
            _buildah("config", "--entrypoint", json.dumps([f"/{program.name}"]), container)
            _buildah("commit", container, named)
        _archive(named, folder / "image.tar")

    return Image(named, made_once(f"image-{_file_name(named)}", key, make) / "image.tar", key)


def prune(in_use: set[Path]) -> None:
    """Of each of the project's images keep the newest archives, and those that a cluster may ask for again.

    What buildah remembers of builds makes the next one quick; it goes only when the disk runs full.
    """
    for name in DOCKERFILES:
        made = sorted(FOLDER.glob(f"image-docker.io-partitionedqueue-{name}-*"), key=lambda path: path.stat().st_mtime)
        for folder in made[:-_ARCHIVES_KEPT]:
            if folder / "image.tar" not in in_use:
                shutil.rmtree(folder, ignore_errors=True)
    if shutil.disk_usage(FOLDER).free < _FREE_BYTES_MIN:
        with timed("little room is left on the disk; forgetting earlier builds"):
            _buildah("rmi", "--prune", "--force")


def pause() -> Image:
    """What holds a pod's namespaces."""
    folder = binaries.programs(binaries.PAUSE)
    return from_program(folder / "pause", "localhost/pause:1", digest(folder.name))


def coredns() -> Image:
    folder = binaries.programs(binaries.COREDNS)
    return from_program(folder / "coredns", "localhost/coredns:1", digest(folder.name))


@contextmanager
def _package_sources() -> Iterator[list[str]]:
    """This machine's certificate authorities and pip's settings, there for the build and not in the image."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False, timeout=60
    )
    with tempfile.NamedTemporaryFile("w", prefix="pip-", suffix=".conf", dir=FOLDER) as settings:
        settings.write(pip_settings(listed.stdout))
        settings.flush()
        Path(settings.name).chmod(0o644)
        mounts = ["--volume", f"{settings.name}:/etc/pip.conf:ro"]
        if _AUTHORITIES.exists():
            mounts += ["--volume", f"{_AUTHORITIES.resolve()}:{_AUTHORITIES_INSIDE}:ro"]
        yield mounts


def pip_settings(listed: str) -> str:
    """A pip.conf for a build from what `pip config list` says here: where packages are, and whom to trust."""
    kept = {"index-url", "extra-index-url", "trusted-host", "timeout", "proxy", "retries"}
    settings = dict(re.findall(r"^(?:global|:env:)\.([a-z-]+)='(.*)'$", listed, re.MULTILINE))
    lines = [f"{name} = {value}" for name, value in sorted(settings.items()) if name in kept]
    if _AUTHORITIES.exists():
        lines.append(f"cert = {_AUTHORITIES_INSIDE}")
    return "\n".join(["[global]", *lines, ""])


def _make_base() -> None:
    """Debian under the very name that the Dockerfiles start from."""
    root = roots.image_root()

    def make(_: Path) -> None:
        with timed(f"making the image {BASE}"), _container("scratch") as container:
            _buildah("add", container, str(root), "/")
            _buildah(
                "config",
                "--cmd",
                "bash",
                "--env",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                container,
            )
            _buildah("commit", container, BASE)

    made_once("image-base", digest(root.name), make)


@contextmanager
def _container(base: str) -> Iterator[str]:
    name = _buildah("from", base).strip()
    try:
        yield name
    finally:
        _buildah("rm", name)


def _archive(named: str, archive: Path) -> None:
    _buildah("push", named, f"docker-archive:{archive}:{named}")


def _file_name(named: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", named.lower())


def _buildah(*arguments: str) -> str:
    """buildah with a store of its own in the cache, which never asks a registry."""
    store = FOLDER / "containers"
    store.mkdir(parents=True, exist_ok=True)
    (store / "registries.conf").write_text("unqualified-search-registries = []\n")
    (store / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}\n')
    command = ["buildah", f"--root={store}/storage", f"--runroot={store}/run", "--storage-driver=overlay"]
    command += [f"--registries-conf={store}/registries.conf"]
    if arguments[0] in {"from", "bud", "commit", "push"}:
        arguments = (arguments[0], f"--signature-policy={store}/policy.json", *arguments[1:])
    done = subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        said = done.stdout[-3000:] + done.stderr[-3000:]
        raise machine.NoClusterHere(f"buildah {' '.join(arguments)} failed:\n{said}")
    return done.stdout
