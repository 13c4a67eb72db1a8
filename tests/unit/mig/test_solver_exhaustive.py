# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every layout that a GPU can have against every layout that can be wanted: what test_solver.py draws samples of."""
from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.solver import solve

from tests.unit.mig.models import RTX_PRO_6000, SEVEN_SLICE_H100, gpu
from tests.unit.mig.test_solver import Placement, all_placements, present_of, wanted


@pytest.mark.slow
@pytest.mark.parametrize(("model", "table"), [("h100", SEVEN_SLICE_H100), ("rtx", RTX_PRO_6000)])
def test_the_fewest_instances_are_destroyed_for_every_pair(model: str, table: list) -> None:
    device = gpu(model)
    # media extensions have rules of their own beside the geometry
    plain = [row for row in table if "+me" not in row[0] and "-me" not in row[0]]
    placements: dict[tuple[str, ...], list[set[Placement]]] = defaultdict(list)
    for layout in all_placements(plain):
        placements[tuple(sorted(name for name, _ in layout))].append(set(layout))
    pairs = 0
    for now in all_placements(plain):
        present = present_of(plain, now)
        for names, fitting in placements.items():
            solution = solve(wanted(device, list(names)), present, device.profiles)
            assert solution is not None, (now, names)
            assert Counter(item.profile.name for item in solution) == Counter(names)
            best = max(len(layout & set(now)) for layout in fitting)
            assert sum(item.kept is not None for item in solution) == best, (now, names)
            pairs += 1
    assert pairs > 1000
