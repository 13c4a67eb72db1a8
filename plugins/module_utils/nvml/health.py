# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The part ``health`` of the NVML facts document: a GPU's health as NVML tells it, and the reason codes that follow (mig/health.py).

A value that the GPU, the driver or the user's rights do not give is None: many have no answer while MIG instances exist.
"""
from __future__ import annotations

from typing import Any, Callable

from .calls import optional
from .codes import NOT_TOLD
from .health_calls import HealthCalls

_RECOVERY_ACTIONS = {
    0: "none", 1: "gpu_reset", 2: "node_reboot", 3: "drain_p2p", 4: "drain_and_reset", 5: "recover_imex_domain", 6: "bus_reset", 7: "system_reboot",
}  # fmt: skip
_FABRIC_STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
_FABRIC_SUMMARIES = {0: "not_supported", 1: "healthy", 2: "unhealthy", 3: "limited_capacity"}
# nvmlClocksEventReason* (nvml.h), by bit.
_CLOCK_EVENT_REASONS = {
    0: "gpu_idle", 1: "applications_clocks_setting", 2: "sw_power_cap", 3: "hw_slowdown", 4: "sync_boost", 5: "sw_thermal_slowdown",
    6: "hw_thermal_slowdown", 7: "hw_power_brake_slowdown", 8: "display_clock_setting",
}  # fmt: skip


def read_health(session: HealthCalls, handle: Any) -> dict[str, Any]:
    """Return the health of a GPU, without ``reasons``. Raises NvmlError for what is a verdict in itself, such as GPU_IS_LOST."""
    return {
        "ecc": _ecc(session, handle),
        "row_remap": _row_remap(session, handle),
        "recovery_action": _named(_RECOVERY_ACTIONS, session.recovery_action(handle)),
        "fabric": _fabric(session, handle),
        "clock_event_reasons": _clock_event_reasons(_told(lambda: session.clock_event_reasons(handle)) or 0),
        "repair": _repair(session, handle),
    }


def _ecc(session: HealthCalls, handle: Any) -> dict[str, Any]:
    enabled, pending = _told(lambda: session.ecc_mode(handle)) or (None, None)
    return {
        "enabled": enabled,
        "pending": pending,
        "uncorrected_volatile": _told(lambda: session.uncorrected_errors(handle, "volatile")),
        "uncorrected_aggregate": _told(lambda: session.uncorrected_errors(handle, "aggregate")),
        "sram_threshold_exceeded": _told(lambda: session.sram_threshold_exceeded(handle)),
    }


def _row_remap(session: HealthCalls, handle: Any) -> dict[str, Any] | None:
    rows = _told(lambda: session.remapped_rows(handle))
    return None if rows is None else dict(vars(rows))


def _fabric(session: HealthCalls, handle: Any) -> dict[str, Any] | None:
    info = _told(lambda: session.fabric(handle))
    if info is None:
        return None
    return {
        "state": _named(_FABRIC_STATES, info.state), "status": info.status, "health_mask": info.health_mask,
        "summary": _named(_FABRIC_SUMMARIES, info.health_summary),
    }


def _repair(session: HealthCalls, handle: Any) -> dict[str, bool] | None:
    repair = _told(lambda: session.repair_pending(handle))
    return None if repair is None else {"channel_pending": repair[0], "tpc_pending": repair[1]}


def _clock_event_reasons(bits: int) -> list[str]:
    return [str(_named(_CLOCK_EVENT_REASONS, bit)) for bit in range(bits.bit_length()) if bits >> bit & 1]


def _named(names: dict[int, str], number: int | None) -> str | None:
    """Return the name of an NVML number; ``unknown-N`` for one that is newer than this collection."""
    return None if number is None else names.get(number, f"unknown-{number}")


def _told(call: Callable[[], Any]) -> Any:
    return optional(call, *NOT_TOLD)
