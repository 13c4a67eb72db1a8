# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the kernel module shows outside of NVML: its /proc tree and its device nodes."""
from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from .library import Emulator, EmulatorError

#: Majors of the device nodes. Only the first is fixed by the kernel's list; the others are of the dynamic range.
FRONTEND_MAJOR, CAPS_MAJOR, UVM_MAJOR = 195, 511, 508
CONTROL_MINOR = 255
CONFIG_MINOR, MONITOR_MINOR = 1, 2
#: The table of capability minors covers this many GPUs whatever the machine has; each has 15 GPU instances of 8 compute instances.
TABLE_GPUS, TABLE_GPU_INSTANCES, TABLE_COMPUTE_INSTANCES = 32, 15, 8


#: Flavour of the module -> how its version file calls it.
FLAVOURS = {"open": "Open Kernel Module for x86_64", "proprietary": "x86_64 Kernel Module"}


def write_proc_tree(emulator: Emulator, root: Path, version: str = "", flavour: str = "open") -> None:
    """Write the module's tree (version, gpus, capabilities, and nvidia-caps beside it) below ``root``, such as /proc/driver/nvidia.

    ``version``: of the module (default: the library's); ``flavour``: a key of FLAVOURS.
    """
    name = FLAVOURS[flavour]
    _write(root / "version", f"NVRM version: NVIDIA UNIX {name}  {version or emulator.driver_version}  Release Build  (emulated)\n")
    for gpu in emulator.show()["gpus"]:
        _write(root / "gpus" / gpu["pci_bus_id"] / "information", _information(gpu))
        (root / "capabilities" / f"gpu{gpu['minor']}" / "mig").mkdir(parents=True, exist_ok=True)
    _write(root / "capabilities" / "mig" / "config", _access_text(CONFIG_MINOR, 0o400))
    _write(root / "capabilities" / "mig" / "monitor", _access_text(MONITOR_MINOR, 0o444))
    _write(root.parent / "nvidia-caps" / "mig-minors", _minors_table(emulator))


def make_device_nodes(emulator: Emulator, root: Path) -> None:
    """Make the module's device nodes below ``root``, such as /dev. Raises EmulatorError without the privilege to do so."""
    nodes = [("nvidiactl", FRONTEND_MAJOR, CONTROL_MINOR, 0o666)]
    nodes += [(f"nvidia{gpu['minor']}", FRONTEND_MAJOR, gpu["minor"], 0o666) for gpu in emulator.show()["gpus"]]
    nodes += [("nvidia-uvm", UVM_MAJOR, 0, 0o666), ("nvidia-uvm-tools", UVM_MAJOR, 1, 0o666)]
    nodes += [
        (f"nvidia-caps/nvidia-cap{CONFIG_MINOR}", CAPS_MAJOR, CONFIG_MINOR, 0o400),
        (f"nvidia-caps/nvidia-cap{MONITOR_MINOR}", CAPS_MAJOR, MONITOR_MINOR, 0o444),
    ]
    for name, major, minor, mode in nodes:
        _make_node(root / name, os.makedev(major, minor), mode)


def _information(gpu: dict[str, Any]) -> str:
    fields = {
        "Model": gpu["product"],
        "GPU UUID": gpu["uuid"],
        "Bus Type": "PCIe",
        "Bus Location": gpu["pci_bus_id"],
        "Device Minor": gpu["minor"],
    }
    return "".join(f"{name + ':':<17}{value}\n" for name, value in fields.items())


def _access_text(minor: int, mode: int) -> str:
    return f"DeviceFileMinor: {minor}\nDeviceFileMode: {mode}\nDeviceFileModify: 1\n"


def _minors_table(emulator: Emulator) -> str:
    lines = [f"config {CONFIG_MINOR}", f"monitor {MONITOR_MINOR}"]
    for gpu in range(TABLE_GPUS):
        for gi in range(TABLE_GPU_INSTANCES):
            lines.append(f"gpu{gpu}/gi{gi}/access {emulator.gpu_instance_minor(gpu, gi)}")
            for ci in range(TABLE_COMPUTE_INSTANCES):
                lines.append(f"gpu{gpu}/gi{gi}/ci{ci}/access {emulator.compute_instance_minor(gpu, gi, ci)}")
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    """Write by renaming, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text)
    temporary.chmod(0o444)
    temporary.replace(path)


def _make_node(path: Path, device: int, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        status = path.lstat()
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == device:
            return
        path.unlink()
    except FileNotFoundError:
        pass
    try:
        os.mknod(path, stat.S_IFCHR | mode, device)
        path.chmod(mode)
    except PermissionError as error:
        raise EmulatorError(f"Cannot make the device node {path}: {error.strerror}.") from error
