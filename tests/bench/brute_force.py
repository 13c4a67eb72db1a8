# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All placements of all MIG layouts of a GPU, by trying every one. Shares no code with the planner, and is what its plans are held against.

Rules, after the NVIDIA MIG User Guide: instances do not overlap in memory slots; one instance at most owns media extensions (+me, +me.all); beside a +me.all
stand only instances without media engines (-me).
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Placement = frozenset[tuple[str, int]]
"""Where the instances of one layout lie: (profile, first memory slot)."""


class Row(NamedTuple):
    """One profile: the slots that an instance takes, and the slots at which it may begin."""

    name: str
    size: int
    starts: tuple[int, ...]


_SEVENTHS, _QUARTERS, _HALVES = tuple(range(7)), (0, 3, 6, 9), (0, 6)
TABLES: dict[str, list[Row]] = {
    "h100-80gb-hbm3": [
        Row("1g.10gb", 1, _SEVENTHS), Row("1g.10gb+me", 1, _SEVENTHS), Row("1g.20gb", 2, (0, 2, 4, 6)), Row("2g.20gb", 2, (0, 2, 4)),
        Row("3g.40gb", 4, (0, 4)), Row("4g.40gb", 4, (0,)), Row("7g.80gb", 8, (0,)),
    ],
    "a30": [
        Row("1g.6gb", 1, (0, 1, 2, 3)), Row("1g.6gb+me", 1, (0, 1, 2, 3)), Row("2g.12gb", 2, (0, 2)), Row("2g.12gb+me", 2, (0, 2)), Row("4g.24gb", 4, (0,)),
    ],
    "rtx-pro-6000-server": [
        *(Row(f"1g.24gb{suffix}", 3, _QUARTERS) for suffix in ("", "+me", "+gfx", "+me.all", "-me")),
        *(Row(f"2g.48gb{suffix}", 6, _HALVES) for suffix in ("", "+gfx", "+me.all", "-me")),
        *(Row(f"4g.96gb{suffix}", 12, (0,)) for suffix in ("", "+gfx")),
    ],
}


def rows_of(key: str) -> list[Row]:
    """Return the profiles of a model."""
    return TABLES[key]


def placements(rows: Sequence[Row]) -> list[Placement]:
    """Return every set of instances with their places that the rules allow, the empty one too."""
    spots = [(row, start, frozenset(range(start, start + row.size))) for row in rows for start in row.starts]

    def extend(chosen: tuple[tuple[str, int], ...], used: frozenset[int], first: int) -> Iterator[Placement]:
        yield frozenset(chosen)
        for number in range(first, len(spots)):
            row, start, slots = spots[number]
            if not slots & used:
                yield from extend((*chosen, (row.name, start)), used | slots, number + 1)

    return [found for found in extend((), frozenset(), 0) if _media_engines_suffice([name for name, _start in found])]


def _media_engines_suffice(names: Sequence[str]) -> bool:
    extended = sum(name.endswith(("+me", "+me.all")) for name in names)
    if any(name.endswith("+me.all") for name in names):
        return extended == 1 and sum(name.endswith("-me") for name in names) == len(names) - 1
    return extended <= 1


def layouts(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Placement]]:
    """Return every layout (its profiles, sorted, as often as they occur) with all placements that it has."""
    found = defaultdict(list)
    for placement in placements(rows):
        found[tuple(sorted(name for name, _start in placement))].append(placement)
    return dict(found)


class Loss(NamedTuple):
    """What a change costs: GPU instances destroyed, then NVML calls that change something. The smaller tuple is the better change."""

    destroyed: int
    calls: int


def rebuild(now: Placement, wanted: Placement) -> Loss:
    """Return what clearing the GPU and building ``wanted`` costs: two calls per instance, one for the GPU and one for the compute instance."""
    return Loss(len(now), 2 * (len(now) + len(wanted)))


def change(now: Placement, wanted: Placement) -> Loss:
    """Return what the change costs that leaves everything that stands where it is wanted."""
    return rebuild(now - wanted, wanted - now)


def optimum(now: Placement, wanted: Sequence[Placement]) -> Loss:
    """Return the least that any change to one of the placements ``wanted`` costs."""
    return min(change(now, placement) for placement in wanted)
