# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All layouts of a model, against a count over placements that shares no code with it."""
from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.layouts import feasible_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.offline import offline_gpu
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.bench.brute_force import Row, layouts, rows_of

PLAIN = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]


def as_set(found: list[dict[str, int]]) -> set[frozenset[tuple[str, int]]]:
    return {frozenset(layout.items()) for layout in found}


def counted(rows: list[Row]) -> set[frozenset[tuple[str, int]]]:
    return {frozenset(Counter(names).items()) for names in layouts(rows) if names}


def test_there_are_77_on_an_h100_and_28_of_them_are_maximal() -> None:
    gpu = offline_gpu("h100-80gb-hbm3")
    assert len(feasible_layouts(gpu, PLAIN)) == 77
    maximal = feasible_layouts(gpu, PLAIN, maximal_only=True)
    assert len(maximal) == 28
    assert maximal[0] == {"7g.80gb": 1}
    assert {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2} in maximal
    assert {"3g.40gb": 1, "2g.20gb": 1} not in maximal


@pytest.mark.parametrize("key", ["a30", "h100-80gb-hbm3", "rtx-pro-6000-server"])
def test_they_are_those_that_placements_give(key: str) -> None:
    gpu = offline_gpu(key)
    found = feasible_layouts(gpu)
    assert as_set(found) == counted(rows_of(key))
    assert len(found) == len(as_set(found))


@pytest.mark.parametrize("key", ["a30", "rtx-pro-6000-server"])
def test_nothing_can_be_added_to_a_maximal_one_and_the_others_are_parts_of_one(key: str) -> None:
    gpu = offline_gpu(key)
    everything, maximal = as_set(feasible_layouts(gpu)), [Counter(layout) for layout in feasible_layouts(gpu, maximal_only=True)]
    for layout in maximal:
        for profile in gpu.profiles:
            assert frozenset((layout + Counter([profile.name])).items()) not in everything
    for layout in everything:
        assert any(Counter(dict(layout)) <= whole for whole in maximal)


def test_profiles_are_named_as_in_a_layout_and_the_order_is_by_size() -> None:
    gpu = offline_gpu("h100-80gb-hbm3")
    assert feasible_layouts(gpu, ["1g", "3g", "3g.40gb"], maximal_only=True) == [{"3g.40gb": 2}, {"3g.40gb": 1, "1g.10gb": 4}, {"1g.10gb": 7}]
    with pytest.raises(FleetError, match=r"^profiles: .* offers no MIG profile 5g"):
        feasible_layouts(gpu, ["5g"])


def test_only_one_instance_owns_the_media_extensions() -> None:
    found = feasible_layouts(offline_gpu("rtx-pro-6000-server"), ["1g.24gb+me.all", "1g.24gb+me", "1g.24gb-me", "1g.24gb"])
    assert {"1g.24gb+me.all": 1, "1g.24gb-me": 3} in found
    assert {"1g.24gb": 3, "1g.24gb+me": 1} in found
    assert not any({"1g.24gb+me.all", "1g.24gb"} <= set(layout) for layout in found)
    assert not any(layout.get("1g.24gb+me", 0) + layout.get("1g.24gb+me.all", 0) > 1 for layout in found)
