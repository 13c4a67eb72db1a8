# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The part ``mig`` of the NVML facts document: a GPU's mode, what its driver offers and what exists on it."""
from __future__ import annotations

from typing import Any

from ..mig.profile_names import computed_name, normalise
from .calls import optional
from .codes import INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED
from .mig_calls import ComputeProfile, GpuInstanceProfile, MigCalls

_NO_MIG: dict[str, Any] = {"capable": False, "current": False, "pending": False, "reset_free": None, "profiles": [], "instances": []}


def read_mig(session: MigCalls, handle: Any, memory_bytes: int | None) -> dict[str, Any]:
    """Return the mode, the offered profiles and the existing instances of a GPU; ``memory_bytes`` is its total memory. Raises NvmlError."""
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


def _profile(session: MigCalls, handle: Any, profile: GpuInstanceProfile, memory_bytes: int | None) -> dict[str, Any]:
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


def _instances(session: MigCalls, handle: Any, profiles: list[tuple[GpuInstanceProfile, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the GPU instances by profile, then what is in each: a GPU instance without compute instance shows up in no other way."""
    found = []
    for profile, row in profiles:
        for instance, facts in session.gpu_instances(handle, profile):
            found.append({
                "gpu_instance_id": facts.id, "profile": row["name"], "profile_id": profile.id, "start": facts.start, "size": facts.size,
                "compute_instances": _compute_instances(session, instance),
            })
    return sorted(found, key=lambda item: item["start"])


def _compute_instances(session: MigCalls, instance: Any) -> list[dict[str, Any]]:
    found = []
    for profile in _distinct(session.compute_profiles(instance)):
        for compute, facts in session.compute_instances(instance, profile):
            found.append({
                "compute_instance_id": facts.id, "profile_id": facts.profile_id, "slices": profile.slices, "start": facts.start, "size": facts.size,
                "uuid": _uuid(session, compute),
            })
    return sorted(found, key=lambda item: item["compute_instance_id"])


def _uuid(session: MigCalls, compute: Any) -> str | None:
    return optional(lambda: session.compute_instance_uuid(compute), NOT_FOUND, NOT_SUPPORTED)


def _distinct(profiles: list[ComputeProfile]) -> list[ComputeProfile]:
    return list({profile.id: profile for profile in profiles}.values())
