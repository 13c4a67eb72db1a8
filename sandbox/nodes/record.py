# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known about one host of a sandbox, and the files that it owns below nodes/NAME."""
from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..processes import PidFile
from ..state import write_json


@dataclass(frozen=True)
class HostRecord:
    """One host. Everything that its supervisor needs stands here, so that a host boots again without the spec file."""

    name: str
    folder: Path
    slot: int
    address: str
    mac: str
    gateway: str
    prefix_length: int
    service_network: str  # routed to the gateway; empty on a host without Kubernetes
    bridge: str
    veth: str
    spec: dict[str, Any]  # the host's part of the spec file
    kubernetes: bool
    rootfs: Path
    layer: Path
    cgroups: tuple[Path, ...]  # cgroup v1: the host's own group of each hierarchy; empty with v2
    scope: str  # cgroup v2: the host's systemd scope; empty with v1
    packages: bool = False  # the sandbox has a package server

    @property
    def root(self) -> Path:
        """Mount point of the host's root, in the supervisor's mount namespace only."""
        return self.folder / "root"

    @property
    def upper(self) -> Path:
        """Upper layer of the host's root: what the host has written."""
        return self.folder / "upper"

    @property
    def boot_id(self) -> Path:
        """Where the host writes the id of its boot; absent until then."""
        return self.upper / "etc" / "sandbox" / "boot_id"

    @property
    def console(self) -> Path:
        """What systemd says at boot."""
        return self.folder / "console.log"

    @property
    def supervisor_log(self) -> Path:
        """What the host's supervisor says."""
        return self.folder / "supervisor.log"

    @property
    def pid_file(self) -> PidFile:
        """The outermost process of the host on the machine: killing it is a power cut."""
        return PidFile(self.folder / "supervisor.json")

    def groups(self) -> tuple[Path, ...]:
        """Return the cgroups, as the machine sees them, that hold all processes of the host."""
        return self.cgroups or (Path("/sys/fs/cgroup/system.slice") / self.scope,)

    def bind_sources(self) -> dict[str, Path]:
        """Return folders on the machine's own file system by their place in the host: overlay on overlay does not work."""
        return {"/var/lib/containerd": self.folder / "containerd", "/var/lib/kubelet": self.folder / "kubelet"}

    def save(self) -> None:
        """Write nodes/NAME/node.json."""
        document = dataclasses.asdict(self)
        for key in ("folder", "rootfs", "layer"):
            document[key] = str(document[key])
        document["cgroups"] = [str(group) for group in self.cgroups]
        write_json(self.folder / "node.json", document)


def load(folder: Path) -> HostRecord:
    """Read nodes/NAME/node.json. Raises OSError when there is none."""
    document = json.loads((folder / "node.json").read_text())
    for key in ("folder", "rootfs", "layer"):
        document[key] = Path(document[key])
    document["cgroups"] = tuple(Path(group) for group in document["cgroups"])
    return HostRecord(**document)
