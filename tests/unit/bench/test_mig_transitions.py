# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The bench of layout changes in its quick form, and its brute force on cases that can be counted by hand."""
from __future__ import annotations

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig import gpu_plan

from tests.bench import mig_transitions
from tests.bench.brute_force import Loss, layouts, optimum, placements, rows_of


def test_brute_force_counts_what_the_user_guide_counts() -> None:
    plain = [row for row in rows_of("h100-80gb-hbm3") if not row.name.endswith("+me")]
    found = layouts(plain)
    assert len(found) == 78, "77 and the empty one"
    assert len(found["3g.40gb", "3g.40gb"]) == 1
    assert len(found[("1g.10gb",) * 6]) == 7
    assert found[tuple(sorted(["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]))], "which drivers miss that choose places one by one"
    assert all(("3g.40gb", 4) in placement for placement in found[tuple(sorted(["3g.40gb", *["1g.10gb"] * 4]))])


def test_brute_force_knows_the_rules_for_media_engines() -> None:
    found = layouts(rows_of("rtx-pro-6000-server"))
    assert ("1g.24gb+me.all", "1g.24gb-me", "1g.24gb-me", "1g.24gb-me") in found
    assert not any({"1g.24gb+me.all", "1g.24gb"} <= set(names) for names in found)
    assert not any(sum("+me" in name for name in names) > 1 for names in found)
    assert len(placements(rows_of("rtx-pro-6000-server"))) == 717


def test_the_optimum_keeps_what_can_stay() -> None:
    wanted = layouts(rows_of("a30"))["1g.6gb", "1g.6gb", "2g.12gb"]
    assert optimum(frozenset({("2g.12gb", 2), ("1g.6gb", 0)}), wanted) == Loss(0, 2)
    assert optimum(frozenset({("1g.6gb", 0), ("1g.6gb", 2)}), wanted) == Loss(1, 6)


def test_the_quick_form_finds_every_plan_optimal(capsys: pytest.CaptureFixture[str]) -> None:
    assert mig_transitions.main(["--sample", "100"]) == 0
    said = capsys.readouterr().out
    assert said.count("from every placement of the first layout, mean") == said.count("a node: 1 GPU ") == 3
    assert "every plan leads to its layout and equals the optimum" in said


def test_a_plan_that_destroys_too_much_is_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = gpu_plan.solve
    monkeypatch.setattr(gpu_plan, "solve", lambda wanted, _present, profiles: real(wanted, [], profiles))
    assert mig_transitions.main(["--model", "a30", "--sample", "50"]) == 1
    assert "the optimum is" in capsys.readouterr().out
