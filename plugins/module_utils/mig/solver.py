# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Exact placement of GPU instances: which of the present ones stay, and where the others go.

Lexicographic optimum: fewest busy instances lost, then fewest GPU instances destroyed, then fewest whose compute instances must be made again. A GPU has at
most a dozen memory slots, so every set of survivors is tried from the best downwards, each with a backtracking search over explicit placements; drivers left
to choose placements themselves miss layouts that fit (3g + 2g + 1g + 1g fits only with the 3g at slot 4).
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Optional

from .catalogue import Profile
from .resolve import Wanted


@dataclass(frozen=True)
class Present:
    """A GPU instance on the GPU now. ``intact``: its compute instance is as wanted or only missing. ``busy``: destroying it would hurt a process."""

    profile_id: int
    start: int
    size: int
    intact: bool = True
    busy: bool = False


@dataclass(frozen=True)
class Placed:
    """One instance of the solution. ``kept`` is the index of the present instance that stays, or None when it is to be created."""

    profile: Profile
    start: int
    kept: Optional[int] = None


def solve(wanted: Sequence[Wanted], present: Sequence[Present], slots: int) -> list[Placed] | None:
    """Return one :class:`Placed` per wanted instance, sorted by start, with the fewest losses; None when the wanted ones cannot stand together.

    ``slots`` is the number of memory slots of the GPU.
    """
    if conflict(wanted, slots) is not None or _fill(list(wanted), 0, {}) is None:
        return None
    for survivors in _survivor_sets(present, wanted):
        solution = _with_survivors(wanted, present, survivors)
        if solution is not None:
            return sorted(solution, key=lambda placed: placed.start)
    return None


def conflict(wanted: Sequence[Wanted], slots: int) -> str | None:
    """Return why the wanted instances can never stand together for a rule that needs no search (memory, media extensions), or None."""
    needed = sum(item.profile.size for item in wanted)
    if needed > slots:
        return f"they need {needed} memory slots of {slots}"
    # NVIDIA MIG User Guide: one +me per GPU; +me.all takes every media engine, so only profiles without media engines (-me) fit beside it.
    suffixes = Counter(item.profile.suffix for item in wanted)
    if suffixes["+me"] + suffixes["+me.all"] > 1:
        return "only one instance may own the media extensions (+me or +me.all)"
    if suffixes["+me.all"] and len(wanted) > 1 + suffixes["-me"]:
        return "beside a +me.all instance only -me instances are possible"
    return None


def _mask(start: int, size: int) -> int:
    return ((1 << size) - 1) << start


def _survivor_sets(present: Sequence[Present], wanted: Sequence[Wanted]) -> Iterator[tuple[int, ...]]:
    """Yield sets of present instances that could stay, cheapest loss first."""
    wanted_ids = {item.profile.id for item in wanted}
    candidates = [number for number, item in enumerate(present) if item.profile_id in wanted_ids]

    def loss(kept: tuple[int, ...]) -> tuple[int, int, int]:
        lost = [item for number, item in enumerate(present) if number not in kept]
        broken = [present[number] for number in kept if not present[number].intact]
        return (sum(item.busy for item in lost + broken), len(lost), len(broken))

    sets = [kept for count in range(len(candidates), -1, -1) for kept in combinations(candidates, count)]
    return iter(sorted(sets, key=loss))


def _with_survivors(wanted: Sequence[Wanted], present: Sequence[Present], survivors: Sequence[int]) -> list[Placed] | None:
    """Return a full solution that keeps exactly ``survivors``, or None."""
    open_items = list(wanted)
    placed: list[Placed] = []
    used = 0
    for number in survivors:
        item = present[number]
        # A fixed start is satisfied by the survivor that stands there; other survivors take requests without one.
        match = next((w for w in open_items if w.profile.id == item.profile_id and w.start == item.start), None)
        match = match or next((w for w in open_items if w.profile.id == item.profile_id and w.start is None), None)
        if match is None:
            return None
        open_items.remove(match)
        placed.append(Placed(match.profile, item.start, number))
        used |= _mask(item.start, item.size)
    rest = _fill(open_items, used, {})
    return None if rest is None else placed + rest


def _fill(items: list[Wanted], used: int, dead: dict[tuple[int, tuple[Wanted, ...]], bool]) -> list[Placed] | None:
    """Place every item into the free slots, largest first and from the highest start; ``dead`` remembers states that failed."""
    if not items:
        return []
    items = sorted(items, key=lambda item: (item.start is None, -item.profile.size, item.profile.id))
    state = (used, tuple(items))
    if state in dead:
        return None
    item, rest = items[0], items[1:]
    starts = sorted(item.profile.starts, reverse=True) if item.start is None else [item.start]
    for start in starts:
        mask = _mask(start, item.profile.size)
        if used & mask:
            continue
        solution = _fill(rest, used | mask, dead)
        if solution is not None:
            return [Placed(item.profile, start)] + solution
    dead[state] = True
    return None
