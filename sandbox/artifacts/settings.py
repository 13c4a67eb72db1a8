# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a user can choose about the sandbox's artifacts, and where the choices come from."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import gomod
from .errors import ArtifactError
from .store import Store

SANDBOX = Path(__file__).resolve().parent.parent
CHECKOUT = SANDBOX.parent
KUBERNETES_GRAPH = SANDBOX / "build" / "kubernetes"
CONTAINERD_GRAPH = SANDBOX / "build" / "containerd"

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"", "0", "false", "no", "off"}


def default_kubernetes_version() -> str:
    """Return the Kubernetes version of the committed module graph, e.g. ``1.37.2``."""
    return gomod.read(KUBERNETES_GRAPH / "go.mod").version("k8s.io/kubernetes").removeprefix("v")


@dataclass(frozen=True)
class Settings:
    """Choices for one run.

    ``assets``: folders with ready binaries, searched first. ``*_release_url``: base addresses of the official releases; an empty one is
    not asked. ``offline``: use nothing from the network. ``suite`` and ``mirror``: Debian release of the hosts and where it comes from
    (empty: as this machine's own apt has it).
    """

    cache: Path
    kubernetes_version: str
    assets: tuple[Path, ...] = ()
    kubernetes_release_url: str = "https://dl.k8s.io"
    helm_release_url: str = "https://get.helm.sh"
    etcd_release_url: str = "https://github.com/etcd-io/etcd/releases/download"
    containerd_release_url: str = "https://github.com/containerd/containerd/releases/download"
    release_timeout_s: float = 3.0
    offline: bool = False
    suite: str = "bookworm"
    mirror: str = ""

    @property
    def store(self) -> Store:
        """Finished artifacts: CACHE/artifacts."""
        return Store(self.cache / "artifacts")

    @property
    def scratch(self) -> Path:
        """Private folder for temporary files: CACHE/tmp."""
        return self.cache / "tmp"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the choices from the variables that sandbox/artifacts/README.md lists. Raises ArtifactError for a value that cannot be used."""
        chosen: dict[str, object] = {}
        for field, variable in _TEXT_VARIABLES.items():
            if variable in environ:
                chosen[field] = environ[variable].rstrip("/")
        assets = tuple(
            Path(folder)
            for variable in ("GPUFLEET_ASSETS", "KUBEBUILDER_ASSETS")
            for folder in environ.get(variable, "").split(os.pathsep)
            if folder
        )
        return cls(
            cache=cache_folder(environ),
            kubernetes_version=_version(environ.get("GPUFLEET_SANDBOX_KUBERNETES_VERSION", "")),
            assets=assets,
            offline=_flag("GPUFLEET_SANDBOX_OFFLINE", environ),
            **chosen,  # type: ignore[arg-type]
        )


_TEXT_VARIABLES = {
    "kubernetes_release_url": "GPUFLEET_SANDBOX_KUBERNETES_RELEASE_URL",
    "helm_release_url": "GPUFLEET_SANDBOX_HELM_RELEASE_URL",
    "etcd_release_url": "GPUFLEET_SANDBOX_ETCD_RELEASE_URL",
    "containerd_release_url": "GPUFLEET_SANDBOX_CONTAINERD_RELEASE_URL",
    "suite": "GPUFLEET_SANDBOX_SUITE",
    "mirror": "GPUFLEET_SANDBOX_MIRROR",
}


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that everything of the sandbox is written below."""
    if environ.get("GPUFLEET_SANDBOX_CACHE"):
        return Path(environ["GPUFLEET_SANDBOX_CACHE"]).absolute()
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return Path(base).absolute() / "gpufleet-dra"


def _version(text: str) -> str:
    if not text:
        return default_kubernetes_version()
    version = text.removeprefix("v")
    if not all(part.isdigit() for part in version.split(".")) or version.count(".") != 2:
        raise ArtifactError(f"GPUFLEET_SANDBOX_KUBERNETES_VERSION is {text!r}: give a full version such as {default_kubernetes_version()}.")
    return version


def _flag(variable: str, environ: Mapping[str, str]) -> bool:
    text = environ.get(variable, "").lower()
    if text not in _TRUE | _FALSE:
        raise ArtifactError(f"{variable} is {text!r}: give 1 or 0.")
    return text in _TRUE
