# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVIDIA's devices on PCI, as the kernel lists them whether a driver is there or not."""
from __future__ import annotations

from .node import Node

_DEVICES = "/sys/bus/pci/devices"
_NVIDIA = "10de"
_DISPLAY = ("0300", "0302")  # VGA controller, 3D controller
_SWITCH = "0680"  # bridge of another kind: NVSwitch
_MELLANOX = "15b3"
_INFINIBAND = "0207"
# How the management port of NVLink 5 switches names itself in its vital product data.
_NVLINK5_MARK = b"SW_MNG"


def read_pci(node: Node, devices: str = _DEVICES) -> dict[str, list[dict[str, str]]]:
    """Return ``pci`` of the driver facts: ``gpus`` and ``switches``, sorted by address; ids are four hexadecimal digits in lower case.

    Up to NVLink 4 switches are NVIDIA's PCI devices; those of NVLink 5 show an InfiniBand device of Mellanox (vendor 15b3) for their management.
    A GPU that is bound to a driver for virtual machines has its name as ``passed_to`` (vfio-pci, nvgrace-gpu-vfio-pci): NVML does not see it.
    """
    gpus: list[dict[str, str]] = []
    switches: list[dict[str, str]] = []
    infiniband: list[dict[str, str]] = []
    for address in node.names(devices):
        values: dict[str, str] = {name: _hex(node.text(f"{devices}/{address}/{name}")) for name in ("vendor", "device", "class")}
        vendor, device, kind = values["vendor"], values["device"], values["class"][:4]
        if vendor == _NVIDIA and kind in _DISPLAY:
            bound = node.real(f"{devices}/{address}/driver").rpartition("/")[2]
            gpus.append({"address": address, "device": device, "class": kind, **({"passed_to": bound} if bound.endswith("vfio-pci") else {})})
        elif vendor == _NVIDIA and kind == _SWITCH:
            switches.append({"address": address, "device": device, "vendor": vendor})
        elif vendor == _MELLANOX and kind == _INFINIBAND:
            infiniband.append({"address": address, "device": device, "vendor": vendor})
    if gpus and not switches:  # reading vital product data takes its time
        switches = [port for port in infiniband if _NVLINK5_MARK in _vpd(node, f"{devices}/{port['address']}/vpd")]
    return {"gpus": gpus, "switches": switches}


def _vpd(node: Node, path: str) -> bytes:
    try:
        return node.at(path).read_bytes()
    except OSError:
        return b""


def _hex(text: str | None) -> str:
    return (text or "").strip().lower().removeprefix("0x")
