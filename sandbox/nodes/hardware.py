# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a host's machine is: its GPUs and switches, its kernel's modules and headers, and where its driver comes from. Written before the first boot."""
from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

from ..nvml.build import DRIVER_VERSION
from ..spec import DRIVERS, SYSTEMS
from . import layer, systems
from .kernel_module import nvidia_module
from .record import HostRecord

#: Files of hosts whose driver comes from packages, by package family and for any: what kmod and initramfs tools are elsewhere.
FROM_PACKAGES = Path(__file__).resolve().parent / "driver_from_packages"
EMULATOR = "/usr/local/lib/sandbox/libnvidia-ml.so.1"  # in the node layer: nvmlctl uses it where no driver is installed
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


def write(host: HostRecord) -> None:
    """Write what emulated-hardware and emulated-nvidia-driver read on the host, and the kernel's folders."""
    spec = host.spec
    from_packages = spec.get("driver", DRIVERS[0]) == "none"
    if not spec["gpus"] and not from_packages:
        return
    if spec["gpus"]:
        groups = [f"--gpu={group['model']}:{group['count']}" for group in spec["gpus"]]
        layer.write(host, "etc/sandbox/gpus", "".join(f"{argument}\n" for argument in [f"--seed={host.name}", *groups]))
    document = {
        "nvswitches": spec.get("nvswitches", 0), "secure_boot": spec.get("secure_boot", False), "nouveau": spec.get("nouveau", False),
        "driver_from_packages": from_packages,
    }
    layer.write(host, "etc/sandbox/hardware.json", json.dumps(document) + "\n")
    kernel = platform.release()  # hosts share the machine's
    modules = f"usr/lib/modules/{kernel}"
    if spec.get("headers", True):
        headers = f"usr/src/linux-headers-{kernel}"
        layer.write(host, f"{headers}/Makefile", "# Stands for the headers of the running kernel.\n")
        layer.link(host, f"{modules}/build", f"/{headers}")
    if from_packages:
        layer.write(host, f"{modules}/modules.order", "")
        layer.write(host, f"{modules}/modules.builtin", "")
        _take_driver_away(host, kernel)
    else:
        layer.write(host, f"{modules}/kernel/drivers/video/nvidia.ko", nvidia_module(DRIVER_VERSION, "open", kernel))


def _take_driver_away(host: HostRecord, kernel: str) -> None:
    """Hide the driver of the node layer, and lay down what stands for the tools that a driver's installation uses."""
    layer.write(host, "etc/sandbox/driver-from-packages", "")
    layer.write(host, f"boot/vmlinuz-{kernel}", "Stands for the running kernel.\n")
    for name in ("libnvidia-ml", "libcuda"):
        layer.hide(host, f"{_LIBRARIES}/{name}.so.1")
        layer.hide(host, f"{_LIBRARIES}/{name}.so.{DRIVER_VERSION}")
    layer.hide(host, "usr/bin/nvidia-smi")
    layer.link(host, "usr/local/bin/libnvidia-ml.so.1", EMULATOR)
    family = systems.family(host.spec.get("system", SYSTEMS[0]))
    for folder in ("any", family):
        shutil.copytree(FROM_PACKAGES / folder, host.upper, dirs_exist_ok=True)
