# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All MIG layouts that a GPU can have."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from ..mig.catalogue import Gpu, Profile
from ..mig.resolve import Wanted
from ..mig.solver import solve


def feasible_layouts(gpu: Gpu, names: Optional[Sequence[str]] = None, maximal_only: bool = False) -> list[dict[str, int]]:
    """Return every set of instances that ``gpu`` can hold at once, as {profile: count}, those with the largest instances first.

    ``names`` restricts the profiles; each is written as in a layout. With ``maximal_only`` only sets to which no instance of these profiles can be added.
    Where the instances lie is not said: a set may have several placements. Raises FleetError UnknownProfile.
    """
    profiles = list(gpu.profiles) if names is None else list(dict.fromkeys(gpu.profile_named(str(name), "profiles") for name in names))
    profiles.sort(key=lambda profile: (-profile.size, -profile.compute_slices, profile.id))
    found = list(_counts(profiles, gpu.profiles))
    if maximal_only:
        known = set(found)
        found = [counts for counts in found if not any(_one_more(counts, place) in known for place in range(len(profiles)))]
    return [{profile.name: count for profile, count in zip(profiles, counts) if count} for counts in sorted(found, reverse=True)]


def _one_more(counts: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*counts[:place], counts[place] + 1, *counts[place + 1:])


def _counts(profiles: Sequence[Profile], offered: Sequence[Profile]) -> Iterator[tuple[int, ...]]:
    """Yield the feasible counts per profile, but for none at all. What holds a set holds its subsets too, so a set that does not fit ends its branch."""
    def grow(counts: tuple[int, ...], first: int) -> Iterator[tuple[int, ...]]:
        for place in range(first, len(profiles)):
            more = _one_more(counts, place)
            wanted = [Wanted(profile) for profile, count in zip(profiles, more) for _number in range(count)]
            if solve(wanted, [], offered) is not None:
                yield more
                yield from grow(more, place)

    return grow((0,) * len(profiles), 0)
