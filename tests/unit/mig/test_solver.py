# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The solver against brute force that shares no code with it."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.resolve import Wanted
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.solver import Present, conflict, slots_of, solve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mig.models import A30, RTX_PRO_4500, RTX_PRO_6000, SEVEN_SLICE_H100, gpu

PLAIN_SEVEN = [row for row in SEVEN_SLICE_H100 if "+" not in row[0]]
H100, RTX, A30_GPU = gpu("h100"), gpu("rtx"), gpu("a30")
Placement = tuple[str, int]


def all_placements(table: list, chosen: tuple[Placement, ...] = (), used: frozenset[int] = frozenset(), first: int = 0) -> Iterator[tuple[Placement, ...]]:
    """Yield every set of non-overlapping placements of a table, each once."""
    yield chosen
    spots = [(row, start) for row in table for start in row[5]]
    for number in range(first, len(spots)):
        row, start = spots[number]
        slots = frozenset(range(start, start + row[4]))
        if not slots & used:
            yield from all_placements(table, (*chosen, (row[0], start)), used | slots, number + 1)


# Decoders, encoders, JPEG and OFA engines by profile: nvidia-smi mig -lgip on boards. A GPU cannot give more than it has.
RTX_ENGINES = {"": (1, 1, 1, 0), "+me": (1, 1, 1, 1), "+gfx": (1, 1, 1, 0), "+me.all": (4, 4, 4, 1), "-me": (0, 0, 0, 0)}
RTX_STOCK = (4, 4, 4, 1)


def media_fit(model: str, names: list[str]) -> bool:
    """Return whether the media engines suffice, from engine counts on the RTX PRO, where they decide; elsewhere from the OFA engine that +me takes."""
    if model not in ("rtx", "rtx4500"):
        return sum(name.endswith("+me") for name in names) <= 1
    total = [0, 0, 0, 0]
    for name in names:
        stem = name.partition("gb")[0]
        slices, suffix = int(stem[0]), name.partition("gb")[2]
        for kind, engines in enumerate(RTX_ENGINES[suffix]):
            scale = slices if suffix in ("", "+gfx") and kind < 3 else 1
            total[kind] += engines * scale + (kind == 3 and slices == 4)
    return all(used <= stock for used, stock in zip(total, RTX_STOCK, strict=True))


def wanted(device, names: list[str]) -> list[Wanted]:
    return [Wanted(device.profile_named(name, "test")) for name in names]


def placed(solution) -> set[Placement]:
    return {(item.profile.name, item.start) for item in solution}


PLACED_SEVEN = list(all_placements(PLAIN_SEVEN))
FEASIBLE_SEVEN = sorted({tuple(sorted(name for name, _start in layout)) for layout in PLACED_SEVEN if layout})


def test_there_are_77_layouts_and_each_has_a_valid_solution() -> None:
    assert len(FEASIBLE_SEVEN) == 77
    valid = {frozenset(layout) for layout in PLACED_SEVEN}
    for names in FEASIBLE_SEVEN:
        solution = solve(wanted(H100, list(names)), [], H100.profiles)
        assert solution is not None, names
        assert Counter(item.profile.name for item in solution) == Counter(names)
        assert frozenset(placed(solution)) in valid, names


def test_what_is_not_among_the_77_is_refused() -> None:
    feasible = set(FEASIBLE_SEVEN)
    names = sorted(row[0] for row in PLAIN_SEVEN)
    tried = 0
    for count in range(1, 5):
        for multiset in combinations_with_replacement(names, count):
            if multiset not in feasible:
                tried += 1
                assert solve(wanted(H100, list(multiset)), [], H100.profiles) is None, multiset
    assert tried > 90


