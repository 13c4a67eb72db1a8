# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From a rule to the instances wanted on one GPU: names and intents are resolved against what this GPU offers.

So one group variable (``balanced``, ``all-1g``) serves GPUs of different models.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from ..reasons import FleetError, finding
from .catalogue import Gpu, Profile
from .compute import arrange, describe_sizes, offered_sizes, pack
from .layout import ENABLED, UNMANAGED, Request, Rule
from .profile_names import split_compute

# The intent ``balanced`` by the compute slices of the whole GPU, as nvidia-mig-parted's all-balanced has it (short profile form, count).
_BALANCED = {7: (("3g", 1), ("2g", 1), ("1g", 2)), 4: (("2g", 1), ("1g", 2))}


@dataclass(frozen=True)
class Wanted:
    """One GPU instance that is wanted: its profile, the memory slot where it must start or None, and the sizes of its compute instances.

    ``computes`` are compute slices, largest first; empty means one compute instance over the whole GPU instance.
    """

    profile: Profile
    start: Optional[int] = None
    computes: tuple[int, ...] = ()

    @property
    def content(self) -> tuple[int, ...]:
        """Return the sizes of the compute instances."""
        return self.computes or (self.profile.compute_slices,)


@dataclass(frozen=True)
class Target:
    """What one GPU should be. ``wanted`` is empty unless the mode is ``enabled``. ``where`` names the rule in messages."""

    where: str
    mode: str
    wanted: tuple[Wanted, ...] = ()


def resolve(rule: Rule, gpu: Gpu) -> Target:
    """Return the :class:`Target` of ``gpu`` under ``rule``.

    Raises FleetError NotMigCapable, ProfilesNotListed, UnknownProfile, ImpossibleLayout (a start that the profile does not have), ImpossibleDivision or
    InvalidLayout (an intent that this GPU has no meaning for).
    """
    if rule.mode != ENABLED:
        return Target(rule.where, rule.mode)
    if not gpu.mig_capable:
        raise FleetError(finding("NotMigCapable", rule.where, gpu=gpu.label))
    if not gpu.profiles and (rule.intent or rule.requests):
        raise FleetError(finding("ProfilesNotListed", rule.where, gpu=gpu.label))
    if rule.intent:
        return Target(rule.where, ENABLED, tuple(_intended(rule.intent, gpu, rule.where)))
    return Target(rule.where, ENABLED, tuple(_requested(rule.requests, gpu, rule.where)))


def unlisted(gpu: Gpu, policy: str) -> Target:
    """Return the :class:`Target` of a GPU that no rule lists; ``policy`` is the option ``unlisted``, keep or disable."""
    return Target("unlisted", UNMANAGED if policy == "keep" or not gpu.mig_capable else "disabled")


def _requested(requests: Iterable[Request], gpu: Gpu, where: str) -> list[Wanted]:
    wanted: list[Wanted] = []
    # Compute instances asked for by name (1c.3g.40gb) share GPU instances, whichever entry names them.
    loose: dict[Profile, list[int]] = {}
    for request in requests:
        size, name = split_compute(request.profile)
        profile = gpu.profile_named(name, where)
        if request.start is not None and request.start not in profile.starts:
            starts = ", ".join(str(start) for start in profile.starts)
            raise FleetError(finding("ImpossibleLayout", where, wanted=f"{profile.name} at start {request.start}", gpu=gpu.label,
                                     why=f"{profile.name} may start at {starts}", offered=describe_offer(gpu)))
        if size is not None and size != profile.compute_slices:
            _check_division(profile, (size,), where)
            loose.setdefault(profile, []).extend([size] * request.count)
            continue
        if request.computes:
            _check_division(profile, request.computes, where)
        wanted.extend([Wanted(profile, request.start, _division(profile, request.computes))] * request.count)
    return wanted + [Wanted(profile, None, content) for profile, sizes in loose.items() for content in pack(profile.compute_slices, sizes)]


def _division(profile: Profile, computes: tuple[int, ...]) -> tuple[int, ...]:
    return () if computes == (profile.compute_slices,) else computes


def _check_division(profile: Profile, computes: tuple[int, ...], where: str) -> None:
    slices = profile.compute_slices
    if set(computes) <= set(offered_sizes(slices)) and arrange(slices, computes) is not None:
        return
    wanted = " and ".join(f"{size}c" for size in computes)
    raise FleetError(finding("ImpossibleDivision", where, wanted=wanted, profile=profile.name, offered=describe_sizes(slices)))


def _intended(intent: str, gpu: Gpu, where: str) -> list[Wanted]:
    if intent == "whole":
        return [Wanted(max(gpu.profiles, key=lambda profile: (profile.compute_slices, not profile.suffix, profile.size, -profile.id)))]
    if intent == "balanced":
        slices = max(profile.compute_slices for profile in gpu.profiles)
        if slices not in _BALANCED:
            raise FleetError(finding("InvalidLayout", where, problem=f"balanced has no meaning for {gpu.label} with {slices} compute slices",
                                     allowed="Name the profiles and counts"))
        return [Wanted(gpu.profile_named(name, where)) for name, count in _BALANCED[slices] for _number in range(count)]
    size, name = split_compute(intent[len("all-"):])
    profile = gpu.profile_named(name, where)
    content: tuple[int, ...] = ()
    if size is not None and size != profile.compute_slices:
        _check_division(profile, (size,), where)
        content = (size,) * (profile.compute_slices // size)
    return [Wanted(profile, None, content)] * most_that_fit(profile)


def most_that_fit(profile: Profile) -> int:
    """Return how many instances of one profile fit on an empty GPU, from its placements: ``instance_count`` was wrong on real drivers."""
    if "+me" in profile.suffix:
        return 1
    count, free_from = 0, 0
    for start in profile.starts:
        if start >= free_from:
            count, free_from = count + 1, start + profile.size
    return count


def describe_offer(gpu: Gpu) -> str:
    """Return the offered profiles with how many of each fit, such as ``1g.10gb x7, 3g.40gb x2``."""
    return ", ".join(f"{profile.name} x{most_that_fit(profile)}" for profile in gpu.profiles)
