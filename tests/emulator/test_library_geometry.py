# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which layouts fit: every reachable one, by trying all placements on the emulator, against geometry computed here."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine
from tests.emulator.listings import options

#: Memory slices by profile id: (size, starts, instance limit).
SEVEN_SLICES = {
    19: (1, range(7), 7), 20: (1, range(7), 1), 15: (2, (0, 2, 4, 6), 4), 14: (2, (0, 2, 4), 3), 9: (4, (0, 4), 2), 5: (4, (0,), 1), 0: (8, (0,), 1),
}
A30 = {14: (1, range(4), 4), 21: (1, range(4), 1), 5: (2, (0, 2), 2), 6: (2, (0, 2), 1), 0: (4, (0,), 1)}
QUARTERS, HALVES = (0, 3, 6, 9), (0, 6)
RTX_PRO_6000 = {
    14: (3, QUARTERS, 4), 21: (3, QUARTERS, 1), 47: (3, QUARTERS, 4), 65: (3, QUARTERS, 1), 67: (3, QUARTERS, 4),
    5: (6, HALVES, 2), 35: (6, HALVES, 2), 64: (6, HALVES, 1), 66: (6, HALVES, 2), 0: (12, (0,), 1), 32: (12, (0,), 1),
}
#: Profiles that hold the one media extension (OFA) of the GPU, those of them that hold all its media engines, and those without any.
EXTENSION = {20, 21, 6, 65, 64, 0, 32}
ALL_MEDIA = {65, 64}
NO_MEDIA = {67, 66}
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


def layouts(geometry: dict[int, Any]) -> set[tuple[int, ...]]:
    """All sets of profiles that fit: no two on one memory slice, no limit passed, one media extension, all media engines only beside none."""
    places = [(profile, ((1 << size) - 1) << start) for profile, (size, starts, _limit) in geometry.items() for start in starts]
    found = set()

    def allowed(chosen: tuple[int, ...]) -> bool:
        within_limits = all(chosen.count(profile) <= geometry[profile][2] for profile in chosen)
        others = [profile for profile in chosen if profile not in ALL_MEDIA]
        return within_limits and sum(profile in EXTENSION for profile in chosen) <= 1 and (
            len(others) == len(chosen) or all(profile in NO_MEDIA for profile in others))

    def extend(first: int, taken: int, chosen: tuple[int, ...]) -> None:
        found.add(tuple(sorted(chosen)))
        for number in range(first, len(places)):
            profile, mask = places[number]
            if not mask & taken and allowed((*chosen, profile)):
                extend(number + 1, taken | mask, (*chosen, profile))

    extend(0, 0, ())
    return found - {()}


@pytest.mark.parametrize(
    ("model", "geometry"),
    [("h100-80gb-hbm3", SEVEN_SLICES), ("a100-40gb-sxm4", SEVEN_SLICES), ("a30", A30), ("rtx-pro-6000-server", RTX_PRO_6000)],
)
def test_exactly_the_feasible_layouts_are_reachable(nvml_machine: Callable[..., Machine], model: str, geometry: dict[int, Any]) -> None:
    places = [(profile, start, size) for profile, (size, starts, _limit) in geometry.items() for start in starts]
    reached = {tuple(layout) for layout in nvml_machine(model, options=options(model)).python(EXPLORE % places) if layout}
    assert reached == layouts(geometry)


def test_the_layouts_of_seven_slices_are_the_77_of_the_enumeration() -> None:
    """Without media extensions: the number that anyone gets from the placements alone."""
    assert len(layouts({profile: places for profile, places in SEVEN_SLICES.items() if profile != 20})) == 77


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


@pytest.mark.parametrize(
    ("model", "profiles", "seen"),
    [
        pytest.param("h100-80gb-pcie", [19] * 7, [9, 7, 8, 11, 12, 13, 14], id="H100 PCIe, driver 570.169"),
        pytest.param("a30", [14, 14, 5], [3, 4, 2], id="A30, driver 535.183.01"),
        pytest.param("a100-40gb-sxm4", [9, 19, 14, 19], [1, 11, 6, 12], id="A100 40GB under vSphere"),
    ],
)
def test_instance_ids_in_the_order_that_boards_gave_them(
    nvml_machine: Callable[..., Machine], model: str, profiles: list[int], seen: list[int],
) -> None:
    """What `nvidia-smi mig -cgi` printed when no placement was asked for (for A100: the ids of that layout, in the order that the guide gives)."""
    assert nvml_machine(model, options=options(model)).python(f"""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        result = [nvml.nvmlGpuInstanceGetInfo(nvml.nvmlDeviceCreateGpuInstance(gpu, profile)).id for profile in {profiles}]
    """) == seen
