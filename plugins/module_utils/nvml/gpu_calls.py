# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML calls about the driver, the GPUs' identity and the processes on them."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from .calls import NvmlCalls, optional, text
from .codes import NOT_SUPPORTED, NOT_TOLD, NvmlError

_WHOLE_GPU = 0xFFFFFFFF
# The member of nvmlValue_t that holds a field's value, by nvmlValueType_t (0 is a double, which no field read here is).
_INTEGERS = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


@dataclass(frozen=True)
class PciFacts:
    """PCI identity as NVML gives it: ``bus_id`` with an 8-digit domain, ids as device << 16 | vendor."""

    bus_id: str
    device_id: int
    subsystem_id: int


@dataclass(frozen=True)
class RunningProcess:
    """A process on a GPU; the ids are None when it uses the whole GPU."""

    pid: int
    kind: str
    gpu_instance_id: Optional[int]
    compute_instance_id: Optional[int]
    used_memory_mib: Optional[int]


class GpuCalls(NvmlCalls):
    """The driver, the GPUs and their processes."""

    # -- the system ------------------------------------------------------------------------------------------------------------------------------

    def driver_version(self) -> str:
        """Return the driver's version, such as ``595.91.07``."""
        return text(self._call("nvmlSystemGetDriverVersion"))

    def nvml_version(self) -> str:
        """Return the library's version, such as ``13.595.91.07``."""
        return text(self._call("nvmlSystemGetNVMLVersion"))

    def cuda_driver_version(self) -> int:
        """Return the CUDA version as NVML codes it: 13020 for 13.2."""
        return self._call("nvmlSystemGetCudaDriverVersion_v2")

    # -- GPUs ------------------------------------------------------------------------------------------------------------------------------------

    def device_count(self) -> int:
        """Return the number of GPUs."""
        return self._call("nvmlDeviceGetCount")

    def device_at(self, index: int) -> Any:
        """Return the handle of the GPU with this NVML index, which may be another one after a reboot."""
        return self._call("nvmlDeviceGetHandleByIndex", index)

    def devices(self) -> Iterator[tuple[int, Any]]:
        """Yield (index, handle) of every GPU."""
        for index in range(self.device_count()):
            yield index, self.device_at(index)

    def device(self, uuid: str) -> Any:
        """Return the handle of the GPU with this UUID."""
        return self._call("nvmlDeviceGetHandleByUUID", uuid)

    def uuid(self, handle: Any) -> str:
        """Return the UUID of a GPU or MIG device."""
        return text(self._call("nvmlDeviceGetUUID", handle))

    def product(self, handle: Any) -> str:
        """Return the product name."""
        return text(self._call("nvmlDeviceGetName", handle))

    def minor(self, handle: Any) -> int:
        """Return N of /dev/nvidiaN."""
        return self._call("nvmlDeviceGetMinorNumber", handle)

    def pci(self, handle: Any) -> PciFacts:
        """Return the PCI identity."""
        info = self._call("nvmlDeviceGetPciInfo_v3", handle)
        return PciFacts(text(info.busId), info.pciDeviceId, info.pciSubSystemId)

    def brand(self, handle: Any) -> int:
        """Return NVML's brand number."""
        return self._call("nvmlDeviceGetBrand", handle)

    def architecture(self, handle: Any) -> int:
        """Return NVML's architecture number."""
        return self._call("nvmlDeviceGetArchitecture", handle)

    def compute_capability(self, handle: Any) -> str:
        """Return the CUDA compute capability, such as ``9.0``."""
        major, minor = self._call("nvmlDeviceGetCudaComputeCapability", handle)
        return f"{major}.{minor}"

    def memory_bytes(self, handle: Any) -> int | None:
        """Return the total memory in bytes, or None for a GPU without memory of its own."""
        try:
            return int(self._call("nvmlDeviceGetMemoryInfo", handle).total)
        except NvmlError as error:
            if error.code == NOT_SUPPORTED:
                return None
            raise

    def addressing_mode(self, handle: Any) -> int:
        """Return NVML's addressing mode number: 0 none, 1 HMM, 2 ATS."""
        return int(self._call("nvmlDeviceGetAddressingMode", handle))

    def field_value(self, handle: Any, field: int) -> int | None:
        """Return the integer value of an NVML field (NVML_FI_*), or None when the driver does not tell it."""
        answer = optional(lambda: self._call("nvmlDeviceGetFieldValues", handle, [field]), *NOT_TOLD)
        if answer is None or answer[0].nvmlReturn in NOT_TOLD:
            return None
        if answer[0].nvmlReturn:
            raise NvmlError(answer[0].nvmlReturn, "nvmlDeviceGetFieldValues")
        return getattr(answer[0].value, _INTEGERS[answer[0].valueType])

    def processes(self, handle: Any) -> list[RunningProcess]:
        """Return the compute, graphics and MPS processes of a GPU and of all its instances. Kinds that the GPU does not report are left out."""
        found = []
        for kind, function in (("compute", "Compute"), ("graphics", "Graphics"), ("mps", "MPSCompute")):
            try:
                rows = self._call(f"nvmlDeviceGet{function}RunningProcesses_v3", handle)
            except NvmlError as error:
                if error.code == NOT_SUPPORTED:
                    continue
                raise
            for row in rows:
                found.append(RunningProcess(row.pid, kind, _instance_id(row.gpuInstanceId), _instance_id(row.computeInstanceId),
                                            None if row.usedGpuMemory is None else row.usedGpuMemory >> 20))
        return found


def _instance_id(value: int | None) -> int | None:
    return None if value is None or value == _WHOLE_GPU else value
