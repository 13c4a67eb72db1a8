# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The device nodes of MIG instances, /dev/nvidia-caps/nvidia-capN.

The kernel driver only names them, below /proc/driver/nvidia/capabilities; NVIDIA's tools make them when they run. NVML alone does not, so a process that opens
a new instance by its node would find none until somebody has run nvidia-smi. Nor does anybody remove the nodes of instances that are gone, or put one right
whose number the driver has changed since.
"""
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

_CAPABILITIES = "proc/driver/nvidia/capabilities"
_MINORS = "proc/driver/nvidia-caps/mig-minors"
_DEVICES = "proc/devices"


class NodeSystem(NamedTuple):
    """The system calls of this file."""

    mknod: Callable[[str, int, int], None] = os.mknod
    lstat: Callable[[str], os.stat_result] = os.lstat


@dataclass
class NodeChanges:
    """Device nodes made (or made anew) and removed, as paths, and a sentence for each that could not be."""

    made: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, list[str]]:
        """Return plain data for results."""
        return {"made": self.made, "removed": self.removed, "problems": self.problems}


class _Node(NamedTuple):
    """A node as the driver states it."""

    path: Path
    device: int
    mode: int


def put_device_nodes_right(
    before: dict[str, Any], after: dict[str, Any], driver_root: str, root: str = "/", system: NodeSystem = NodeSystem(),  # noqa: B008 - immutable
) -> NodeChanges:
    """Make the device nodes that the instances of the NVML facts document ``after`` need, and remove those of instances that only ``before`` has.

    Number and permissions are those that the driver states, as nvidia-modprobe takes them, and the outcome is read back. Does nothing where the driver has no
    capability files, and leaves a node alone for which the driver says so (NVreg_ModifyDeviceFiles). ``root`` is the folder that holds /proc and /dev.
    """
    changes = NodeChanges()
    capabilities = Path(root) / _CAPABILITIES
    if not capabilities.is_dir():
        return changes
    folder = _device_folder(driver_root, root) / "nvidia-caps"
    for name in _access_names(after):
        try:
            node = _stated(capabilities / name, folder, root)
            if node is not None and not _is_right(node, system):
                _make(node, system)
                changes.made.append(str(node.path))
        except (OSError, ValueError, KeyError) as error:
            why = f"{capabilities / name} has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
            changes.problems.append(f"The device node for {capabilities / name} could not be made: {why}. Run nvidia-smi -L as root on the node to make it.")
    _remove_stale(sorted(set(_access_names(before)) - set(_access_names(after))), folder, root, system, changes)
    return changes


def wrong_device_nodes(nvml: dict[str, Any], driver_root: str, root: str = "/", system: NodeSystem = NodeSystem()) -> list[str]:  # noqa: B008 - immutable
    """Return the paths of the nodes that :func:`put_device_nodes_right` would make. Touches nothing."""
    capabilities = Path(root) / _CAPABILITIES
    folder = _device_folder(driver_root, root) / "nvidia-caps"
    wrong = []
    for name in _access_names(nvml) if capabilities.is_dir() else ():
        try:
            node = _stated(capabilities / name, folder, root)
        except (OSError, ValueError, KeyError):
            continue
        if node is not None and not _is_right(node, system):
            wrong.append(str(node.path))
    return wrong


def _device_folder(driver_root: str, root: str) -> Path:
    """Return the folder with the driver's device nodes: its own root may have one."""
    own = Path(root) / driver_root.strip("/") / "dev"
    return own if (own / "nvidiactl").exists() else Path(root) / "dev"


def _access_names(nvml: dict[str, Any]) -> Iterator[str]:
    """Yield the name of each instance's capability file, such as ``gpu0/mig/gi7/ci0/access``."""
    for gpu in nvml["gpus"]:
        for instance in gpu["mig"]["instances"]:
            name = f"gpu{gpu['minor']}/mig/gi{instance['gpu_instance_id']}"
            yield f"{name}/access"
            for compute in instance["compute_instances"]:
                yield f"{name}/ci{compute['compute_instance_id']}/access"


def _stated(access: Path, folder: Path, root: str) -> Optional[_Node]:
    """Return the node that a capability file names, None when it is to be left alone. Raises OSError, ValueError, or KeyError for a field that is not there."""
    lines = access.read_text(encoding="ascii").splitlines()
    fields = {name: int(value) for name, _colon, value in (line.partition(":") for line in lines) if value}
    minor, mode = fields["DeviceFileMinor"], fields["DeviceFileMode"]
    # 0: the administrator has told the driver to leave its device nodes alone.
    return _Node(folder / f"nvidia-cap{minor}", os.makedev(_major(root), minor), mode) if fields["DeviceFileModify"] else None


def _is_right(node: _Node, system: NodeSystem) -> bool:
    try:
        found = system.lstat(str(node.path))
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == node.device and stat.S_IMODE(found.st_mode) == node.mode


def _make(node: _Node, system: NodeSystem) -> None:
    node.path.parent.mkdir(mode=0o755, exist_ok=True)
    node.path.unlink(missing_ok=True)
    system.mknod(str(node.path), stat.S_IFCHR | node.mode, node.device)
    node.path.chmod(node.mode)  # mknod obeys the umask
    if not _is_right(node, system):
        raise ValueError(f"{node.path} is not what it was made as")


def _remove_stale(names: list[str], folder: Path, root: str, system: NodeSystem, changes: NodeChanges) -> None:
    """Remove the nodes of instances that are gone; the driver's table tells their numbers, and a node of any other number is not touched."""
    table = _minors(Path(root) / _MINORS) if names else {}
    for name in names:
        minor = table.get(name.replace("/mig/", "/"))
        if minor is None:
            continue
        path = folder / f"nvidia-cap{minor}"
        try:
            found = system.lstat(str(path))
            if stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(_major(root), minor):
                path.unlink()
                changes.removed.append(str(path))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            changes.problems.append(f"The device node {path} of an instance that is gone could not be removed: {error}.")


def _minors(table: Path) -> dict[str, int]:
    """Return the driver's table of minors, by names such as ``gpu0/gi7/access``; empty where it has none."""
    try:
        rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _major(root: str) -> int:
    devices = Path(root) / _DEVICES
    for line in devices.read_text(encoding="ascii").splitlines():
        number, _space, name = line.strip().partition(" ")
        if name == "nvidia-caps":
            return int(number)
    raise ValueError(f"{devices} has no nvidia-caps")
