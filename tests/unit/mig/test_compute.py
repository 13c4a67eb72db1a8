# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compute instances inside a GPU instance: sizes, places, and the change from one division to another."""
from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.compute import arrange, describe_sizes, offered_sizes, pack, refit
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.layout import parse_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.parted import parse_parted
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mig.models import gpu

# What boards print for GPU instances of 1, 2, 3, 4 and 7 slices (nvidia-smi mig -lcip).
BOARDS = {1: "1c x1", 2: "1c x2, 2c x1", 3: "1c x3, 2c x1, 3c x1", 4: "1c x4, 2c x2, 4c x1", 7: "1c x7, 2c x3, 3c x2, 4c x1, 7c x1"}


@pytest.mark.parametrize(("slices", "printed"), BOARDS.items())
def test_sizes_and_counts_are_those_that_boards_print(slices: int, printed: str) -> None:
    assert describe_sizes(slices) == printed


# Compute slices that a part keeps, and at whose multiples it begins: the open kernel module's spans.
SPANS = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}


def divisions(slices: int) -> list[frozenset[tuple[int, int]]]:
    """Return every way to lie in a GPU instance, by trying every set of (slices, start)."""
    spots = [(size, start) for size in offered_sizes(slices) for start in range(0, slices - size + 1, SPANS[size])]
    found = []
    for count in range(len(spots) + 1):
        fitting = [frozenset(chosen) for chosen in combinations(spots, count) if disjoint(chosen)]
        if count and not fitting:
            break
        found += fitting
    return found


def disjoint(chosen: Any) -> bool:
    taken = [slot for size, start in chosen for slot in range(start, start + SPANS[size])]
    return len(taken) == len(set(taken))


@pytest.mark.parametrize("slices", [1, 2, 3, 4])
def test_every_division_becomes_every_other_with_the_fewest_lost(slices: int) -> None:
    everything = divisions(slices)
    contents = {tuple(sorted((size for size, _start in one), reverse=True)) for one in everything} - {()}
    for now, content in product(everything, contents):
        present = tuple(sorted(now))
        change = refit(slices, present, content)
        left = [place for number, place in enumerate(present) if number not in change.gone]
        assert disjoint([*left, *change.new])
        assert Counter(size for size, _start in [*left, *change.new]) == Counter(content)
        fewest = min(len(now - one) for one in everything if Counter(size for size, _start in one) == Counter(content))
        assert len(change.gone) == fewest, (now, content)


@pytest.mark.parametrize(("sizes", "places"), [
    ((3, 3), ((3, 0), (3, 4))), ((4, 3), ((4, 0), (3, 4))), ((3, 2, 1), ((3, 0), (2, 4), (1, 6))), ((3, 2, 2), ((3, 4), (2, 0), (2, 2))), ((3, 3, 1), None),
])
def test_a_part_keeps_its_whole_span(sizes: tuple[int, ...], places: Any) -> None:
    assert arrange(7, sizes) == places


def test_a_busy_compute_instance_stays_where_another_can_go() -> None:
    assert refit(3, ((1, 0), (1, 1), (1, 2)), (1,), frozenset({1})).gone == (0, 2)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([2, 3, 4, 7]), st.data())
def test_packed_sizes_fit_and_none_is_lost(slices: int, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.sampled_from(offered_sizes(slices)), max_size=20))
    packed = pack(slices, sizes)
    assert Counter(size for content in packed for size in content) == Counter(sizes)
    assert all(arrange(slices, content) is not None for content in packed)


def contents(instances: Any, device: Any = None) -> list[tuple[str, int, list[int]]]:
    """Return (profile, start, compute slices) of every instance that a layout leads to."""
    made = make_plan([device or gpu("h100")], parse_layouts([{"match": "all", "instances": instances}]), "keep")
    return [(row["profile"], row["start"], row["compute_slices"]) for row in made.layout_after()[0]["instances"]]


@pytest.mark.parametrize(("instances", "expected"), [
    ({"1c.3g.40gb": 3}, [("3g.40gb", [1, 1, 1])]),
    ({"1c.3g.40gb": 4}, [("3g.40gb", [1]), ("3g.40gb", [1, 1, 1])]),
    ({"1c.3g.40gb": 1, "2c.3g.40gb": 1}, [("3g.40gb", [2, 1])]),
    ({"1c.3g.40gb": 1, "3g.40gb": 1}, [("3g.40gb", [1]), ("3g.40gb", [3])]),
    ({"3c.3g.40gb": 1}, [("3g.40gb", [3])]),
    ({"2c.4g": 2}, [("4g.40gb", [2, 2])]),
    ([{"profile": "3g.40gb", "start": 4, "compute_instances": ["1c", 2]}], [("3g.40gb", [2, 1])]),
    ([{"profile": "2g", "count": 2, "compute_instances": [1, 1]}], [("2g.20gb", [1, 1]), ("2g.20gb", [1, 1])]),
    ("all-1c.2g", [("2g.20gb", [1, 1])] * 3),
])
def test_forms_of_divided_instances(instances: Any, expected: list[Any]) -> None:
    assert sorted((name, sizes) for name, _start, sizes in contents(instances)) == expected


def test_a_mig_parted_file_may_ask_for_compute_instances() -> None:
    document = {"version": "v1", "mig-configs": {"c": [{"devices": "all", "mig-enabled": True, "mig-devices": {"1c.2g.20gb": 2, "3g.40gb": 1}}]}}
    made = make_plan([gpu("h100")], parse_parted(document, None, "f"), "keep")
    assert sorted((row["profile"], row["compute_slices"]) for row in made.layout_after()[0]["instances"]) == [("2g.20gb", [1, 1]), ("3g.40gb", [3])]


def test_a_divided_layout_has_no_device_names_and_says_that_the_dra_plugin_would_not_start() -> None:
    made = make_plan([gpu("h100")], parse_layouts([{"match": "all", "instances": {"1c.3g.40gb": 2, "1g": 1}}]), "keep")
    assert [name.partition("-mig-")[2][:6] for name in made.device_names] == ["1g10gb"]
    assert [found.code for found in made.findings] == ["DividedInstance"]
    assert "with 1c and 1c" in made.findings[0].cause


def test_steps_name_slices_and_places_and_a_part_that_fits_stays() -> None:
    device = gpu("h100", instances=[("3g.40gb", 4)], slices={4: [1, 1, 1]})
    made = make_plan([device], parse_layouts([{"match": "all", "instances": {"1c.3g.40gb": 1, "2c.3g.40gb": 1}}]), "keep")
    assert [(step.action, step.compute_slices, step.compute_start) for step in made.steps] == [
        ("destroy_compute_instance", 1, 0), ("destroy_compute_instance", 1, 1), ("create_compute_instance", 2, 0),
    ]


def test_a_process_on_a_part_that_stays_does_not_block() -> None:
    def plan_with_user_of(compute: int | None) -> bool:
        user = {"pid": 1, "gpu_instance_id": 7, "compute_instance_id": compute, "used_memory_mib": 1, "kind": "compute"}
        device = gpu("h100", instances=[("3g.40gb", 4)], slices={4: [1, 1, 1]}, processes=[user])
        return bool(make_plan([device], parse_layouts([{"match": "all", "instances": {"1c.3g.40gb": 1, "2c.3g.40gb": 1}}]), "keep").gpus[0].blockers)

    assert not plan_with_user_of(2)
    assert plan_with_user_of(0)
    assert plan_with_user_of(None)