@pytest.mark.parametrize("names", [["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], ["3g.40gb"] + ["1g.10gb"] * 4, ["1g.20gb"] + ["1g.10gb"] * 6])
def test_layouts_that_a_greedy_driver_misses(names: list[str]) -> None:
    assert solve(wanted(H100, names), [], H100.profiles) is not None


def most_kept(table: list, names: list[str], present: list[Placement]) -> int:
    """Return, over all ways to place ``names``, the largest number of present placements that are among them."""
    target = Counter(names)
    return max(len(set(layout) & set(present)) for layout in all_placements(table) if Counter(name for name, _ in layout) == target)


def present_of(table: list, layout: tuple[Placement, ...], busy: frozenset[int] = frozenset()) -> list[Present]:
    rows = {row[0]: row for row in table}
    return [Present(rows[name][1], start, rows[name][4], busy=start in busy) for name, start in layout]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLACED_SEVEN), st.sampled_from(FEASIBLE_SEVEN))
def test_the_fewest_instances_are_destroyed_on_seven_slices(now: tuple[Placement, ...], names: tuple[str, ...]) -> None:
    target = Counter(names)
    fitting = [layout for layout in PLACED_SEVEN if Counter(name for name, _ in layout) == target]
    best = max(len(set(layout) & set(now)) for layout in fitting)
    solution = solve(wanted(H100, list(names)), present_of(PLAIN_SEVEN, now), H100.profiles)
    assert solution is not None
    assert sum(item.kept is not None for item in solution) == best
    for item in solution:
        if item.kept is not None:
            assert (item.profile.name, item.start) == now[item.kept]


A30_LAYOUTS = list(all_placements([row for row in A30 if "+" not in row[0]]))


def test_the_fewest_instances_are_destroyed_for_every_pair_on_four_slices() -> None:
    table = [row for row in A30 if "+" not in row[0]]
    multisets = {tuple(sorted(name for name, _ in layout)) for layout in A30_LAYOUTS}
    for now in A30_LAYOUTS:
        for names in multisets:
            solution = solve(wanted(A30_GPU, list(names)), present_of(table, now), A30_GPU.profiles)
            assert solution is not None
            assert sum(item.kept is not None for item in solution) == most_kept(table, list(names), list(now)), (now, names)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PLACED_SEVEN), st.sampled_from(FEASIBLE_SEVEN), st.data())
def test_busy_instances_count_more_than_the_number_destroyed(now: tuple[Placement, ...], names: tuple[str, ...], data: st.DataObject) -> None:
    busy = data.draw(st.frozensets(st.sampled_from([start for _name, start in now]))) if now else frozenset()
    target = Counter(names)

    def loss(layout: tuple[Placement, ...]) -> tuple[int, int]:
        gone = set(now) - set(layout)
        return (sum(start in busy for _name, start in gone), len(gone))

    best = min(loss(layout) for layout in PLACED_SEVEN if Counter(name for name, _ in layout) == target)
    solution = solve(wanted(H100, list(names)), present_of(PLAIN_SEVEN, now, busy), H100.profiles)
    assert solution is not None
    assert loss(tuple(placed(solution))) == best


def test_an_instance_that_would_lose_its_compute_instances_is_the_last_choice_among_equals() -> None:
    present = [Present(9, 0, 4, computes=((1, 0), (2, 1))), Present(9, 4, 4, computes=((3, 0),))]
    solution = solve(wanted(H100, ["3g.40gb"]), present, H100.profiles)
    assert solution is not None and solution[0].kept == 1


def test_a_fixed_start_is_kept_apart_from_free_ones() -> None:
    three = H100.profile_named("3g.40gb", "test")
    solution = solve([Wanted(three, 4), *wanted(H100, ["1g.10gb"] * 4)], [], H100.profiles)
    assert solution is not None
    assert placed(solution) == {("3g.40gb", 4), ("1g.10gb", 0), ("1g.10gb", 1), ("1g.10gb", 2), ("1g.10gb", 3)}
    assert solve([Wanted(three, 0), *wanted(H100, ["1g.10gb"] * 4)], [], H100.profiles) is None


def test_a_survivor_elsewhere_does_not_satisfy_a_fixed_start() -> None:
    three = H100.profile_named("3g.40gb", "test")
    solution = solve([Wanted(three, 4)], [Present(9, 0, 4)], H100.profiles)
    assert solution is not None and solution[0].kept is None and solution[0].start == 4


