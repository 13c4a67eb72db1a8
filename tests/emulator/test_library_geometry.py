# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which layouts fit: every reachable one, by trying all placements on the emulator, against geometry computed here."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tests.emulator.conftest import Machine

#: Memory slices of the profiles with seven compute and eight memory slices, by profile id: (size, starts).
GEOMETRY = {19: (1, range(7)), 15: (2, (0, 2, 4, 6)), 14: (2, (0, 2, 4)), 9: (4, (0, 4)), 5: (4, (0,)), 0: (8, (0,))}
LIMITS = {19: 7, 15: 4, 14: 3, 9: 2, 5: 1, 0: 1}
EXPLORE = """
gpu = device()
nvml.nvmlDeviceSetMigMode(gpu, 1)
places = %s
reached, chosen = set(), []

def explore(first):
    reached.add(tuple(sorted(places[number][0] for number in chosen)))
    for number in range(first, len(places)):
        profile, start, size = places[number]
        try:
            instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, placement(start, size))
        except nvml.NVMLError_InsufficientResources:
            continue
        chosen.append(number)
        explore(number + 1)
        chosen.pop()
        nvml.nvmlGpuInstanceDestroy(instance)

explore(0)
result = sorted(reached)
"""


def fits(counts: dict[int, int]) -> bool:
    """Whether the multiset can be laid out without overlap."""
    wanted = sorted((profile for profile, count in counts.items() for _ in range(count)), key=lambda profile: -GEOMETRY[profile][0])

    def place(remaining: list[int], taken: int) -> bool:
        if not remaining:
            return True
        size, starts = GEOMETRY[remaining[0]]
        masks = [((1 << size) - 1) << start for start in starts]
        return any(not mask & taken and place(remaining[1:], taken | mask) for mask in masks)

    return place(wanted, 0)


def feasible() -> set[tuple[int, ...]]:
    found = set()
    for counts in product(*(range(limit + 1) for limit in LIMITS.values())):
        chosen = dict(zip(LIMITS, counts, strict=True))
        if any(counts) and fits(chosen):
            found.add(tuple(sorted(profile for profile, count in chosen.items() for _ in range(count))))
    return found


@pytest.mark.parametrize("model", ["h100-80gb-hbm3"])
def test_exactly_the_77_feasible_layouts_are_reachable(nvml_machine: Callable[..., Machine], model: str) -> None:
    places = [(profile, start, size) for profile, (size, starts) in GEOMETRY.items() for start in starts]
    reached = {tuple(layout) for layout in nvml_machine(model).python(EXPLORE % places) if layout}
    assert len(feasible()) == 77
    assert reached == feasible()


@pytest.mark.parametrize(
    ("order", "codes"),
    [
        pytest.param([19, 19, 14, 9], [0, 0, 0, 23], id="small first fails"),
        pytest.param([9, 19, 14, 19], [0, 0, 0, 0], id="3g first works"),
    ],
)
def test_the_drivers_own_placement(nvml_machine: Callable[..., Machine], order: list[int], codes: list[int]) -> None:
    """The pair of orders that NVIDIA's MIG user guide shows for 3-2-1-1."""
    assert nvml_machine("h100-80gb-hbm3").python(f"""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        result = [code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, profile) for profile in {order}]
    """) == codes
