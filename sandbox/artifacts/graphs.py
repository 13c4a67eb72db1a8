# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module graphs that pin what is built.

The committed ones (sandbox/build/) serve the default versions. For another Kubernetes version a graph is made: k8s.io/kubernetes itself, and each
of its staging modules replaced by the published module of the same release (v0.37.2 for 1.37.2).
"""
from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from . import gomod
from .binaries import BINARIES, Binary
from .errors import ArtifactError
from .golang import GO_SERIES, Toolchain
from .progress import Progress
from .settings import Settings, default_kubernetes_version
from .store import digest

_KUBERNETES = "k8s.io/kubernetes"
_PROBE = "golang.org/x/sync@v0.1.0"
_TEMPLATE = 1  # raise it when the made graph changes


def graph_of(binary: Binary, settings: Settings, go: Toolchain, progress: Progress) -> Path:
    """Return the folder with the go.mod that pins ``binary`` for the chosen versions. Raises ArtifactError when it cannot be made."""
    if not binary.follows_kubernetes or settings.kubernetes_version == default_kubernetes_version():
        return binary.graph
    key = graph_key(settings.kubernetes_version)
    title = f"resolving the modules of Kubernetes {settings.kubernetes_version}"
    found = settings.store.find("graph-kubernetes", key)
    if found is not None:
        return found
    # a made graph has no committed sums: Go's checksum database vouches for it where it can be reached
    extra: dict[str, str] = {}
    if not _checksum_database_answers(settings, go):
        extra["GOSUMDB"] = "off"
        progress.note(f"Go's checksum database cannot be reached: Kubernetes {settings.kubernetes_version} is taken as the module proxy gives it")
    with progress.step(title, "about 1 min"):
        return settings.store.publish("graph-kubernetes", key, lambda place: _make(place, settings, go, extra))


def graph_key(version: str) -> str:
    """Return the store key of the made graph for Kubernetes ``version``."""
    return digest([_TEMPLATE, GO_SERIES, version])


def _make(place: Path, settings: Settings, go: Toolchain, extra: dict[str, str]) -> None:
    purpose = f"the modules of Kubernetes {settings.kubernetes_version} cannot be resolved"
    go_mod = place / "go.mod"
    go_mod.write_text(f"module gpufleet.dra/sandbox/build/kubernetes\n\ngo {GO_SERIES}.0\n")
    version = f"v{settings.kubernetes_version}"
    told = go.run(purpose, ["mod", "download", "-json", f"{_KUBERNETES}@{version}"], place, settings, extra)
    upstream = gomod.read(Path(json.loads(told)["GoMod"]))
    staging = sorted(module for module, target in upstream.replaces.items() if target.startswith("./staging/"))
    if not staging:
        raise ArtifactError(f"{purpose}: its go.mod names no staging modules.")
    programs = sorted(binary.package for binary in BINARIES.values() if binary.follows_kubernetes)
    go_mod.write_text(made_go_mod(settings.kubernetes_version, staging, programs))
    go.run(purpose, ["list", "-mod=mod", "-deps", *programs], place, settings, extra)


def made_go_mod(version: str, staging: list[str], programs: list[str]) -> str:
    """Return the text of a go.mod for Kubernetes ``version`` (1.X.Y), whose staging modules are published as v0.X.Y."""
    published = "v" + re.sub(r"^1\.", "0.", version)
    tools = "".join(f"\t{program}\n" for program in programs)
    replaces = "".join(f"\t{module} => {module} {published}\n" for module in staging)
    return (
        "module gpufleet.dra/sandbox/build/kubernetes\n\n"
        f"go {GO_SERIES}.0\n\n"
        f"tool (\n{tools})\n\n"
        f"require {_KUBERNETES} v{version}\n\n"
        f"replace (\n{replaces})\n"
    )


def _checksum_database_answers(settings: Settings, go: Toolchain) -> bool:
    """Tell whether a small module can be fetched into an empty module cache with the checksum database on."""
    settings.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="probe-", dir=settings.scratch) as folder:
        try:
            go.run("probe", ["mod", "download", "-modcacherw", _PROBE], Path(folder), settings, {"GOMODCACHE": folder})
        except ArtifactError:
            return False
    return True
