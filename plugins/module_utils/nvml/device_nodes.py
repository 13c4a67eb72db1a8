# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The device nodes of MIG instances, /dev/nvidia-caps/nvidia-capN.

The kernel driver only names them, below /proc/driver/nvidia/capabilities; NVIDIA's tools make them when they run. NVML alone does not, so a process that opens
a new instance by its node would find none until somebody has run nvidia-smi.
"""
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

_CAPABILITIES = "proc/driver/nvidia/capabilities"
_DEVICES = "proc/devices"


def make_device_nodes(nvml: dict[str, Any], driver_root: str, root: str = "/", mknod: Callable[[str, int, int], None] = os.mknod) -> list[str]:
    """Make the device nodes that the instances of an NVML facts document lack. Returns a sentence for each that could not be made.

    Number and permissions are those that the driver states, as nvidia-modprobe takes them. Does nothing where the driver has no capability files. ``root`` is
    the folder that holds /proc and /dev.
    """
    capabilities = Path(root) / _CAPABILITIES
    if not capabilities.is_dir():
        return []
    folder = _device_folder(driver_root, root) / "nvidia-caps"
    problems = []
    for access in _access_files(nvml, capabilities):
        try:
            _make(access, folder, _major(Path(root) / _DEVICES), mknod)
        except (OSError, ValueError, KeyError) as error:
            why = f"{access} has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
            problems.append(f"The device node for {access} could not be made: {why}. Run nvidia-smi -L as root on the node to make it.")
    return problems


def _device_folder(driver_root: str, root: str) -> Path:
    """Return the folder with the driver's device nodes: its own root may have one."""
    own = Path(root) / driver_root.strip("/") / "dev"
    return own if (own / "nvidiactl").exists() else Path(root) / "dev"


def _access_files(nvml: dict[str, Any], capabilities: Path) -> Iterator[Path]:
    for gpu in nvml["gpus"]:
        for instance in gpu["mig"]["instances"]:
            folder = capabilities / f"gpu{gpu['minor']}" / "mig" / f"gi{instance['gpu_instance_id']}"
            yield folder / "access"
            for compute in instance["compute_instances"]:
                yield folder / f"ci{compute['compute_instance_id']}" / "access"


def _make(access: Path, folder: Path, major: int, mknod: Callable[[str, int, int], None]) -> None:
    lines = access.read_text(encoding="ascii").splitlines()
    fields = {name: int(value) for name, _colon, value in (line.partition(":") for line in lines) if value}
    node, mode = folder / f"nvidia-cap{fields['DeviceFileMinor']}", fields["DeviceFileMode"]
    # 0: the administrator has told the driver to leave its device nodes alone (module option NVreg_ModifyDeviceFiles).
    if node.exists() or not fields["DeviceFileModify"]:
        return
    folder.mkdir(mode=0o755, exist_ok=True)
    mknod(str(node), stat.S_IFCHR | mode, os.makedev(major, fields["DeviceFileMinor"]))
    node.chmod(mode)  # mknod obeys the umask


def _major(devices: Path) -> int:
    for line in devices.read_text(encoding="ascii").splitlines():
        number, _space, name = line.strip().partition(" ")
        if name == "nvidia-caps":
            return int(number)
    raise ValueError(f"{devices} has no nvidia-caps")