@pytest.mark.parametrize(("names", "possible"), [
    (["1g.24gb+me.all", "1g.24gb-me", "1g.24gb-me", "1g.24gb-me"], True),
    (["1g.24gb+me.all", "1g.24gb"], False),
    (["1g.24gb+me", "1g.24gb+me"], False),
    (["1g.24gb+me", "1g.24gb+me.all"], False),
    (["1g.24gb+me", "1g.24gb", "2g.48gb"], True),
    (["2g.48gb+gfx", "1g.24gb+gfx", "1g.24gb"], True),
    (["2g.48gb", "1g.24gb", "1g.24gb", "1g.24gb"], False),
    (["4g.96gb", "1g.24gb"], False),
])
def test_media_rules_and_geometry_of_rtx_pro(names: list[str], possible: bool) -> None:
    assert (solve(wanted(RTX, names), [], RTX.profiles) is not None) is possible


def test_rtx_pro_layouts_are_those_of_the_geometry() -> None:
    plain = [row for row in RTX_PRO_6000 if row[0] in ("1g.24gb", "2g.48gb", "4g.96gb")]
    feasible = {tuple(sorted(name for name, _ in layout)) for layout in all_placements(plain)}
    for count in range(1, 6):
        for multiset in combinations_with_replacement(sorted(row[0] for row in plain), count):
            assert (solve(wanted(RTX, list(multiset)), [], RTX.profiles) is not None) is (multiset in feasible), multiset


@pytest.mark.parametrize(("model", "table"), [("h100", SEVEN_SLICE_H100), ("a30", A30), ("rtx", RTX_PRO_6000), ("rtx4500", RTX_PRO_4500)])
def test_what_fits_by_slots_is_refused_only_where_media_engines_do_not_suffice(model: str, table: list) -> None:
    device = gpu(model)
    for names in {tuple(sorted(name for name, _ in layout)) for layout in all_placements(table)}:
        assert (solve(wanted(device, list(names)), [], device.profiles) is not None) is media_fit(model, list(names)), names


def test_an_orphan_goes_before_a_complete_instance_for_it_takes_fewer_calls() -> None:
    complete, orphan = Present(9, 0, 4, computes=((3, 0),)), Present(9, 4, 4)
    for present in ([complete, orphan], [orphan, complete]):
        solution = solve(wanted(H100, ["3g.40gb"]), present, H100.profiles)
        assert solution is not None and present[solution[0].kept or 0] is complete


@pytest.mark.parametrize(("names", "start"), [(["1g.10gb"], 6), (["1g.20gb"], 6), (["2g.20gb"], 4), (["3g.40gb"], 4)])
def test_a_new_instance_leaves_the_most_room(names: list[str], start: int) -> None:
    solution = solve(wanted(H100, names), [], H100.profiles)
    assert solution is not None and solution[0].start == start


def test_room_is_kept_between_survivors() -> None:
    # 2g at 0 stays; the 1g goes beside it, into what is no half any more
    solution = solve(wanted(H100, ["2g.20gb", "1g.10gb"]), [Present(14, 0, 2, computes=((2, 0),))], H100.profiles)
    assert solution is not None and placed(solution) == {("2g.20gb", 0), ("1g.10gb", 3)}


def test_a_foreign_instance_goes_and_one_in_the_way_too() -> None:
    foreign, in_the_way = Present(99, 4, 2, computes=((1, 0),)), Present(14, 0, 2, computes=((2, 0),))
    solution = solve(wanted(H100, ["7g.80gb"]), [foreign, in_the_way], H100.profiles)
    assert solution is not None and [item.kept for item in solution] == [None]


def test_conflict_says_which_rule_is_broken() -> None:
    assert conflict(wanted(H100, ["3g.40gb"] * 2 + ["1g.10gb"]), slots_of(H100.profiles)) == "they need 9 memory slots of 8"
    assert "media" in str(conflict(wanted(H100, ["1g.10gb+me"] * 2), slots_of(H100.profiles)))
    assert conflict(wanted(H100, ["3g.40gb", "2g.20gb"]), slots_of(H100.profiles)) is None
