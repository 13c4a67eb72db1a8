# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Each case was refused for just its reason, and nothing was changed."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from driver_host import SCRATCH, DriverHost, Scratch

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).resolve().parents[2] / "vars" / "cases.yml").read_text(encoding="utf-8"))["cases"]


def numbered() -> list[Any]:
    """The cases with the host of each and their numbers on it."""
    counts: dict[str, int] = {}
    found = []
    for case in CASES:
        host = case.get("host", "fresh")
        found.append(pytest.param(host, counts.get(host, 0), case["reason"], id=f"{host}-{counts.get(host, 0)}-{case['reason']}"))
        counts[host] = counts.get(host, 0) + 1
    return found


@pytest.mark.parametrize(("name", "number", "reason"), numbered())
def test_the_case_was_refused_for_its_reason(name: str, number: int, reason: str) -> None:
    kept = json.loads((SCRATCH / f"refused-{name}-{number}.json").read_text())
    assert kept["reason"] == reason
    assert kept["said"].rstrip().endswith(f"[{reason}]"), kept["said"]


def test_the_host_is_as_before(driver: DriverHost, kept: Scratch) -> None:
    before, now = kept.get("before"), driver.everything()
    assert {kind: {row for row in set(before[kind]) | set(now[kind]) if before[kind].get(row) != now[kind].get(row)} for kind in now} == {
        kind: set() for kind in now
    }
