# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""MIG profile tables by GPU model, for planning where no GPU can be asked.

Nothing that changes a GPU reads these tables: on a node every profile comes from the driver (mig/catalogue.py). Names differ between boards and drivers even
with one PCI id (GB200: 23 or 24 GB for 1g), so a plan made from a table is a forecast.

Geometry: NVIDIA MIG User Guide, and ``nvidia-smi mig -lgipp`` as H100 80GB, H100 NVL and RTX PRO 6000 boards print it. Memory is what ``-lgip`` prints in
GiB with two digits; all values seen are steps of 1/16 GiB (21.62 stands for 21.625).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from ..reasons import FleetError, finding


@dataclass(frozen=True)
class KnownProfile:
    """A GPU instance profile. ``starts`` and ``size`` in memory slots; ``memory_mib`` is None where nobody has published it."""

    name: str
    id: int
    enum: int
    compute_slices: int
    size: int
    starts: tuple[int, ...]
    count: int
    memory_mib: Optional[int]


@dataclass(frozen=True)
class KnownModel:
    """A GPU model by the key that the NVML emulator uses, too.

    ``pci_device_ids`` are device and vendor, that of the named product first, then boards with the same table. ``memory_mib`` is the GPU's total.
    ``source`` says where the numbers were seen, ``inferred`` which of them were not; it is empty when all were.
    """

    key: str
    product: str
    pci_device_ids: tuple[str, ...]
    memory_mib: int
    reset_free: bool
    profiles: tuple[KnownProfile, ...]
    source: str
    inferred: str = ""

    @property
    def slots(self) -> int:
        """Return the number of memory slots."""
        return max(start + profile.size for profile in self.profiles for start in profile.starts)


def _seven_slices(
    gb: tuple[int, int, int, int], memory_mib: tuple[Optional[int], Optional[int], Optional[int], Optional[int]],
) -> tuple[KnownProfile, ...]:
    """Return the table of a GPU with seven compute slices over eight memory slots.

    Both arguments go by share of the memory: an eighth (1g, 1g+me), a quarter (1g with double memory, 2g), a half (3g, 4g), all of it (7g). ``gb`` is the
    number in the profile's name.
    """
    eighth, quarter, half, whole = zip(gb, memory_mib)
    ones, pairs = tuple(range(7)), (0, 2, 4, 6)
    return (
        KnownProfile(f"1g.{eighth[0]}gb", 19, 0, 1, 1, ones, 7, eighth[1]),
        KnownProfile(f"1g.{eighth[0]}gb+me", 20, 7, 1, 1, ones, 1, eighth[1]),
        KnownProfile(f"1g.{quarter[0]}gb", 15, 9, 1, 2, pairs, 4, quarter[1]),
        KnownProfile(f"2g.{quarter[0]}gb", 14, 1, 2, 2, pairs[:3], 3, quarter[1]),
        KnownProfile(f"3g.{half[0]}gb", 9, 2, 3, 4, (0, 4), 2, half[1]),
        KnownProfile(f"4g.{half[0]}gb", 5, 3, 4, 4, (0,), 1, half[1]),
        KnownProfile(f"7g.{whole[0]}gb", 0, 4, 7, 8, (0,), 1, whole[1]),
    )


_A30 = (
    KnownProfile("1g.6gb", 14, 0, 1, 1, (0, 1, 2, 3), 4, 5952),
    KnownProfile("1g.6gb+me", 21, 7, 1, 1, (0, 1, 2, 3), 1, 5952),
    KnownProfile("2g.12gb", 5, 1, 2, 2, (0, 2), 2, 11968),
    KnownProfile("2g.12gb+me", 6, 8, 2, 2, (0, 2), 1, 11968),
    KnownProfile("4g.24gb", 0, 3, 4, 4, (0,), 1, 24000),
)

_RTX_PRO_6000 = (
    KnownProfile("1g.24gb", 14, 0, 1, 3, (0, 3, 6, 9), 4, 24192),
    KnownProfile("1g.24gb+me", 21, 7, 1, 3, (0, 3, 6, 9), 1, 24192),
    KnownProfile("1g.24gb+gfx", 47, 10, 1, 3, (0, 3, 6, 9), 4, 24192),
    KnownProfile("1g.24gb+me.all", 65, 15, 1, 3, (0, 3, 6, 9), 1, 24192),
    KnownProfile("1g.24gb-me", 67, 13, 1, 3, (0, 3, 6, 9), 4, 24192),
    KnownProfile("2g.48gb", 5, 1, 2, 6, (0, 6), 2, 48512),
    KnownProfile("2g.48gb+gfx", 35, 11, 2, 6, (0, 6), 2, 48512),
    KnownProfile("2g.48gb+me.all", 64, 16, 2, 6, (0, 6), 1, 48512),
    KnownProfile("2g.48gb-me", 66, 14, 2, 6, (0, 6), 2, 48512),
    KnownProfile("4g.96gb", 0, 3, 4, 12, (0,), 1, 97280),
    KnownProfile("4g.96gb+gfx", 32, 12, 4, 12, (0,), 1, 97280),
)

