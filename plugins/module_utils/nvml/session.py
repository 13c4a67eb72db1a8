# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The edge to NVML: the only file that imports pynvml. Gives typed results instead of ctypes structures, and one error type."""
from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from ctypes import byref, c_uint
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..reasons import FleetError, finding
from .codes import DRIVER_NOT_LOADED, INVALID_ARGUMENT, LIBRARY_NOT_FOUND, NOT_SUPPORTED, NvmlError
from .library import load_library

# Profile enums are walked until the driver says that it knows no more; this bound only ends the walk on a driver that never does.
_ENUM_END = 32
_WHOLE_GPU = 0xFFFFFFFF
_RESETLESS_FIELD = 184  # NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED


@dataclass(frozen=True)
class PciFacts:
    """PCI identity as NVML gives it: ``bus_id`` with an 8-digit domain, ids as device << 16 | vendor."""

    bus_id: str
    device_id: int
    subsystem_id: int


@dataclass(frozen=True)
class GpuInstanceProfile:
    """nvmlGpuInstanceProfileInfo_v2_t; ``name`` is None on drivers that only speak the first version."""

    enum: int
    id: int
    name: Optional[str]
    compute_slices: int
    instance_count: int
    memory_mib: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int


@dataclass(frozen=True)
class Placed:
    """An existing GPU or compute instance: its id, profile id, and place (memory slots, or compute slices inside the GPU instance)."""

    id: int
    profile_id: int
    start: int
    size: int


@dataclass(frozen=True)
class ComputeProfile:
    """A compute instance profile that a GPU instance offers."""

    id: int
    slices: int


@dataclass(frozen=True)
class RunningProcess:
    """A process on a GPU; the ids are None when it uses the whole GPU."""

    pid: int
    kind: str
    gpu_instance_id: Optional[int]
    compute_instance_id: Optional[int]
    used_memory_mib: Optional[int]


