# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NVML facts document: everything that the rest of the collection knows about the GPUs of a node.

Returned by the module nvml_info under ``nvml``, planned on by mig/, judged by dra/expected.py. Sizes in MiB where the name says so; ids, enums and slices are
NVML's own numbers. Lists are sorted, so two readings of the same state are equal.
"""
from __future__ import annotations

from typing import Any

from ..dra.rules import ARCHITECTURES
from ..mig.profile_names import computed_name, normalise
from .calls import optional
from .codes import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED
from .mig_calls import ComputeProfile, GpuInstanceProfile
from .session import NvmlSession

_NO_MIG: dict[str, Any] = {"capable": False, "current": False, "pending": False, "reset_free": None, "profiles": [], "instances": []}


def read_inventory(session: NvmlSession) -> dict[str, Any]:
    """Return the NVML facts document of this node, GPUs sorted by PCI bus id. Raises NvmlError."""
    gpus = [_gpu(session, index, handle) for index, handle in session.devices()]
    return {
        "driver_version": session.driver_version(),
        "nvml_version": session.nvml_version(),
        "cuda_driver_version": session.cuda_driver_version(),
        "driver_root": session.driver_root,
        "library": session.library,
        "gpus": sorted(gpus, key=lambda gpu: gpu["pci_bus_id"]),
    }


def _gpu(session: NvmlSession, index: int, handle: Any) -> dict[str, Any]:
    pci = session.pci(handle)
    memory_bytes = session.memory_bytes(handle)
    architecture = session.architecture(handle)
    return {
        "uuid": session.uuid(handle),
        "index": index,
        "minor": session.minor(handle),
        "pci_bus_id": pci.bus_id,
        "pci_device_id": f"0x{pci.device_id:08X}",
        "pci_subsystem_id": f"0x{pci.subsystem_id:08X}",
        "product": session.product(handle),
        "brand": session.brand(handle),
        "architecture": architecture,
        "architecture_name": ARCHITECTURES.get(architecture, "Unknown"),
        "cuda_compute_capability": session.compute_capability(handle),
        "memory_bytes": memory_bytes,
        "memory_mib": None if memory_bytes is None else memory_bytes >> 20,
        "addressing_mode": optional(lambda: session.addressing_mode(handle), NOT_SUPPORTED, FUNCTION_NOT_FOUND),
        "mig": _mig(session, handle, memory_bytes),
        "processes": sorted((vars(process) for process in session.processes(handle)), key=lambda row: (row["pid"], row["kind"])),
    }


def _mig(session: NvmlSession, handle: Any, memory_bytes: int | None) -> dict[str, Any]:
    mode = session.mig_mode(handle)
    if mode is None:
        return dict(_NO_MIG)
    current, pending = mode
    # Drivers before R550 refuse to list profiles while MIG mode is off.
    offered = optional(lambda: session.gpu_instance_profiles(handle), NOT_SUPPORTED) or []
    profiles = [(profile, _profile(session, handle, profile, memory_bytes)) for profile in offered]
    return {
        "capable": True,
        "current": current,
        "pending": pending,
        "reset_free": session.reset_free(handle),
        "profiles": [row for _profile_info, row in profiles],
        "instances": _instances(session, handle, profiles) if current else [],
    }


def _profile(session: NvmlSession, handle: Any, profile: GpuInstanceProfile, memory_bytes: int | None) -> dict[str, Any]:
    # Some drivers list a profile and then refuse to say where it fits; NVIDIA's own plugin goes on without such a profile, too.
    places = optional(lambda: session.placements(handle, profile.id), NOT_SUPPORTED, INVALID_ARGUMENT) or []
    placements = [{"start": start, "size": size} for start, size in places]
    name = profile.name or computed_name(profile.enum, profile.memory_mib, memory_bytes) or f"profile-{profile.id}"
    return {
        "name": normalise(name),
        "id": profile.id,
        "enum": profile.enum,
        "compute_slices": profile.compute_slices,
        "memory_slices": max((placement["size"] for placement in placements), default=0),
        "instance_count": profile.instance_count,
        "memory_mib": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "copy_engines": profile.copy_engines,
        "decoders": profile.decoders,
        "encoders": profile.encoders,
        "jpeg_engines": profile.jpeg_engines,
        "ofa_engines": profile.ofa_engines,
        "placements": placements,
    }


def _instances(session: NvmlSession, handle: Any, profiles: list[tuple[GpuInstanceProfile, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the GPU instances by profile, then what is in each: a GPU instance without compute instance shows up in no other way."""
    found = []
    for profile, row in profiles:
        for instance, facts in session.gpu_instances(handle, profile):
            found.append({
                "gpu_instance_id": facts.id, "profile": row["name"], "profile_id": profile.id, "start": facts.start, "size": facts.size,
                "compute_instances": _compute_instances(session, instance),
            })
    return sorted(found, key=lambda item: item["start"])


def _compute_instances(session: NvmlSession, instance: Any) -> list[dict[str, Any]]:
    found = []
    for profile in _distinct(session.compute_profiles(instance)):
        for compute, facts in session.compute_instances(instance, profile):
            found.append({
                "compute_instance_id": facts.id, "profile_id": facts.profile_id, "slices": profile.slices, "start": facts.start, "size": facts.size,
                "uuid": _uuid(session, compute),
            })
    return sorted(found, key=lambda item: item["compute_instance_id"])


def _uuid(session: NvmlSession, compute: Any) -> str | None:
    return optional(lambda: session.compute_instance_uuid(compute), NOT_FOUND, NOT_SUPPORTED)


def _distinct(profiles: list[ComputeProfile]) -> list[ComputeProfile]:
    return list({profile.id: profile for profile in profiles}.values())
