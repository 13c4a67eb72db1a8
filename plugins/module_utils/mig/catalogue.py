# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What one GPU is, offers and holds, as typed values made from the NVML facts document (see nvml/inventory.py).

Everything the planner knows about a GPU comes from the GPU itself, so new silicon needs no release of this collection.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from ..reasons import FleetError, finding
from .profile_names import computed_name, normalise, parse_profile
from .shown import clipped


@dataclass(frozen=True)
class Profile:
    """One GPU instance profile that the driver offers. ``starts`` are the memory slots at which it may begin, ``size`` the slots it takes."""

    name: str
    id: int
    enum: int
    compute_slices: int
    size: int
    starts: tuple[int, ...]
    memory_mib: int
    dra_name: str

    @property
    def suffix(self) -> str:
        """Return the attribute part of the name: ``+me``, ``+gfx``, ``+me.all``, ``-me`` or empty."""
        parsed = parse_profile(self.name)
        return "" if parsed is None else parsed.suffix


@dataclass(frozen=True)
class Process:
    """A process that holds a GPU. ``gpu_instance_id`` is None when it holds the whole GPU, ``compute_instance_id`` when it holds a whole GPU instance."""

    pid: int
    gpu_instance_id: Optional[int]
    kind: str
    compute_instance_id: Optional[int] = None


@dataclass(frozen=True)
class Compute:
    """A compute instance that exists; ``slices`` and ``start`` are compute slices of its GPU instance. ``uuid`` is that of its MIG device."""

    id: int
    slices: int
    start: int
    uuid: Optional[str]


@dataclass(frozen=True)
class Instance:
    """A GPU instance that exists, with its compute instances; without any it is an orphan that nothing can use."""

    gpu_instance_id: int
    profile: str
    profile_id: int
    start: int
    size: int
    computes: tuple[Compute, ...]

    @property
    def content(self) -> tuple[int, ...]:
        """Return the slices of its compute instances, largest first."""
        return tuple(sorted((item.slices for item in self.computes), reverse=True))

    @property
    def uuids(self) -> tuple[str, ...]:
        """Return the UUIDs of its MIG devices."""
        return tuple(item.uuid for item in self.computes if item.uuid)


@dataclass(frozen=True)
class Gpu:
    """One GPU: identity, MIG mode, offered profiles, existing instances, running processes."""

    uuid: str
    index: int
    minor: int
    pci_bus_id: str
    pci_device_id: str
    pci_subsystem_id: str
    product: str
    memory_bytes: Optional[int]
    mig_capable: bool
    mode_current: bool
    mode_pending: bool
    reset_free: Optional[bool]
    profiles: tuple[Profile, ...]
    instances: tuple[Instance, ...]
    processes: tuple[Process, ...]

    @property
    def label(self) -> str:
        """Return the name used in messages: product, NVML index and UUID."""
        return f"GPU {self.index} ({self.product}, {self.uuid})"

    def profile_by_id(self, profile_id: int) -> Profile | None:
        """Return the offered profile with this numeric id, or None."""
        return next((profile for profile in self.profiles if profile.id == profile_id), None)

    def profile_named(self, text: str, subject: str) -> Profile:
        """Return the one offered profile that ``text`` names.

        Accepts, first hit wins: the driver's name; the name that other tools compute (``3g.40gb`` where an older driver says ``3g.39gb``); the numeric id;
        the short form ``3g`` or ``1g+me`` for the smallest profile with these slices; a name whose memory differs by at most 1 GB and fits only one profile.
        Raises FleetError UnknownProfile, which lists what the GPU offers. ``subject`` says where the name was written.
        """
        hits = self._hits(normalise(text))
        if len(hits) == 1:
            return hits[0]
        offered = ", ".join(profile.name for profile in self.profiles) or "none"
        raise FleetError(
            finding("UnknownProfile", subject, {"profile": text, "offered": [p.name for p in self.profiles], "gpu": self.uuid},
                    profile=clipped(text), gpu=self.label, offered=offered)
        )

    def _hits(self, text: str) -> list[Profile]:
        exact = [p for p in self.profiles if p.name == text] or [p for p in self.profiles if p.dra_name == text]
        if exact:
            return exact[:1]
        if text.isascii() and text.isdigit():
            return [p for p in self.profiles if str(p.id) == text]
        wanted = parse_profile(text)
        if wanted is None or wanted.compute_slices is not None:
            return []  # a compute instance is no GPU instance profile (resolve.py takes such names apart)
        family = [(parse_profile(p.name), p) for p in self.profiles]
        same = [(known, p) for known, p in family if known and (known.slices, known.suffix) == (wanted.slices, wanted.suffix)]
        if wanted.gb is None:
            return sorted((p for _known, p in same), key=lambda p: (p.memory_mib, p.id))[:1]
        return [p for known, p in same if known.gb is not None and abs(known.gb - wanted.gb) <= 1]


def gpu_from_facts(facts: dict[str, Any]) -> Gpu:
    """Return the :class:`Gpu` for one element of ``gpus`` in the NVML facts document."""
    mig = facts["mig"]
    return Gpu(
        uuid=facts["uuid"], index=facts["index"], minor=facts["minor"], pci_bus_id=facts["pci_bus_id"].lower(),
        pci_device_id=facts["pci_device_id"].lower(), pci_subsystem_id=facts["pci_subsystem_id"].lower(), product=facts["product"],
        memory_bytes=facts["memory_bytes"], mig_capable=mig["capable"], mode_current=mig["current"], mode_pending=mig["pending"],
        reset_free=mig["reset_free"],
        profiles=tuple(_profile(row, facts["memory_bytes"]) for row in mig["profiles"]),
        instances=tuple(_instance(row) for row in mig["instances"]),
        processes=tuple(Process(row["pid"], row["gpu_instance_id"], row["kind"], row["compute_instance_id"]) for row in facts["processes"]),
    )


def gpus_from_facts(document: dict[str, Any]) -> list[Gpu]:
    """Return every GPU of the NVML facts document, in PCI order."""
    return [gpu_from_facts(facts) for facts in document["gpus"]]


def _profile(row: dict[str, Any], total_bytes: int | None) -> Profile:
    name = normalise(row["name"])
    placements = row["placements"]
    return Profile(
        name=name, id=row["id"], enum=row["enum"], compute_slices=row["compute_slices"],
        size=placements[0]["size"] if placements else row["memory_slices"], starts=tuple(sorted(place["start"] for place in placements)),
        memory_mib=row["memory_mib"],
        dra_name=computed_name(row["enum"], row["memory_mib"], total_bytes) or name,
    )


def _instance(row: dict[str, Any]) -> Instance:
    return Instance(
        gpu_instance_id=row["gpu_instance_id"], profile=normalise(row["profile"]), profile_id=row["profile_id"], start=row["start"], size=row["size"],
        computes=tuple(Compute(item["compute_instance_id"], item["slices"], item["start"], item["uuid"]) for item in row["compute_instances"]),
    )
