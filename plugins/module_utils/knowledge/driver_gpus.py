# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each GPU asks of its driver, by PCI device id, for hosts where no driver can be asked yet.

Sources: NVIDIA MIG User Guide (620 edition) and GPU Operator 26.7 for the first versions; the README of NVIDIA's open kernel modules and the PCI ID
Repository for device ids; NVIDIA's transition notes on open kernel modules for the flavours. An id that is not listed is no reason to refuse anything.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .driver_branches import LAST_FOR_VOLTA

OPEN_REQUIRED = "open required"
OPEN_RECOMMENDED = "open recommended"
PROPRIETARY_REQUIRED = "proprietary required"


@dataclass(frozen=True)
class GpuKind:
    """GPUs that ask the same of a driver.

    ``device_ids`` are four lower-case hexadecimal digits each. ``first`` is the first version of the oldest branch that drives the GPU, empty when every
    branch here does; ``last_branch`` the last branch that does, None when there is no end in sight. ``nvl_rack`` is said of products whose NVLink goes
    through the rack (GB200 NVL72), and which therefore have IMEX and no fabric manager.
    """

    product: str
    architecture: str
    device_ids: tuple[str, ...]
    flavour: str
    first: str = ""
    last_branch: Optional[int] = None
    nvl_rack: bool = False


GPU_KINDS = (
    GpuKind("P4, P40, P100", "Pascal", ("1bb3", "1b38", "15f7", "15f8", "15f9"), PROPRIETARY_REQUIRED, last_branch=LAST_FOR_VOLTA),
    GpuKind("V100", "Volta", ("1db1", "1db2", "1db3", "1db4", "1db5", "1db6", "1db7", "1db8", "1df5", "1df6"),
            PROPRIETARY_REQUIRED, last_branch=LAST_FOR_VOLTA),
    GpuKind("T4", "Turing", ("1eb8",), OPEN_RECOMMENDED),
    GpuKind("Quadro RTX 6000, RTX 8000", "Turing", ("1e30", "1e78"), OPEN_RECOMMENDED),
    GpuKind("A100, A800", "Ampere", ("20b0", "20b1", "20b2", "20b3", "20b5", "20f1", "20f3", "20f5", "20f6"), OPEN_RECOMMENDED),
    GpuKind("A30", "Ampere", ("20b7",), OPEN_RECOMMENDED),
    GpuKind("A2, A10, A16, A40", "Ampere", ("25b6", "2235", "2236", "2237", "2238"), OPEN_RECOMMENDED),
    GpuKind("L2, L4, L20, L40, L40S", "Ada Lovelace", ("27b6", "27b8", "26ba", "26b5", "26b9"), OPEN_RECOMMENDED),
    GpuKind("H100, H800, H20", "Hopper", ("2321", "2322", "2324", "2329", "232c", "2330", "2331", "2336", "2339", "233a"), OPEN_RECOMMENDED),
    GpuKind("H200, H200 NVL", "Hopper", ("2335", "233b"), OPEN_RECOMMENDED, first="550.90.07"),
    GpuKind("GH200", "Grace Hopper", ("2342", "2345", "2348"), OPEN_REQUIRED),
    GpuKind("B200", "Blackwell", ("2901", "2909"), OPEN_REQUIRED, first="570.133.20"),
    GpuKind("GB200", "Grace Blackwell", ("2941",), OPEN_REQUIRED, first="570.133.20", nvl_rack=True),
    GpuKind("B300", "Blackwell", ("3182",), OPEN_REQUIRED, first="580.82.07"),
    GpuKind("GB300", "Grace Blackwell", ("31c2", "31c3"), OPEN_REQUIRED, first="580.82.07", nvl_rack=True),
    GpuKind("RTX PRO 6000, RTX 6000D Blackwell", "Blackwell", ("2bb1", "2bb4", "2bb5", "2bb9"), OPEN_REQUIRED, first="580.65.06"),
    GpuKind("RTX PRO 5000 Blackwell", "Blackwell", ("2bb3",), OPEN_REQUIRED, first="575.57.08"),
    GpuKind("RTX PRO 4000, 4500 Blackwell", "Blackwell", ("2c31", "2c33", "2c34", "2c3a"), OPEN_REQUIRED, first="575.64"),
)

NVSWITCHES = {"1ac2": "V100", "1af1": "A100", "22a3": "H100, H200"}
"""PCI device ids of NVSwitches and the boards that they are on. NVLink 5 switches (B200, B300) show as InfiniBand devices instead."""


def gpu_kind(device_id: str) -> Optional[GpuKind]:
    """Return the kind of the GPU with this PCI device id (four hexadecimal digits, any case), None for one that is not listed."""
    return next((kind for kind in GPU_KINDS if device_id.lower() in kind.device_ids), None)
