# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compute instances inside one GPU instance: which sizes it offers, and how they lie in its compute slices.

NVML tells the compute instance profiles only of a GPU instance that exists, so the planner goes by the rule of NVIDIA's go-nvlib and by the counts that boards
print (``nvidia-smi mig -lcip``), and for places by NVIDIA's open kernel module (kmigmgrXlateSpanStartToCTSId): a part begins at a multiple of its span, the
next power of two, and keeps all of the span. So two 3c lie at 0 and 4 in a 7g.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, Optional

Place = tuple[int, int]
"""(slices, start), both in compute slices of the GPU instance."""


class Refit(NamedTuple):
    """How the content of a GPU instance becomes what is wanted: indices of the compute instances that go, and the places of those that come."""

    gone: tuple[int, ...]
    new: tuple[Place, ...]


def offered_sizes(slices: int) -> list[int]:
    """Return the sizes of compute instances that a GPU instance of ``slices`` compute slices offers.

    A part that would leave less than itself but one slice is not offered: no 3c in 4g (go-nvlib, pkg/nvlib/device/mig_profile.go).
    """
    return [size for size in range(1, slices + 1) if size == slices or (2 * size <= slices + 1 and size in (1, 2, 3, 4))]


def describe_sizes(slices: int) -> str:
    """Return the offered sizes and how many of each fit, such as ``1c x3, 2c x1, 3c x1``."""
    return ", ".join(f"{size}c x{slices // size}" for size in offered_sizes(slices))


def _span(size: int) -> int:
    return 1 << (size - 1).bit_length()


@lru_cache(maxsize=4096)
def arrange(slices: int, wanted: tuple[int, ...], taken: tuple[Place, ...] = ()) -> Optional[tuple[Place, ...]]:
    """Return places for compute instances of the sizes ``wanted`` (largest first) beside those ``taken``, or None when they do not fit."""
    if not wanted:
        return ()
    size, span = wanted[0], _span(wanted[0])
    for start in range(0, slices - size + 1, span):
        if all(start + span <= other or other + _span(other_size) <= start for other_size, other in taken):
            rest = arrange(slices, wanted[1:], (*taken, (size, start)))
            if rest is not None:
                return ((size, start), *rest)
    return None


@lru_cache(maxsize=4096)
def refit(slices: int, present: tuple[Place, ...], wanted: tuple[int, ...], busy: frozenset[int] = frozenset()) -> Refit:
    """Return the change from the compute instances ``present`` to the sizes ``wanted`` that loses the fewest busy ones, then the fewest.

    ``wanted`` must fit into an empty GPU instance of ``slices`` slices. ``busy`` holds indices of ``present``.
    """
    def loss(kept: Sequence[int]) -> tuple[int, int]:
        gone = [number for number in range(len(present)) if number not in kept]
        return sum(number in busy for number in gone), len(gone)

    numbers = range(len(present))
    for kept in sorted((kept for count in numbers[::-1] for kept in combinations(numbers, count + 1)), key=loss):
        rest = _without(wanted, [present[number][0] for number in kept])
        new = None if rest is None else arrange(slices, rest, tuple(present[number] for number in kept))
        if new is not None:
            return Refit(tuple(number for number in numbers if number not in kept), new)
    new = arrange(slices, wanted)
    if new is None:
        raise ValueError(f"compute instances {wanted} do not fit into {slices} slices")
    return Refit(tuple(numbers), new)


def _without(wanted: Iterable[int], kept: Iterable[int]) -> Optional[tuple[int, ...]]:
    rest = list(wanted)
    for size in kept:
        if size not in rest:
            return None
        rest.remove(size)
    return tuple(rest)


def pack(slices: int, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the GPU instances, as the sizes in each (largest first), that hold compute instances of ``sizes``; each size must be offered.

    Largest first into the first GPU instance with room, as nvidia-mig-parted fills one after the other.
    """
    filled: list[tuple[int, ...]] = []
    for size in sorted(sizes, reverse=True):
        for number, content in enumerate(filled):
            if arrange(slices, (*content, size)) is not None:
                filled[number] = (*content, size)
                break
        else:
            filled.append((size,))
    return filled
