# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPUs for the tests, as NVML facts: the profile tables of NVIDIA's MIG User Guide and of published nvidia-smi output, not of our emulator."""
from __future__ import annotations

from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.mig.catalogue import Gpu, gpu_from_facts

# name, id, enum, compute slices, placement size, starts, instance count, memory MiB
SEVEN_SLICE_H100 = [
    ("1g.10gb", 19, 0, 1, 1, range(7), 7, 9984), ("1g.10gb+me", 20, 7, 1, 1, range(7), 1, 9984), ("1g.20gb", 15, 9, 1, 2, (0, 2, 4, 6), 4, 20096),
    ("2g.20gb", 14, 1, 2, 2, (0, 2, 4), 3, 20096), ("3g.40gb", 9, 2, 3, 4, (0, 4), 2, 40448), ("4g.40gb", 5, 3, 4, 4, (0,), 1, 40448),
    ("7g.80gb", 0, 4, 7, 8, (0,), 1, 81152),
]
RTX_PRO_6000 = [
    ("1g.24gb", 14, 0, 1, 3, (0, 3, 6, 9), 4, 24192), ("1g.24gb+me", 21, 7, 1, 3, (0, 3, 6, 9), 1, 24192),
    ("1g.24gb+gfx", 47, 10, 1, 3, (0, 3, 6, 9), 4, 24192), ("1g.24gb+me.all", 65, 15, 1, 3, (0, 3, 6, 9), 1, 24192),
    ("1g.24gb-me", 67, 13, 1, 3, (0, 3, 6, 9), 4, 24192), ("2g.48gb", 5, 1, 2, 6, (0, 6), 2, 48512), ("2g.48gb+gfx", 35, 11, 2, 6, (0, 6), 2, 48512),
    ("2g.48gb+me.all", 64, 16, 2, 6, (0, 6), 1, 48512), ("2g.48gb-me", 66, 14, 2, 6, (0, 6), 2, 48512), ("4g.96gb", 0, 3, 4, 12, (0,), 1, 97280),
    ("4g.96gb+gfx", 32, 12, 4, 12, (0,), 1, 97280),
]
A30 = [
    ("1g.6gb", 14, 0, 1, 1, range(4), 4, 5836), ("1g.6gb+me", 21, 7, 1, 1, range(4), 1, 5836), ("2g.12gb", 5, 1, 2, 2, (0, 2), 2, 11672),
    ("2g.12gb+me", 6, 8, 2, 2, (0, 2), 1, 11672), ("4g.24gb", 0, 3, 4, 4, (0,), 1, 23344),
]
# A part with two compute slices offers halves only.
RTX_PRO_4500 = [
    ("1g.16gb", 5, 0, 1, 4, (0, 4), 2, 15872), ("1g.16gb+me.all", 64, 15, 1, 4, (0, 4), 1, 15872), ("1g.16gb-me", 66, 13, 1, 4, (0, 4), 2, 15872),
    ("2g.32gb", 0, 1, 2, 8, (0,), 1, 31744),
]
_MODELS = {
    "h100": ("NVIDIA H100 80GB HBM3", "0x233010DE", 81559, SEVEN_SLICE_H100),
    "rtx": ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "0x2BB510DE", 97887, RTX_PRO_6000),
    "a30": ("NVIDIA A30", "0x20B710DE", 24576, A30),
    "rtx4500": ("NVIDIA RTX PRO 4500 Blackwell", "0x2C3110DE", 32623, RTX_PRO_4500),
    "l40s": ("NVIDIA L40S", "0x26B910DE", 46068, None),
}


def gpu_facts(
    model: str = "h100", index: int = 0, enabled: bool = True, pending: bool | None = None,
    instances: list[tuple[str, int]] | None = None, slices: dict[int, list[int]] | None = None, processes: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the facts of one GPU.

    ``instances`` lists (profile, start); each holds one full compute instance, unless ``slices`` gives others for its start. Ids count from 7.
    """
    product, device, memory_mib, table = _MODELS[model]
    rows = {row[0]: row for row in table or []}
    made = []
    for number, (name, start) in enumerate(instances or []):
        row = rows[name]
        computes = (slices or {}).get(start, [row[3]])
        made.append({
            "gpu_instance_id": 7 + number, "profile": name, "profile_id": row[1], "start": start, "size": row[4],
            "compute_instances": [
                {"compute_instance_id": place, "profile_id": 0, "slices": count, "start": sum(computes[:place]), "size": count,
                 "uuid": f"MIG-{index}-{start}-{place}"}
                for place, count in enumerate(computes)
            ],
        })
    profiles = [
        {"name": name, "id": number, "enum": enum, "compute_slices": compute, "memory_slices": size, "instance_count": most, "memory_mib": memory,
         "placements": [{"start": start, "size": size} for start in starts]}
        for name, number, enum, compute, size, starts, most, memory in table or []
    ]
    return {
        "uuid": f"GPU-{model}-{index}", "index": index, "minor": index, "pci_bus_id": f"00000000:{0x41 + index:02X}:00.0", "pci_device_id": device,
        "pci_subsystem_id": "0x16C110DE", "product": product, "memory_bytes": memory_mib << 20, "memory_mib": memory_mib,
        "mig": {
            "capable": table is not None, "current": enabled and table is not None, "pending": (enabled if pending is None else pending) and table is not None,
            "reset_free": True, "profiles": profiles, "instances": sorted(made, key=lambda item: item["start"]),
        },
        "processes": processes or [],
    }


def gpu(model: str = "h100", index: int = 0, **kwargs: Any) -> Gpu:
    """Return a GPU as the planner sees it; arguments as :func:`gpu_facts`."""
    return gpu_from_facts(gpu_facts(model, index, **kwargs))
