# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The profiles that the driver offers beside the offline table of that model, which the NVML emulator's table is tested against."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.mig_profiles import KnownProfile, model_of_board

from tests.hardware.rows import DIFFERS, UNCHECKED, Row, compared, compared_fields


def judge_table(document: dict[str, Any]) -> Iterator[Row]:
    """Yield rows for each MIG-capable GPU: product, total memory, and every profile of either side."""
    for gpu in document["gpus"]:
        if not gpu["mig"]["capable"]:
            continue
        what, model = f"GPU {gpu['index']} table", model_of_board(gpu["pci_device_id"])
        if model is None:
            yield Row(what, UNCHECKED, f"no table for PCI device {gpu['pci_device_id']} ({gpu['product']})")
            continue
        if gpu["pci_device_id"].lower() == model.pci_device_ids[0].lower():
            yield compared(f"{what} {model.key} product", gpu["product"], model.product, "the table")
        yield compared(f"{what} {model.key} memory", gpu["memory_mib"], model.memory_mib, "the table")
        offered, known = {row["id"]: row for row in gpu["mig"]["profiles"]}, {profile.id: profile for profile in model.profiles}
        if not offered:
            yield Row(f"{what} {model.key} profiles", UNCHECKED, "the driver lists none, as those before R550 while MIG mode is off")
            continue
        for profile_id in sorted(offered.keys() | known.keys()):
            row, profile = offered.get(profile_id), known.get(profile_id)
            name = row["name"] if profile is None else profile.name
            if row is None or profile is None:
                yield Row(f"{what} {model.key} {name}", DIFFERS, f"only {'the table' if row is None else 'the driver'} has profile id {profile_id}")
            else:
                yield compared_fields(f"{what} {model.key} {name}", _as_known(row), _expected(profile), "the table")


def _as_known(row: dict[str, Any]) -> dict[str, Any]:
    return {"name": row["name"], "enum": row["enum"], "compute_slices": row["compute_slices"], "count": row["instance_count"],
            "memory_mib": row["memory_mib"], "placements": [(place["start"], place["size"]) for place in row["placements"]]}


def _expected(profile: KnownProfile) -> dict[str, Any]:
    """Return what the table says; memory that it does not know is not compared."""
    found = {"name": profile.name, "enum": profile.enum, "compute_slices": profile.compute_slices, "count": profile.count,
             "placements": [(start, profile.size) for start in profile.starts]}
    return found if profile.memory_mib is None else {**found, "memory_mib": profile.memory_mib}
