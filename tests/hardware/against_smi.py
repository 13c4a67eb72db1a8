# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NVML facts document beside what nvidia-smi prints."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.hardware.rows import DIFFERS, OK, UNCHECKED, Row, compared, compared_fields
from tests.hardware.smi import NOT_GIVEN, Smi

Facts = dict[str, Any]

_RECOVERY_ACTIONS = {"none": "none", "reset": "gpu_reset", "reboot": "node_reboot", "drain p2p": "drain_p2p", "drain and reset": "drain_and_reset"}
_REMAPPED_ROWS = {"correctable": "Correctable Error", "uncorrectable": "Uncorrectable Error", "pending": "Pending", "failed": "Remapping Failure Occurred"}


def _mode(value: bool | None) -> str | None:
    return None if value is None else "Enabled" if value else "Disabled"


def _mig(gpu: Facts, which: str) -> str | None:
    return _mode(gpu["mig"][which]) if gpu["mig"]["capable"] else None


# nvidia-smi's field -> our value as nvidia-smi would print it; None is what it prints as [N/A].
_FIELDS: dict[str, Callable[[Facts, Facts], Any]] = {
    "uuid": lambda document, gpu: gpu["uuid"],
    "name": lambda document, gpu: gpu["product"],
    "pci.bus_id": lambda document, gpu: gpu["pci_bus_id"],
    "pci.device_id": lambda document, gpu: gpu["pci_device_id"],
    "pci.sub_device_id": lambda document, gpu: gpu["pci_subsystem_id"],
    "driver_version": lambda document, gpu: document["driver_version"],
    "memory.total": lambda document, gpu: gpu["memory_mib"],
    "compute_cap": lambda document, gpu: gpu["cuda_compute_capability"],
    "mig.mode.current": lambda document, gpu: _mig(gpu, "current"),
    "mig.mode.pending": lambda document, gpu: _mig(gpu, "pending"),
    "ecc.mode.current": lambda document, gpu: _mode(gpu["health"]["ecc"]["enabled"]),
    "ecc.mode.pending": lambda document, gpu: _mode(gpu["health"]["ecc"]["pending"]),
    "ecc.errors.uncorrected.volatile.total": lambda document, gpu: gpu["health"]["ecc"]["uncorrected_volatile"],
    "ecc.errors.uncorrected.aggregate.total": lambda document, gpu: gpu["health"]["ecc"]["uncorrected_aggregate"],
}


def judge_fields(document: Facts, smi: Smi) -> Iterator[Row]:
    """Yield a row per GPU and field of ``--query-gpu``, and one for the number of GPUs."""
    if smi.gpus is None:
        yield Row("GPUs", UNCHECKED, smi.silent.get("--query-gpu") or smi.silent.get("nvidia-smi", ""))
        return
    yield compared("GPUs", [gpu["index"] for gpu in sorted(document["gpus"], key=lambda gpu: gpu["index"])], sorted(smi.gpus), "nvidia-smi")
    for gpu in document["gpus"]:
        theirs = smi.gpus.get(gpu["index"], {})
        for name, value_of in _FIELDS.items():
            what = f"GPU {gpu['index']} {name}"
            if name not in theirs:
                yield Row(what, UNCHECKED, smi.silent.get(name, "nvidia-smi does not list this GPU"))
                continue
            ours = value_of(document, gpu)
            text = "" if ours is None else str(ours)
            given = "" if theirs[name].lower() in NOT_GIVEN else theirs[name]
            yield compared(what, text.lower() or "not given", given.lower() or "not given", "nvidia-smi")


def judge_report(document: Facts, smi: Smi) -> Iterator[Row]:
    """Yield rows for what only ``nvidia-smi -q`` prints: minor number, recovery action, remapped rows."""
    for gpu in document["gpus"]:
        what, report = f"GPU {gpu['index']}", (smi.details or {}).get(gpu["pci_bus_id"].lower(), {})
        yield _printed(f"{what} minor number", report.get("Minor Number"), str(gpu["minor"]))
        action = report.get("GPU Recovery Action")
        named = action if action is None else _RECOVERY_ACTIONS.get(action.lower())
        if action is not None and named is None:
            yield Row(f"{what} recovery action", UNCHECKED, f"nvidia-smi prints {action}, ours is {gpu['health']['recovery_action']}")
        else:
            yield _printed(f"{what} recovery action", named, gpu["health"]["recovery_action"])
        yield _remapped_rows(f"{what} remapped rows", report.get("Remapped Rows"), gpu["health"]["row_remap"])


