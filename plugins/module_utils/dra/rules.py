# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How NVIDIA's DRA driver derives names and attribute values from what NVML returns (driver 0.5.0, cmd/gpu-kubelet-plugin).

Each function states one rule. What the driver itself refuses to start with raises :class:`Unpublishable`, with the reason as its text.
"""
from __future__ import annotations

import re
from typing import Optional

BRANDS = {
    0: "Unknown", 1: "Quadro", 2: "Tesla", 3: "NVS", 4: "Grid", 5: "GeForce", 6: "Titan", 7: "NvidiaVApps", 8: "NvidiaVPC",
    9: "NvidiaVCS", 10: "NvidiaVWS", 11: "NvidiaCloudGaming", 12: "QuadroRTX", 13: "NvidiaRTX", 14: "Nvidia",
    15: "GeForceRTX", 16: "TitanRTX",
}  # fmt: skip
ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada Lovelace", 9: "Hopper",
    10: "Blackwell", 13: "Rubin", 0xFFFFFFFF: "Unknown",
}  # fmt: skip
ADDRESSING_MODES = {0: "None", 1: "HMM", 2: "ATS"}

# By NVML_GPU_INSTANCE_PROFILE_* (the enum, not the profile's id): compute slices and suffix of the profile text. 17 (3g+gfx) has no entry.
_PROFILE_TEXTS = {
    0: (1, ""), 1: (2, ""), 2: (3, ""), 3: (4, ""), 4: (7, ""), 5: (8, ""), 6: (6, ""), 7: (1, "+me"), 8: (2, "+me"), 9: (1, ""),
    10: (1, "+gfx"), 11: (2, "+gfx"), 12: (4, "+gfx"), 13: (1, "-me"), 14: (2, "-me"), 15: (1, "+me.all"), 16: (2, "+me.all"),
}  # fmt: skip
_SKIPPED_PRODUCTS = frozenset({"DGX Display", "NVIDIA DGX Display"})
_VERSION = re.compile(r"^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")
_PCI_ADDRESS = re.compile(r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$")
_GIB = 2**30
_MIB = 2**20


class Unpublishable(ValueError):
    """The driver's plugin ends at start with this GPU; the text says why."""


def is_skipped(product: str) -> bool:
    """Whether the driver leaves this product out everywhere (the display GPU of a DGX Station)."""
    return product in _SKIPPED_PRODUCTS


def brand(number: int) -> str:
    """Return the text for nvmlDeviceGetBrand."""
    if number not in BRANDS:
        raise Unpublishable(f"NVML brand {number} is unknown to it")
    return BRANDS[number]


def architecture(number: int) -> str:
    """Return the text for nvmlDeviceGetArchitecture."""
    if number not in ARCHITECTURES:
        raise Unpublishable(f"NVML architecture {number} is unknown to it")
    return ARCHITECTURES[number]


def addressing_mode(number: int) -> str:
    """Return the text for nvmlDeviceGetAddressingMode."""
    if number not in ADDRESSING_MODES:
        raise Unpublishable(f"NVML addressing mode {number} is unknown to it")
    return ADDRESSING_MODES[number]


def lenient_version(text: str) -> str:
    """Return a semantic version of three parts: leading zeros dropped, missing parts 0, pre-release and build kept."""
    match = _VERSION.match(text)
    if match is None:
        raise Unpublishable(f"version {text} has no semantic version form")
    parts = ".".join(str(int(match.group(place) or 0)) for place in (1, 2, 3))
    return parts + (match.group(4) or "") + (match.group(5) or "")


def cuda_version(number: int) -> str:
    """Return nvmlSystemGetCudaDriverVersion's number as a version: 13020 is 13.2.0."""
    return lenient_version(f"{number // 1000}.{number % 1000 // 10}")


def pci_bus_id(bus_id: str) -> str:
    """Return NVML's bus id as the standard attribute has it: lower case, a domain of four digits."""
    address = bus_id.lower()
    if address.startswith("0000") and address.index(":") == 8:
        address = address[4:]
    if not _PCI_ADDRESS.match(address):
        raise Unpublishable(f"PCI bus id {bus_id} has a domain above ffff or another form than domain:bus:device.function")
    return address


def profile_text(profile_enum: int, memory_mib: int, total_bytes: Optional[int]) -> str:
    """Return the profile as the driver writes it, from the enum, the profile's memory and the GPU's total memory.

    The memory part is round(ceil(8*m/T)/8 * ceil(T/GiB)), halves away from zero: eighths of the GPU, of its size in whole GiB.
    """
    if profile_enum not in _PROFILE_TEXTS:
        raise Unpublishable(f"GPU instance profile number {profile_enum} is unknown to it")
    if not total_bytes:
        raise Unpublishable("a GPU that offers MIG profiles does not tell its total memory")
    slices, suffix = _PROFILE_TEXTS[profile_enum]
    eighths = -(-8 * memory_mib * _MIB // total_bytes)
    total_gib = -(-total_bytes // _GIB)
    return f"{slices}g.{(eighths * total_gib + 4) // 8}gb{suffix}"


def gpu_device_name(minor: int) -> str:
    """Return the device name of a whole GPU; ``minor`` is the number of /dev/nvidiaN."""
    return f"gpu-{minor}"


def mig_device_name(minor: int, profile: str, profile_id: int, start: int) -> str:
    """Return the device name of a MIG device; ``profile_id`` is NVML's id (19, 14, 9, ...), not the enum."""
    text = re.sub(r"[^a-z0-9-]", "-", profile.lower().replace(".", ""))
    return f"gpu-{minor}-mig-{text}-{profile_id}-{start}"
