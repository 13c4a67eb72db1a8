# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a GPU's health facts mean: a pure function from one GPU of the NVML facts document to findings.

Rules: NVIDIA's Xid catalogue (recovery actions, row remapping) and its RMA criteria (failed remapping, SRAM threshold).
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..reasons import ERROR, Finding, finding

# What the driver asks for (field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION). Actions that are not listed need a look by hand.
_RECOVERY = {
    "gpu_reset": "GpuResetNeeded", "drain_and_reset": "GpuResetNeeded", "bus_reset": "GpuResetNeeded",
    "node_reboot": "NodeRebootNeeded", "system_reboot": "NodeRebootNeeded",
}  # fmt: skip
_HARDWARE_SLOWDOWNS = frozenset({"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})
# Two bits each of the fabric's health mask: 1 is true, 2 is false, 0 is not told. Incorrect configuration has four bits, of which 1 is "none".
_FABRIC_ROUTE_UNHEALTHY, _FABRIC_INCORRECT_CONFIGURATION = 4, 8


def health_findings(gpu: dict[str, Any]) -> list[Finding]:
    """Return what is wrong with one GPU of the NVML facts document, errors first; empty for a healthy one and for one whose driver tells nothing.

    Errors, which keep it from being partitioned: the driver asks for a recovery action, a row remapping has failed or waits for a reset, too many
    uncorrectable SRAM errors. Warnings: ECC off, a repair waits for a reset, clocks held back by the hardware, the NVLink fabric not up.
    """
    health = gpu.get("health") or {}
    subject = f"GPU {gpu['index']} ({gpu['product']}, {gpu['uuid']})"
    found = [finding(code, subject, {"gpu": gpu["uuid"]}, **fields) for code, fields in _judged(health, gpu["mig"]["current"])]
    return sorted(found, key=lambda item: item.severity != ERROR)


def _judged(health: dict[str, Any], mig_on: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the reason codes that follow from a GPU's health facts, with the fields of their sentences."""
    action = health.get("recovery_action")
    if action not in (None, "none"):
        yield _RECOVERY.get(action, "GpuRecoveryNeeded"), {"action": action}
    rows, ecc, repair = health.get("row_remap") or {}, health.get("ecc") or {}, health.get("repair") or {}
    if rows.get("failed"):
        yield "RowRemapFailed", {}
    if rows.get("pending"):
        yield "RowRemapPending", {}
    if ecc.get("sram_threshold_exceeded"):
        yield "SramErrorsExceeded", {}
    if ecc.get("enabled") is False:
        yield "EccDisabled", {}
    if repair.get("channel_pending") or repair.get("tpc_pending"):
        yield "RepairPending", {}
    slowdowns = _HARDWARE_SLOWDOWNS.intersection(health.get("clock_event_reasons") or ())
    if slowdowns:
        yield "ClocksHeldBack", {"reasons": ", ".join(sorted(slowdowns))}
    # MIG takes a GPU's NVLinks down and suspends the fabric, so there its state says nothing.
    trouble = None if mig_on else _fabric_trouble(health.get("fabric") or {})
    if trouble is not None:
        yield "FabricNotReady", {"why": trouble}


def _fabric_trouble(fabric: dict[str, Any]) -> str | None:
    """Return why the GPU cannot use its NVLink fabric, or None when it can or has none."""
    state = fabric.get("state")
    if state in (None, "not_supported"):
        return None
    if state != "completed":
        return f"registration is {state}"
    if fabric["status"]:
        return f"registration ended with status {fabric['status']}"
    mask = fabric["health_mask"] or 0
    if fabric["summary"] not in (None, "not_supported", "healthy"):
        return f"health is {fabric['summary']}"
    if mask >> _FABRIC_ROUTE_UNHEALTHY & 3 == 1:
        return "a route is unhealthy"
    return "its configuration is incorrect" if mask >> _FABRIC_INCORRECT_CONFIGURATION & 15 > 1 else None
