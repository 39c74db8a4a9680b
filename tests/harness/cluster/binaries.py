"""The cluster's programs, built from source by Go; versions and sums stand in `go/<module>/go.mod` and `go.sum`."""

import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Final

from harness.cluster import machine
from harness.cluster.cache import FOLDER, digest, made_once
from harness.cluster.progress import say, timed

_SOURCES: Final = Path(__file__).parent / "go"
_SAY_EVERY_SECONDS: Final = 20.0
_BUILD_SECONDS_MAX: Final = 3600.0
_GO_THAT_CHANGES_ITSELF: Final = (1, 21)  # from here on GOTOOLCHAIN=auto fetches the version that go.mod asks for


@dataclass(frozen=True, slots=True)
class Module:
    """One go.mod. They are several because their dependencies do not agree with each other's."""

    name: str
    about: str
    package: str  # what `go build` is given; `tool` is every tool of the go.mod

    @property
    def folder(self) -> Path:
        return _SOURCES / self.name

    def version_of(self, path: str) -> str:
        """What go.mod pins `path` to: `v1.36.3`."""
        found = re.search(rf"^\s*{re.escape(path)} (v\S+)", (self.folder / "go.mod").read_text(), re.MULTILINE)
        assert found, f"{path} is not in {self.folder}/go.mod"
        return found[1]


KUBERNETES: Final = Module("kubernetes", "Kubernetes (7 minutes or more on two cores, once)", "tool")
HELM: Final = Module("helm", "Helm", "tool")
COREDNS: Final = Module("coredns", "CoreDNS", "tool")
KWOK: Final = Module("kwok", "kwok", "tool")
PAUSE: Final = Module("pause", "pause", ".")


def programs(module: Module) -> Path:
    """The folder with the module's programs; built the first time. Raises NoClusterHere."""
    return made_once(f"go-{module.name}", _key(module), lambda folder: _build(module, _flags(module), folder))


def are_built(module: Module) -> bool:
    return (FOLDER / f"go-{module.name}-{_key(module)}").is_dir()


def _key(module: Module) -> str:
    return digest(*(path.read_bytes() for path in sorted(module.folder.iterdir())), _flags(module))


def _flags(module: Module) -> str:
    return " ".join(["-s", "-w", *_stamps(module)])


def _stamps(module: Module) -> list[str]:
    """A program built without these calls itself v0.0.0, and others believe it."""
    if module is KUBERNETES:
        version = module.version_of("k8s.io/kubernetes")
        _, minor, _ = version.split(".")
        where = "k8s.io/component-base/version"
        values = {"gitVersion": version, "gitMajor": "1", "gitMinor": minor, "gitTreeState": "clean"}
        return [f"-X {where}.{name}={value}" for name, value in values.items()]
    if module is HELM:
        _, minor, _ = module.version_of("k8s.io/client-go").split(".")
        stamps = [f"-X helm.sh/helm/v3/internal/version.version={module.version_of('helm.sh/helm/v3')}"]
        for where in ("lint/rules", "chartutil"):  # the Kubernetes that `helm template` believes in
            stamps += [f"-X helm.sh/helm/v3/pkg/{where}.k8sVersion{part}" for part in ("Major=1", f"Minor={minor}")]
        return stamps
    return []


def _build(module: Module, flags: str, folder: Path) -> None:
    go, environment = _go()
    with timed(f"building {module.about}"):
        _run([go, "mod", "download"], module.folder, environment)
        listed = _run([go, "list", "-deps", module.package], module.folder, environment)
        build = [
            go,
            "build",
            "-v",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            flags,
            "-o",
            f"{folder}/",
            module.package,
        ]
        with (folder / "build.log").open("w+") as log:
            process = subprocess.Popen(
                ["nice", *build], cwd=module.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            try:
                _follow(process, log, module, len(listed.splitlines()))
            finally:
                process.kill()
                process.wait()


def _follow(process: subprocess.Popen[bytes], log: IO[str], module: Module, packages: int) -> None:
    started = time.monotonic()
    while True:
        try:
            process.wait(_SAY_EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            done = Path(log.name).read_text().count("\n")
            seconds = time.monotonic() - started
            say(f"  {module.name}: {done} packages built, of {packages} that are not all new; {seconds:.0f} s")
            if seconds < _BUILD_SECONDS_MAX:
                continue
            raise machine.NoClusterHere(f"building {module.name} took more than {_BUILD_SECONDS_MAX:.0f} s") from None
        if process.returncode:
            raise machine.NoClusterHere(f"building {module.name} failed:\n{Path(log.name).read_text()[-3000:]}")
        return


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise machine.NoClusterHere(f"{' '.join(command)} failed in {folder}:\n{done.stderr[-3000:]}")
    return done.stdout


@cache
def _go() -> tuple[str, dict[str, str]]:
    """A Go that is new enough for every go.mod here, and the environment it is to run in."""
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "auto", "CGO_ENABLED": "0"}
    go = shutil.which("go")
    assert go, "machine.prepare() sees to it"
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True, timeout=60).stdout
    major, minor = (int(part) for part in re.findall(r"\d+", said)[:2])
    if (major, minor) >= _GO_THAT_CHANGES_ITSELF:
        return go, environment
    return _toolchain(go, environment), environment


def _toolchain(go: str, environment: dict[str, str]) -> str:
    """Debian's Go may be too old to fetch its successor by itself; the module proxy has it all the same."""
    wanted = max(re.findall(r"^go (\d+\.\d+\.\d+)$", (_SOURCES / "kubernetes/go.mod").read_text(), re.MULTILINE))
    built_for = subprocess.run([go, "env", "GOOS", "GOARCH"], capture_output=True, text=True, check=True, timeout=60)
    system, processor = built_for.stdout.split()
    module = f"golang.org/toolchain@v0.0.1-go{wanted}.{system}-{processor}"
    with timed(f"fetching Go {wanted}"):
        # In a folder without a go.mod: an old Go does not even read one of a new Go's.
        folder = Path(json.loads(_run([go, "mod", "download", "-json", module], FOLDER, environment))["Dir"])
        for part in ("bin", "pkg/tool"):  # a module's archive does not say what may be run
            for path in (folder / part).rglob("*"):
                path.chmod(0o755)
    return str(folder / "bin" / "go")