_H100_80 = _seven_slices((10, 20, 40, 80), (9984, 20096, 40448, 81152))
_A100_80 = _seven_slices((10, 20, 40, 80), (9728, 19968, 40192, 80384))
_H200 = _seven_slices((18, 35, 71, 141), (16384, 33280, 71168, 143360))
_GUIDE = "NVIDIA MIG User Guide"

_MODELS = (
    KnownModel("a100-40gb-sxm4", "NVIDIA A100-SXM4-40GB", ("0x20B010DE", "0x20B110DE", "0x20F110DE", "0x20F610DE"), 40960, False,
               _seven_slices((5, 10, 20, 40), (4864, 9856, 19968, 40192)), f"{_GUIDE}; go-nvml's A100 mock for the memory"),
    KnownModel("a100-80gb-sxm4", "NVIDIA A100-SXM4-80GB", ("0x20B210DE", "0x20F310DE"), 81920, False, _A100_80,
               f"{_GUIDE}; -lgip in mig-parted issue 97", "memory of 7g.80gb (boards show 78.50 to 79.25 GiB)"),
    KnownModel("a100-80gb-pcie", "NVIDIA A100 80GB PCIe", ("0x20B510DE", "0x20F510DE"), 81920, False, _A100_80,
               f"{_GUIDE}; -lgip in mig-parted issue 97", "memory of 7g.80gb (boards show 78.50 to 79.25 GiB)"),
    KnownModel("a30", "NVIDIA A30", ("0x20B710DE",), 24576, False, _A30, "-lgip and -lgipp of A30 boards",
               "the id of 2g.12gb+me (by the pattern of RTX PRO boards, which also have four slices); memory, of which boards show several values"),
    KnownModel("h100-80gb-hbm3", "NVIDIA H100 80GB HBM3", ("0x233010DE", "0x232410DE"), 81559, True, _H100_80, "-lgip and -lgipp of H100 SXM5 boards"),
    KnownModel("h100-80gb-pcie", "NVIDIA H100 PCIe", ("0x233110DE", "0x232210DE"), 81559, True, _H100_80, "-lgip of an H100 PCIe board, driver 570.169",
               "placements (those of H100 SXM5)"),
    KnownModel("h100-nvl-94gb", "NVIDIA H100 NVL", ("0x232110DE", "0x233A10DE"), 95830, True,
               _seven_slices((12, 24, 47, 94), (11008, 22144, 47488, 95360)), "-lgip and -lgipp of an H100 NVL board"),
    KnownModel("h200-sxm", "NVIDIA H200", ("0x233510DE",), 143771, True, _H200, "-lgip in mig-parted issue 120", "placements (those of H100)"),
    KnownModel("h200-nvl", "NVIDIA H200 NVL", ("0x233B10DE",), 143771, True, _H200, "-lgip in mig-parted issue 120", "placements (those of H100)"),
    KnownModel("gh200-96gb", "NVIDIA GH200 480GB", ("0x234210DE",), 97871, True, _seven_slices((12, 24, 48, 96), (11264, 23552, 47616, 95232)),
               f"{_GUIDE}; -lgip of a GH200 board", "placements (those of H100)"),
    KnownModel("gh200-144gb", "NVIDIA GH200 144G HBM3e", ("0x234810DE",), 146831, True, _seven_slices((18, 36, 72, 144), (17920, 36096, None, None)),
               "-lgip in mig-parted pull request 139", "placements (those of H100); memory of 3g.72gb, 4g.72gb and 7g.144gb"),
    KnownModel("rtx-pro-6000-server", "NVIDIA RTX PRO 6000 Blackwell Server Edition", ("0x2BB510DE",), 97887, True, _RTX_PRO_6000,
               "-lgip and -lgipp of an RTX PRO 6000 Server board, driver 610.43.02"),
    KnownModel("b200", "NVIDIA B200", ("0x290110DE",), 183359, True, _seven_slices((23, 45, 90, 180), (22528, 45312, None, None)),
               "-lgip in mig-parted pull requests 166 and 187", "placements (those of H100); memory of 3g, 4g and 7g"),
    KnownModel("gb200", "NVIDIA GB200", ("0x294110DE",), 189471, True, _seven_slices((23, 47, 93, 186), (22528, 46592, None, None)),
               "-lgip in mig-parted issue 227", "placements (those of H100); memory of 3g, 4g and 7g"),
)
MODELS: dict[str, KnownModel] = {model.key: model for model in _MODELS}


def known_model(key: str) -> KnownModel:
    """Return the model with this key. Raises FleetError UnknownGpuModel, which lists all keys."""
    if key in MODELS:
        return MODELS[key]
    raise FleetError(finding("UnknownGpuModel", key, {"known": sorted(MODELS)}, known=", ".join(sorted(MODELS))))


def model_of_board(pci_device_id: str) -> KnownModel | None:
    """Return the model of a board with this PCI device id, such as ``0x233010DE``, or None for one that is not known here."""
    return next((model for model in _MODELS if pci_device_id.lower() in (device.lower() for device in model.pci_device_ids)), None)
