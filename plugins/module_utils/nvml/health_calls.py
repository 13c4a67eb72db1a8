# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML calls about a GPU's health and its NVLinks.

Most have no answer on some GPUs, on older drivers or while MIG instances exist; such a call raises NvmlError with one of codes.NOT_TOLD.
"""
from __future__ import annotations

from ctypes import byref
from dataclasses import dataclass
from typing import Any, Optional

from .calls import text
from .codes import NOT_TOLD, NvmlError
from .gpu_calls import GpuCalls

_RECOVERY_ACTION_FIELD = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_UNCORRECTED = 1  # nvmlMemoryErrorType_t
_COUNTERS = {"volatile": 0, "aggregate": 1}  # nvmlEccCounterType_t: since the driver was loaded, over the GPU's life


@dataclass(frozen=True)
class RemappedRows:
    """Memory rows that were replaced by spare ones after errors; ``pending`` ones at the next GPU reset."""

    correctable: int
    uncorrectable: int
    pending: bool
    failed: bool


@dataclass(frozen=True)
class FabricInfo:
    """Registration at the NVLink fabric: nvmlGpuFabricState_t, an nvmlReturn_t, and the health; the summary is None on drivers without it."""

    state: int
    status: int
    health_mask: int
    health_summary: Optional[int]


class HealthCalls(GpuCalls):
    """Health of a GPU."""

    def ecc_mode(self, handle: Any) -> tuple[bool, bool]:
        """Return whether ECC is on, and whether it will be after the next GPU reset."""
        current, pending = self._call("nvmlDeviceGetEccMode", handle)
        return bool(current), bool(pending)

    def uncorrected_errors(self, handle: Any, counter: str) -> int:
        """Return the number of uncorrected memory errors; ``counter`` is ``volatile`` (since the driver was loaded) or ``aggregate``."""
        return int(self._call("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _COUNTERS[counter]))

    def sram_threshold_exceeded(self, handle: Any) -> bool:
        """Return whether there have been more uncorrectable SRAM errors than NVIDIA allows."""
        status = self._pynvml.c_nvmlEccSramErrorStatus_v1_t()
        self._call("nvmlDeviceGetSramEccErrorStatus", handle, byref(status))
        return bool(status.bThresholdExceeded)

    def remapped_rows(self, handle: Any) -> RemappedRows:
        """Return the state of row remapping (Ampere and later)."""
        correctable, uncorrectable, pending, failed = self._call("nvmlDeviceGetRemappedRows", handle)
        return RemappedRows(correctable, uncorrectable, bool(pending), bool(failed))

    def recovery_action(self, handle: Any) -> int | None:
        """Return what the driver asks for to recover the GPU (nvmlDeviceGpuRecoveryAction_t, 0 for nothing), or None when it does not tell (before R565)."""
        return self.field_value(handle, _RECOVERY_ACTION_FIELD)

    def repair_pending(self, handle: Any) -> tuple[bool, bool]:
        """Return whether a repair of memory channels, and one of processors (TPC), waits for a GPU reset."""
        channel, tpc = self._call("nvmlDeviceGetRepairStatus", handle)
        return bool(channel), bool(tpc)

    def clock_event_reasons(self, handle: Any) -> int:
        """Return the bits that say why the clocks are not at their highest."""
        return int(self._call("nvmlDeviceGetCurrentClocksEventReasons", handle))

    def fabric(self, handle: Any) -> FabricInfo:
        """Return the GPU's registration at the NVLink fabric."""
        try:
            info = self._pynvml.c_nvmlGpuFabricInfo_v3_t()
            self._call("nvmlDeviceGetGpuFabricInfoV", handle, byref(info))
            return FabricInfo(info.state, info.status, info.healthMask, info.healthSummary)
        except NvmlError as error:
            if error.code not in NOT_TOLD:
                raise
        info = self._pynvml.c_nvmlGpuFabricInfo_v2_t()
        self._call("nvmlDeviceGetGpuFabricInfoV", handle, byref(info))
        return FabricInfo(info.state, info.status, info.healthMask, None)

    # -- NVLink ----------------------------------------------------------------------------------------------------------------------------------

    def link_is_up(self, handle: Any, link: int) -> bool:
        """Return whether an NVLink is up; INVALID_ARGUMENT beyond the last link, NOT_SUPPORTED for one that this GPU lacks."""
        return bool(self._call("nvmlDeviceGetNvLinkState", handle, link))

    def link_peer_kind(self, handle: Any, link: int) -> int:
        """Return what is at the other end of an NVLink (nvmlIntNvLinkDeviceType_t)."""
        return self._call("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)

    def link_peer_bus_id(self, handle: Any, link: int) -> str:
        """Return the PCI bus id of what is at the other end of an NVLink."""
        return text(self._call("nvmlDeviceGetNvLinkRemotePciInfo", handle, link).busId)
