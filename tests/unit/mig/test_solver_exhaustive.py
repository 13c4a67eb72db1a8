# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every layout that a GPU can have, in every placement, against every layout that can be wanted: what test_solver.py draws samples of."""
from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.solver import solve

from tests.unit.mig.models import A30, RTX_PRO_4500, RTX_PRO_6000, SEVEN_SLICE_H100, gpu
from tests.unit.mig.test_solver import Placement, all_placements, media_fit, present_of, wanted


@pytest.mark.slow
@pytest.mark.parametrize(("model", "table"), [("h100", SEVEN_SLICE_H100), ("a30", A30), ("rtx", RTX_PRO_6000), ("rtx4500", RTX_PRO_4500)])
def test_the_fewest_instances_are_destroyed_for_every_pair(model: str, table: list) -> None:
    device = gpu(model)
    reachable = [layout for layout in all_placements(table) if media_fit(model, [name for name, _start in layout])]
    placements: dict[tuple[str, ...], list[frozenset[Placement]]] = defaultdict(list)
    for layout in reachable:
        placements[tuple(sorted(name for name, _ in layout))].append(frozenset(layout))
    pairs = 0
    for now in reachable:
        present, there = present_of(table, now), frozenset(now)
        for names, fitting in placements.items():
            solution = solve(wanted(device, list(names)), present, device.profiles)
            assert solution is not None, (now, names)
            assert Counter(item.profile.name for item in solution) == Counter(names)
            best = max(len(layout & there) for layout in fitting)
            assert sum(item.kept is not None for item in solution) == best, (now, names)
            pairs += 1
    print(f"{model}: {len(reachable)} placements of {len(placements)} layouts, {pairs} pairs")
