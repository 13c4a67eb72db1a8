# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Exact placement of GPU instances: which of the present ones stay, and where the others go.

Every placement of the wanted instances is a candidate, and the one of least :class:`Cost` is taken: drivers left to choose places themselves miss layouts that
fit (3g + 2g + 1g + 1g fits only with the 3g at slot 4), and a tool that rebuilds a GPU destroys what could have stayed. A GPU has at most a dozen memory slots,
so the search ends soon; branches that already lose more than the best found are left.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

from .catalogue import Profile
from .compute import Place, Refit, arrange, refit
from .resolve import Wanted

_UNCHANGED = Refit((), ())


@dataclass(frozen=True)
class Present:
    """A GPU instance on the GPU now.

    ``computes`` are the places of its compute instances; ``busy_computes`` the indices of those in use. ``busy``: destroying it would hurt a process.
    """

    profile_id: int
    start: int
    size: int
    computes: tuple[Place, ...] = ()
    busy: bool = False
    busy_computes: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Placed:
    """One GPU instance of the solution.

    ``kept`` is the index of the present instance that stays, or None when it is to be created. ``refit`` is what changes in it: for a created one all its
    compute instances are new.
    """

    profile: Profile
    start: int
    kept: Optional[int] = None
    refit: Refit = _UNCHANGED


class Cost(NamedTuple):
    """What a placement costs; the smaller tuple wins.

    ``busy``: instances lost that a process uses. ``destroyed``: GPU instances destroyed. ``divided``: compute instances destroyed in GPU instances that stay.
    ``calls``: NVML calls that change something. ``room``: minus the number of instances that still fit afterwards, of every profile, the largest first.
    """

    busy: int
    destroyed: int
    divided: int
    calls: int
    room: tuple[int, ...]


def solve(wanted: Sequence[Wanted], present: Sequence[Present], profiles: Sequence[Profile]) -> list[Placed] | None:
    """Return one :class:`Placed` per wanted instance, sorted by start, of the least cost; None when the wanted ones cannot stand together.

    ``profiles`` are all that the GPU offers: they say how much room a placement leaves.
    """
    if conflict(wanted, slots_of(profiles)) is not None:
        return None
    return _Search(wanted, present, profiles).best()


def slots_of(profiles: Iterable[Profile]) -> int:
    """Return the number of memory slots of a GPU: the end of the furthest placement that its profiles have."""
    return max((start + profile.size for profile in profiles for start in profile.starts), default=0)


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


class _Search:
    """Depth-first over the wanted instances, the largest first, each from its highest place down; equal ones take falling places, so each placement is
    seen once. Of equal costs the first found stands."""

    def __init__(self, wanted: Sequence[Wanted], present: Sequence[Present], profiles: Sequence[Profile]) -> None:
        self._items = sorted(wanted, key=lambda item: (item.start is None, -item.profile.size, item.profile.id, item.content, item.start or 0))
        self._present = present
        self._at = {(item.profile_id, item.start): number for number, item in enumerate(present)}
        self._masks = [_mask(item.start, item.size) for item in present]
        # How much room is left is judged by the plain profiles; the variants with other engines lie in the same places.
        self._room_profiles = sorted((p for p in profiles if not p.suffix), key=lambda p: (-p.size, -p.compute_slices, p.id))
        self._rooms: dict[int, tuple[int, ...]] = {}
        self._dead: set[tuple[int, int]] = set()
        self._found: Optional[tuple[Cost, list[Placed]]] = None

    def best(self) -> list[Placed] | None:
        if self._fits(0, 0):
            self._place(0, 0, [])
        return None if self._found is None else sorted(self._found[1], key=lambda placed: placed.start)

    def _starts(self, item: Wanted) -> Sequence[int]:
        return item.profile.starts[::-1] if item.start is None else (item.start,)

    def _fits(self, number: int, used: int) -> bool:
        """Return whether the items from ``number`` on fit beside the ``used`` slots at all."""
        if number == len(self._items):
            return True
        if (number, used) in self._dead:
            return False
        item = self._items[number]
        for start in self._starts(item):
            mask = _mask(start, item.profile.size)
            if not used & mask and self._fits(number + 1, used | mask):
                return True
        self._dead.add((number, used))
        return False

    def _place(self, number: int, used: int, placed: list[Placed]) -> None:
        if number == len(self._items):
            cost = self._cost(placed, used)
            if self._found is None or cost < self._found[0]:
                self._found = cost, list(placed)
            return
        if self._found is not None and self._least_loss(number, used, placed) > self._found[0][:2]:
            return
        item = self._items[number]
        twin = number and self._items[number - 1] == item and item.start is None
        for start in self._starts(item):
            mask = _mask(start, item.profile.size)
            if used & mask or (twin and start > placed[-1].start) or not self._fits(number + 1, used | mask):
                continue
            self._place(number + 1, used | mask, [*placed, self._placed(item, start)])

    def _placed(self, item: Wanted, start: int) -> Placed:
        kept = self._at.get((item.profile.id, start))
        slices = item.profile.compute_slices
        if kept is None:
            return Placed(item.profile, start, None, Refit((), arrange(slices, item.content) or ()))
        there = self._present[kept]
        return Placed(item.profile, start, kept, refit(slices, there.computes, item.content, there.busy_computes))

    def _least_loss(self, number: int, used: int, placed: Sequence[Placed]) -> tuple[int, int]:
        """Return a lower bound of (busy, destroyed): what the placed ones cover, and what the remaining ones cannot keep."""
        kept = {item.kept for item in placed}
        lost = [index for index, mask in enumerate(self._masks) if index not in kept and used & mask]
        open_ids = Counter(item.profile.id for item in self._items[number:])
        free_ids = Counter(item.profile_id for index, item in enumerate(self._present) if index not in kept and not used & self._masks[index])
        keepable = sum(min(count, free_ids[profile_id]) for profile_id, count in open_ids.items())
        kept_at_most = len(placed) - sum(item.kept is None for item in placed) + keepable
        return sum(self._present[index].busy for index in lost), len(self._present) - kept_at_most

    def _cost(self, placed: Sequence[Placed], used: int) -> Cost:
        kept = {item.kept for item in placed}
        lost = [item for number, item in enumerate(self._present) if number not in kept]
        busy = sum(item.busy for item in lost)
        divided = 0
        calls = sum(1 + len(item.computes) for item in lost)
        for item in placed:
            calls += (item.kept is None) + len(item.refit.gone) + len(item.refit.new)
            if item.kept is not None:
                divided += len(item.refit.gone)
                busy += len(self._present[item.kept].busy_computes.intersection(item.refit.gone))
        return Cost(busy, len(lost), divided, calls, self._room(used))

    def _room(self, used: int) -> tuple[int, ...]:
        if used not in self._rooms:
            self._rooms[used] = tuple(-_how_many(profile, used) for profile in self._room_profiles)
        return self._rooms[used]


def _how_many(profile: Profile, used: int) -> int:
    """Return how many instances of ``profile`` fit beside the ``used`` slots; of one size, the lowest free place first is optimal."""
    count = 0
    for start in profile.starts:
        mask = _mask(start, profile.size)
        if not used & mask:
            used |= mask
            count += 1
    return count
