# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML calls about MIG: the mode, GPU instances, compute instances."""
from __future__ import annotations

from ctypes import Structure, byref, c_char, c_uint, c_ulonglong
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar

from .calls import text
from .codes import ARGUMENT_VERSION_MISMATCH, FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NOT_SUPPORTED, NvmlError
from .gpu_calls import GpuCalls

_Profile = TypeVar("_Profile")

# Profile enums are walked until the driver says that it knows no more; this bound only ends the walk on a driver that never does.
_ENUM_END = 32
_RESETLESS_FIELD = 184  # NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED
# How drivers say that they know an enum or a structure no more (or not yet). nvml.h documents 2 for a bad version here; the rest of NVML uses 25.
_UNKNOWN_TO_DRIVER = (INVALID_ARGUMENT, ARGUMENT_VERSION_MISMATCH, FUNCTION_NOT_FOUND)
_GPU_INSTANCE_PROFILE_V3 = 0x03000098


class _GpuInstanceProfileV3(Structure):
    """nvmlGpuInstanceProfileInfo_v3_t, which pynvml does not have."""

    _fields_ = [
        ("version", c_uint), ("id", c_uint), ("sliceCount", c_uint), ("instanceCount", c_uint), ("multiprocessorCount", c_uint),
        ("copyEngineCount", c_uint), ("decoderCount", c_uint), ("encoderCount", c_uint), ("jpegCount", c_uint), ("ofaCount", c_uint),
        ("memorySizeMB", c_ulonglong), ("name", c_char * 96), ("capabilities", c_uint),
    ]  # fmt: skip


@dataclass(frozen=True)
class GpuInstanceProfile:
    """nvmlGpuInstanceProfileInfo_v2_t; ``name`` is None on drivers that only speak the first version of it. ``instance_count`` is wrong on some drivers."""

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
    multiprocessors: int


class MigCalls(GpuCalls):
    """MIG mode, GPU instances and compute instances."""

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
        value = self.field_value(handle, _RESETLESS_FIELD)
        return None if value is None else bool(value)

    # -- GPU instances ---------------------------------------------------------------------------------------------------------------------------

    def gpu_instance_profiles(self, handle: Any) -> list[GpuInstanceProfile]:
        """Return all profiles that the driver offers for this GPU, whatever enums this pynvml knows.

        Empty on drivers before R550 while MIG mode is off.
        """
        # Version 2 is the first with names; 3 is for a driver that has dropped it, 1 for one that does not know it yet.
        return _walk((2, 3, 1), lambda version, enum: self._gpu_instance_profile(handle, version, enum))

    def _gpu_instance_profile(self, handle: Any, version: int, enum: int) -> GpuInstanceProfile:
        if version == 3:
            info: Any = _GpuInstanceProfileV3(_GPU_INSTANCE_PROFILE_V3)
            self._call_symbol("nvmlDeviceGetGpuInstanceProfileInfoV", handle, enum, byref(info))
        else:
            info = self._call("nvmlDeviceGetGpuInstanceProfileInfo", handle, enum, version)
        return GpuInstanceProfile(
            enum, info.id, None if version == 1 else text(info.name), info.sliceCount, info.instanceCount, int(info.memorySizeMB),
            info.multiprocessorCount, info.copyEngineCount, info.decoderCount, info.encoderCount, info.jpegCount, info.ofaCount,
        )

    def placements(self, handle: Any, profile_id: int) -> list[tuple[int, int]]:
        """Return the (start, size) pairs, in memory slots, where instances of a profile may lie."""
        return self._places("nvmlDeviceGetGpuInstancePossiblePlacements", handle, profile_id, self._pynvml.c_nvmlGpuInstancePlacement_t)

    def _places(self, function: str, owner: Any, profile_id: int, placement: Any) -> list[tuple[int, int]]:
        count = c_uint(0)
        self._call(function, owner, profile_id, None, byref(count))
        rows = (placement * count.value)()
        if count.value:
            self._call(function, owner, profile_id, rows, byref(count))
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
        # Version 1 says all that is needed here, and every driver so far knows it.
        return _walk((1, 2), lambda version, enum: self._compute_profile(instance, version, enum))

    def _compute_profile(self, instance: Any, version: int, enum: int) -> ComputeProfile:
        info = self._call("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, enum, 0, version)
        return ComputeProfile(info.id, info.sliceCount, info.multiprocessorCount)

    def compute_placements(self, instance: Any, profile_id: int) -> list[tuple[int, int]]:
        """Return the (start, size) pairs, in compute slices of the GPU instance, where compute instances of a profile may lie."""
        return self._places("nvmlGpuInstanceGetComputeInstancePossiblePlacements", instance, profile_id, self._pynvml.c_nvmlComputeInstancePlacement_t)

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

    def create_compute_instance(self, instance: Any, profile_id: int, start: int | None = None, size: int | None = None) -> Any:
        """Create a compute instance and return its handle: at exactly this place (compute slices inside the GPU instance), or where the driver likes."""
        if start is None or size is None:
            return self._call("nvmlGpuInstanceCreateComputeInstance", instance, profile_id)
        place = self._pynvml.c_nvmlComputeInstancePlacement_t(start, size)
        return self._call("nvmlGpuInstanceCreateComputeInstanceWithPlacement", instance, profile_id, byref(place))

    def destroy_compute_instance(self, compute: Any) -> None:
        """Destroy a compute instance."""
        self._call("nvmlComputeInstanceDestroy", compute)


def _walk(versions: tuple[int, ...], ask: Callable[[int, int], _Profile]) -> list[_Profile]:
    """Return what ``ask(version, enum)`` gives for the enums from 0 on, by the first structure version in which the driver lists anything.

    NOT_SUPPORTED is a hole. Raises NvmlError when the driver knows none of the versions.
    """
    refusals = []
    for version in versions:
        found: list[_Profile] = []
        for enum in range(_ENUM_END):
            try:
                found.append(ask(version, enum))
            except NvmlError as error:
                if error.code in _UNKNOWN_TO_DRIVER:
                    refusals += [error] if enum == 0 else []
                    break
                if error.code != NOT_SUPPORTED:
                    raise
        if found:
            return found
    if len(refusals) == len(versions):
        raise refusals[0]
    return []