class NvmlSession:
    """An open NVML library, used as a context manager.

    ``driver_root`` says which driver is meant; ``pynvml_path`` is put first on sys.path (a folder or an archive with pynvml.py). Handles are valid until
    :meth:`reopen`. Opening raises FleetError NvmlLibraryMissing, NvmlDriverNotLoaded, PynvmlMissing or NvmlCallFailed; every other method raises NvmlError.
    """

    def __init__(self, driver_root: str = "/", pynvml_path: str | None = None) -> None:
        self.driver_root = driver_root
        self._pynvml_path = pynvml_path
        self._pynvml: Any = None
        self.library = ""

    def __enter__(self) -> NvmlSession:
        self.library = load_library(self.driver_root)
        self._pynvml = _import_pynvml(self._pynvml_path)
        self.open()
        return self

    def __exit__(self, *_exc: object) -> None:
        # What went wrong before matters more than a library that is closed already.
        with suppress(NvmlError):
            self.close()

    def open(self) -> None:
        """Initialise NVML in this process."""
        try:
            self._call("nvmlInitWithFlags", 0)
        except NvmlError as error:
            if error.code == DRIVER_NOT_LOADED:
                raise FleetError(finding("NvmlDriverNotLoaded", platform.node())) from error
            if error.code == LIBRARY_NOT_FOUND:
                raise FleetError(finding("NvmlLibraryMissing", platform.node(), driver_root=self.driver_root)) from error
            raise FleetError(finding("NvmlCallFailed", platform.node(), call=error.call, error=error.name)) from error

    def close(self) -> None:
        """Shut NVML down in this process; it then holds no GPU."""
        self._call("nvmlShutdown")

    def reopen(self) -> None:
        """Close and open again: a mode change or a reset makes every handle stale."""
        self.close()
        self.open()

    def _call(self, function: str, *args: Any) -> Any:
        try:
            return getattr(self._pynvml, function)(*args)
        except self._pynvml.NVMLError as error:
            raise NvmlError(error.value, function) from error

    # -- the system ------------------------------------------------------------------------------------------------------------------------------

    def driver_version(self) -> str:
        """Return the driver's version, such as ``595.91.07``."""
        return _text(self._call("nvmlSystemGetDriverVersion"))

    def nvml_version(self) -> str:
        """Return the library's version, such as ``13.595.91.07``."""
        return _text(self._call("nvmlSystemGetNVMLVersion"))

    def cuda_driver_version(self) -> int:
        """Return the CUDA version as NVML codes it: 13020 for 13.2."""
        return self._call("nvmlSystemGetCudaDriverVersion_v2")

    # -- GPUs ------------------------------------------------------------------------------------------------------------------------------------

    def devices(self) -> Iterator[tuple[int, Any]]:
        """Yield (index, handle) of every GPU."""
        for index in range(self._call("nvmlDeviceGetCount")):
            yield index, self._call("nvmlDeviceGetHandleByIndex", index)

    def device(self, uuid: str) -> Any:
        """Return the handle of the GPU with this UUID."""
        return self._call("nvmlDeviceGetHandleByUUID", uuid)

    def uuid(self, handle: Any) -> str:
        """Return the UUID of a GPU or MIG device."""
        return _text(self._call("nvmlDeviceGetUUID", handle))

    def product(self, handle: Any) -> str:
        """Return the product name."""
        return _text(self._call("nvmlDeviceGetName", handle))

    def minor(self, handle: Any) -> int:
        """Return N of /dev/nvidiaN."""
        return self._call("nvmlDeviceGetMinorNumber", handle)

    def pci(self, handle: Any) -> PciFacts:
        """Return the PCI identity."""
        info = self._call("nvmlDeviceGetPciInfo_v3", handle)
        return PciFacts(_text(info.busId), info.pciDeviceId, info.pciSubSystemId)

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

    # -- MIG mode --------------------------------------------------------------------------------------------------------------------------------

    def mig_mode(self, handle: Any) -> tuple[bool, bool] | None:
        """Return (current, pending), or None for a GPU without MIG."""
        try:
            current, pending = self._call("nvmlDeviceGetMigMode", handle)
        except NvmlError as error:
            if error.code == NOT_SUPPORTED:
                return None
            raise
        return bool(current), bool(pending)

    def set_mig_mode(self, handle: Any, enable: bool) -> int:
        """Set the MIG mode and return the activation status: 0, or the NVML code that says why it is not in effect."""
        return self._call("nvmlDeviceSetMigMode", handle, int(enable))

    def reset_free(self, handle: Any) -> bool | None:
        """Return whether the MIG mode changes without a GPU reset (Hopper and later), or None when the driver does not say."""
        value = self._call("nvmlDeviceGetFieldValues", handle, [_RESETLESS_FIELD])[0]
        return None if value.nvmlReturn != 0 else bool(value.value.uiVal)

    # -- GPU instances ---------------------------------------------------------------------------------------------------------------------------

    def gpu_instance_profiles(self, handle: Any) -> list[GpuInstanceProfile]:
        """Return all profiles that the driver offers for this GPU, whatever enums this pynvml knows."""
        found, version = [], 2
        for enum in range(_ENUM_END):
            try:
                try:
                    info = self._call("nvmlDeviceGetGpuInstanceProfileInfo", handle, enum, version)
                except NvmlError as error:
                    # Enum 0 is known to every driver that has MIG; a refusal means that it does not know the structure (nvml.h: version mismatch).
                    if enum or error.code == NOT_SUPPORTED:
                        raise
                    version = 1
                    info = self._call("nvmlDeviceGetGpuInstanceProfileInfo", handle, enum, version)
            except NvmlError as error:
                if error.code == NOT_SUPPORTED:
                    continue
                if error.code == INVALID_ARGUMENT and enum:
                    break
                raise
            found.append(GpuInstanceProfile(
                enum, info.id, _text(info.name) if version == 2 else None, info.sliceCount, info.instanceCount, int(info.memorySizeMB),
                info.multiprocessorCount, info.copyEngineCount, info.decoderCount, info.encoderCount, info.jpegCount, info.ofaCount,
            ))
        return found

    def placements(self, handle: Any, profile_id: int) -> list[tuple[int, int]]:
        """Return the (start, size) pairs, in memory slots, where instances of a profile may lie."""
        function = "nvmlDeviceGetGpuInstancePossiblePlacements"
        count = c_uint(0)
        self._call(function, handle, profile_id, None, byref(count))
        rows = (self._pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
        if count.value:
            self._call(function, handle, profile_id, rows, byref(count))
        return sorted((rows[number].start, rows[number].size) for number in range(count.value))

    def gpu_instances(self, handle: Any, profile: GpuInstanceProfile) -> list[tuple[Any, Placed]]:
        """Return (handle, facts) of the existing GPU instances of one profile."""
        # instanceCount was too small on some drivers; slots that stay empty cost nothing.
        rows = (self._pynvml.c_nvmlGpuInstance_t * max(profile.instance_count, 16))()
        count = c_uint(len(rows))
        self._call("nvmlDeviceGetGpuInstances", handle, profile.id, rows, byref(count))
        return [(rows[number], self.gpu_instance_facts(rows[number])) for number in range(count.value)]

    def gpu_instance(self, handle: Any, gpu_instance_id: int) -> Any:
        """Return the handle of the GPU instance with this id."""
        return self._call("nvmlDeviceGetGpuInstanceById", handle, gpu_instance_id)

    def gpu_instance_facts(self, instance: Any) -> Placed:
        """Return id, profile id and placement of a GPU instance."""
        info = self._call("nvmlGpuInstanceGetInfo", instance)
        return Placed(info.id, info.profileId, info.placement.start, info.placement.size)

    def create_gpu_instance(self, handle: Any, profile_id: int, start: int, size: int) -> Any:
        """Create a GPU instance at exactly this place and return its handle."""
        place = self._pynvml.c_nvmlGpuInstancePlacement_t(start, size)
        return self._call("nvmlDeviceCreateGpuInstanceWithPlacement", handle, profile_id, byref(place))

    def destroy_gpu_instance(self, instance: Any) -> None:
        """Destroy a GPU instance; its compute instances must be gone."""
        self._call("nvmlGpuInstanceDestroy", instance)

    # -- compute instances -----------------------------------------------------------------------------------------------------------------------

    def compute_profiles(self, instance: Any) -> list[ComputeProfile]:
        """Return the compute instance profiles that a GPU instance offers."""
        found = []
        for enum in range(_ENUM_END):
            try:
                info = self._call("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, enum, 0, 1)
            except NvmlError as error:
                if error.code == NOT_SUPPORTED:
                    continue
                if error.code == INVALID_ARGUMENT and enum:
                    break
                raise
            found.append(ComputeProfile(info.id, info.sliceCount))
        return found

    def compute_instances(self, instance: Any, profile: ComputeProfile) -> list[tuple[Any, Placed]]:
        """Return (handle, facts) of the compute instances of one profile in a GPU instance."""
        rows = (self._pynvml.c_nvmlComputeInstance_t * 16)()
        count = c_uint(len(rows))
        self._call("nvmlGpuInstanceGetComputeInstances", instance, profile.id, rows, byref(count))
        found = []
        for number in range(count.value):
            info = self._call("nvmlComputeInstanceGetInfo", rows[number])
            found.append((rows[number], Placed(info.id, info.profileId, info.placement.start, info.placement.size)))
        return found

    def compute_instance_uuid(self, compute: Any) -> str:
        """Return the UUID of the MIG device that a compute instance is."""
        return self.uuid(self._call("nvmlComputeInstanceGetInfo", compute).device)

    def compute_instance(self, instance: Any, compute_instance_id: int) -> Any:
        """Return the handle of the compute instance with this id."""
        return self._call("nvmlGpuInstanceGetComputeInstanceById", instance, compute_instance_id)

    def create_compute_instance(self, instance: Any, profile_id: int) -> Any:
        """Create a compute instance and return its handle."""
        return self._call("nvmlGpuInstanceCreateComputeInstance", instance, profile_id)

    def destroy_compute_instance(self, compute: Any) -> None:
        """Destroy a compute instance."""
        self._call("nvmlComputeInstanceDestroy", compute)


def optional(call: Callable[[], Any], *codes: int) -> Any:
    """Return what ``call`` returns, or None when it fails with one of these NVML codes."""
    try:
        return call()
    except NvmlError as error:
        if error.code in codes:
            return None
        raise


def _import_pynvml(path: str | None) -> Any:
    if path is not None:
        sys.path.insert(0, path)
    try:
        import pynvml
    except ImportError as error:
        raise FleetError(finding("PynvmlMissing", platform.node(), error=str(error))) from error
    if not hasattr(pynvml, "nvmlDeviceGetAddressingMode"):
        raise FleetError(finding("PynvmlMissing", platform.node(), error=f"{pynvml.__file__} is older than 13.580"))
    return pynvml


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _instance_id(value: int | None) -> int | None:
    return None if value is None or value == _WHOLE_GPU else value
