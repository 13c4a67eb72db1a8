# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the parts of this room tell each other about a runtime and its CDI settings."""
from __future__ import annotations

from dataclasses import dataclass

from ..reasons import Finding

#: Where the DRA driver, and NVIDIA's container toolkit, put their specifications.
SPEC_DIRS = ("/etc/cdi", "/var/run/cdi")


@dataclass(frozen=True)
class Cdi:
    """The CDI settings of a runtime and where they were read."""

    enabled: bool
    spec_dirs: tuple[str, ...]
    source: str

    def serves(self, wanted: tuple[str, ...]) -> bool:
        """Return whether CDI is on and every wanted folder is read."""
        return self.enabled and {real(folder) for folder in wanted} <= {real(folder) for folder in self.spec_dirs}

    def same(self, other: Cdi) -> bool:
        """Return whether the settings are the same, wherever they were read."""
        return self.enabled == other.enabled and list(map(real, self.spec_dirs)) == list(map(real, other.spec_dirs))

    def with_dirs(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Return the folders that are read, and after them the wanted ones that are not; what a site added stays."""
        known = {real(folder) for folder in self.spec_dirs}
        return (*self.spec_dirs, *(folder for folder in wanted if real(folder) not in known))

    def as_dict(self) -> dict[str, object]:
        """Return plain data."""
        return {"enabled": self.enabled, "spec_dirs": list(self.spec_dirs), "source": self.source}


@dataclass(frozen=True)
class Runtime:
    """A container runtime as found. ``config_file`` is its main configuration; ``pid`` is 0 when it does not run."""

    name: str  # containerd, crio, k3s, rke2
    unit: str
    active: bool
    pid: int
    binary: str
    version: tuple[int, int, int]
    version_text: str
    config_file: str

    @property
    def embedded(self) -> bool:
        """Return whether a Kubernetes distribution brings it and writes its configuration."""
        return self.name in ("k3s", "rke2")


@dataclass(frozen=True)
class FileChange:
    """A file as it is to be. ``content`` is None for one that has to go, ``before`` for one that is not there."""

    path: str
    content: str | None
    before: str | None

    def as_dict(self) -> dict[str, object]:
        """Return plain data."""
        return {"path": self.path, "content": self.content, "before": self.before}


@dataclass(frozen=True)
class Plan:
    """What is in effect on disk (of a removal what will be), what is to be written, and what speaks against it."""

    effective: Cdi
    files: tuple[FileChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    read_files: tuple[str, ...] = ()  # the files and folders that the configuration is read from


def real(folder: str) -> str:
    """Return a folder's name without the usual link /var/run and without a slash at its end."""
    folder = folder.rstrip("/") or "/"
    return folder[len("/var"):] if folder == "/var/run" or folder.startswith("/var/run/") else folder
