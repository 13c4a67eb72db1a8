# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Finds each program, one by one: a folder given by the user, else the official release, else a build from Go modules."""
from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

from . import gomod, releases
from .binaries import BINARIES, OPERATOR_SOURCE, Binary, Release
from .errors import ArtifactError
from .golang import GO_SERIES, Toolchain, toolchain
from .graphs import graph_key, graph_of
from .progress import QUIET, Progress
from .releases import NotServedError
from .settings import Settings, default_kubernetes_version
from .store import digest, file_digest, tree_digest

_NO_VERSION = "0.0.0"
#: Go files that only tests use: a change of them asks for no build.
_NOT_COMPILED = ("*_test.go", "fakeapi")


def ensure(names: Iterable[str], settings: Settings, progress: Progress = QUIET) -> dict[str, Path]:
    """Return the path of each program of ``names`` (keys of BINARIES), fetching or building what is missing.

    Raises ArtifactError for an unknown name and when a program cannot be had.
    """
    wanted = list(names)
    unknown = sorted(set(wanted) - set(BINARIES))
    if unknown:
        raise ArtifactError(f"unknown program {', '.join(unknown)}: known are {', '.join(BINARIES)}.")
    finder = _Finder(settings, progress)
    return {name: finder.locate(BINARIES[name]) for name in BINARIES if name in wanted}


def version_of(binary: Binary, settings: Settings) -> str:
    """Return the version (without v) that ``binary`` has or will have."""
    if binary.follows_kubernetes:
        return settings.kubernetes_version
    if OPERATOR_SOURCE in binary.sources:
        return _NO_VERSION
    return gomod.read(binary.graph / "go.mod").version(binary.module).removeprefix("v")


class _Finder:
    """One search over several programs: the Go toolchain is looked for once, and only if something is built."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._settings = settings
        self._progress = progress
        self._go: Toolchain | None = None
        self._unreachable: set[str] = set()

    def locate(self, binary: Binary) -> Path:
        given = self._given(binary)
        if given is not None:
            return given
        version = version_of(binary, self._settings)
        return self._released(binary, version) or self._built(binary, version)

    def _given(self, binary: Binary) -> Path | None:
        """Return the program from the user's folders. A Kubernetes program of another version is refused, not skipped."""
        for folder in self._settings.assets:
            program = folder / binary.name
            if program.is_file() and os.access(program, os.X_OK):
                if binary.follows_kubernetes and binary.name != "kubectl":
                    self._check_version(program)
                return program.resolve()
        return None

    def _check_version(self, program: Path) -> None:
        wanted = self._settings.kubernetes_version
        said = subprocess.run([program, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False).stdout.strip()
        if f"v{wanted}" not in said.split():
            raise ArtifactError(
                f"{program} says {said!r}, but Kubernetes {wanted} is wanted: set GPUFLEET_SANDBOX_KUBERNETES_VERSION to its version,"
                " or take its folder out of GPUFLEET_ASSETS and KUBEBUILDER_ASSETS."
            )

    def _released(self, binary: Binary, version: str) -> Path | None:
        release, settings = binary.release, self._settings
        base_url = getattr(settings, release.site) if release else ""
        if release is None or not base_url:
            return None
        key = digest(["release", base_url, release.path, version])
        found = settings.store.find(binary.name, key)
        # what was built earlier is used without asking the network again
        if found is None and not settings.offline and settings.store.find(binary.name, self._build_key(binary, version)) is None:
            found = self._download(binary, release, base_url, version, key)
        return found / binary.name if found else None

    def _download(self, binary: Binary, release: Release, base_url: str, version: str, key: str) -> Path | None:
        settings, progress = self._settings, self._progress
        site = releases.site_of(base_url)
        if not releases.reachable(site, settings.release_timeout_s):
            if site not in self._unreachable:
                self._unreachable.add(site)
                progress.note(f"{site} cannot be reached: what it would supply is built from source")
            return None
        try:
            with progress.step(f"fetching {binary.name} {version} from {site}"):
                return settings.store.publish(binary.name, key, lambda place: releases.fetch(release, base_url, version, binary.name, place))
        except NotServedError as missing:
            progress.note(f"{missing}: {binary.name} is built from source")
            return None

    def _built(self, binary: Binary, version: str) -> Path:
        for source in binary.sources:
            if not source.is_dir():
                raise ArtifactError(f"{binary.name} cannot be built: its source folder {source} is missing.")
        settings = self._settings
        key = self._build_key(binary, version)
        found = settings.store.find(binary.name, key)
        if found is None:
            if self._go is None:
                self._go = toolchain(settings, self._progress)
            go, graph = self._go, graph_of(binary, settings, self._go, self._progress)
            arguments = ["build", "-mod=readonly", *build_flags(binary, version)]
            extra = {"CGO_ENABLED": "1" if binary.cgo else "0"}

            def build(place: Path) -> None:
                go.run(f"building {binary.name}", [*arguments, "-o", str(place / binary.name), binary.package], graph, settings, extra)

            with self._progress.step(f"building {binary.name} {version} from source", binary.build_time):
                found = settings.store.publish(binary.name, key, build)
        return found / binary.name

    def _build_key(self, binary: Binary, version: str) -> str:
        """Return the hash of all that decides what a build gives. Go's patch release is left out: it would only repeat the builds."""
        if binary.follows_kubernetes and version != default_kubernetes_version():
            graph: list[str] = [graph_key(version)]
        else:
            graph = [file_digest(binary.graph / name) for name in ("go.mod", "go.sum")]
        sources = [tree_digest(source, without=_NOT_COMPILED) for source in binary.sources if source.is_dir()]
        return digest(["build", GO_SERIES, platform.machine(), binary.package, binary.cgo, build_flags(binary, version), graph, sources])


def build_flags(binary: Binary, version: str) -> list[str]:
    """Return the flags of ``go build`` that decide what the program is."""
    major, minor = version.split(".")[:2]
    linker = ["-s", "-w"]
    for stamp in binary.stamps:
        linker += ["-X", stamp.format(version=version, major=major, minor=minor)]
    if binary.cgo:
        # NVIDIA's bindings leave the driver's symbols open until they are called; some compilers bind all of them at start
        linker.append("-extldflags=-Wl,-z,lazy")
    return ["-trimpath", "-ldflags", " ".join(linker)]