def _remapped_rows(what: str, theirs: Any, ours: dict[str, Any] | None) -> Row:
    if theirs == "N/A" and ours is None:
        return Row(what, OK, "neither side gives them")
    if not isinstance(theirs, dict) or ours is None:
        return Row(what, UNCHECKED, f"nvidia-smi prints {theirs}, ours is {ours}")
    told = {name: theirs[title] for name, title in _REMAPPED_ROWS.items() if title in theirs}
    mine = {name: ("Yes" if value else "No") if isinstance(value, bool) else str(value) for name, value in ours.items()}
    return compared_fields(what, mine, told, "nvidia-smi")


def _printed(what: str, theirs: str | None, ours: Any) -> Row:
    if theirs is None:
        return Row(what, UNCHECKED, f"nvidia-smi -q does not print it, ours is {ours}")
    return compared(what, ours, theirs, "nvidia-smi")


def judge_profiles(document: Facts, smi: Smi) -> Iterator[Row]:
    """Yield a row per GPU and profile for ``mig -lgip`` and ``mig -lgipp``, and one per GPU for whether both list the same profiles."""
    for gpu in document["gpus"]:
        index, profiles = gpu["index"], gpu["mig"]["profiles"]
        if not gpu["mig"]["capable"]:
            continue
        for kind, listed in (("profiles (-lgip)", smi.profiles), ("placements (-lgipp)", smi.placements)):
            if listed is None:
                yield Row(f"GPU {index} {kind}", UNCHECKED, smi.silent.get("mig -lgip") or smi.silent.get("mig -lgipp") or smi.silent.get("nvidia-smi", ""))
            else:
                yield compared(f"GPU {index} {kind}", sorted(row["id"] for row in profiles), sorted(pid for gpu_index, pid in listed if gpu_index == index),
                               "nvidia-smi")
        for row in profiles:
            printed, places = (smi.profiles or {}).get((index, row["id"])), (smi.placements or {}).get((index, row["id"]))
            mine = {**row, "count": row["instance_count"], "memory": f"{row['memory_mib'] / 1024:.2f}",
                    "placements": [(place["start"], place["size"]) for place in row["placements"]]}
            theirs = {**(printed or {}), **({} if places is None else {"placements": places})}
            if theirs:
                yield compared_fields(f"GPU {index} profile {row['name']}", mine, theirs, "nvidia-smi")


def judge_instances(document: Facts, smi: Smi) -> Iterator[Row]:
    """Yield a row each for all GPU instances and all compute instances of the node."""
    ours, computes = [], []
    for gpu in document["gpus"]:
        for item in gpu["mig"]["instances"]:
            ours.append({"gpu": gpu["index"], **{name: item[name] for name in ("gpu_instance_id", "profile", "profile_id", "start", "size")}})
            computes += [{"gpu": gpu["index"], "gpu_instance_id": item["gpu_instance_id"],
                          **{name: part[name] for name in ("compute_instance_id", "profile_id", "start", "size")}} for part in item["compute_instances"]]
    yield _listed("GPU instances (-lgi)", ours, smi.gpu_instances, smi.silent.get("mig -lgi"))
    yield _listed("compute instances (-lci)", computes, smi.compute_instances, smi.silent.get("mig -lci"))


def _listed(what: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any]] | None, why: str | None) -> Row:
    if theirs is None:
        return Row(what, UNCHECKED, why or "nvidia-smi gives no list")
    missing, extra = [row for row in theirs if row not in ours], [row for row in ours if row not in theirs]
    if missing or extra:
        return Row(what, DIFFERS, f"only nvidia-smi has {missing}, only ours {extra}")
    return Row(what, OK, f"{len(ours)} of them" if ours else "none exists")
