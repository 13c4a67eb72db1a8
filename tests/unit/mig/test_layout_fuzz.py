# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Random layout files through parser and planner: whatever comes in, out comes a plan or one sentence with a remedy."""
from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.parted import layout_from_options
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import make_plan
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.mig.layout_fuzzer import LayoutFuzzer, bomb, nested
from tests.unit.mig.models import gpu

FILES = 10_000
LONGEST_SENTENCE = 3_000
FLEET = [
    gpu("h100", 0, instances=[("3g.40gb", 4), ("1g.10gb", 0)], slices={4: [2, 1]}), gpu("h100", 1, enabled=False), gpu("rtx", 2, instances=[("2g.48gb", 0)]),
    gpu("a30", 3, instances=[("1g.6gb", 2)], processes=[{"pid": 4711, "kind": "compute", "gpu_instance_id": 7, "compute_instance_id": 0}]), gpu("l40s", 4),
]  # fmt: skip


def outcome(options: dict[str, Any]) -> str:
    """Return "plan" or the reason code; fails when the answer is not fit for a person or a program."""
    try:
        plan = make_plan(FLEET, layout_from_options(options), options["unlisted"])
    except FleetError as error:
        said = error.as_failure()
        assert said["remedy"] and said["cause"] and said["object"], said
        assert "\n" not in said["msg"] and len(said["msg"]) < LONGEST_SENTENCE, said["msg"]
        json.dumps(said)
        return error.finding.code
    for item in plan.findings:
        assert "\n" not in item.sentence() and len(item.sentence()) < LONGEST_SENTENCE
    json.dumps([plan.summary(), plan.diff(), plan.layout_after()])
    return "plan"


def test_ten_thousand_layout_files() -> None:
    seen: Counter[str] = Counter()
    slowest = 0.0
    for options in LayoutFuzzer(seed=4).options(FILES):
        begin = time.process_time()
        seen[outcome(options)] += 1
        slowest = max(slowest, time.process_time() - begin)
    print(f"{FILES} files, slowest {slowest:.3f} s: {dict(seen.most_common())}")
    assert seen["plan"] > FILES / 10
    assert {"InvalidLayout", "LayoutFileUnreadable", "UnknownConfigName", "UnknownProfile", "ImpossibleLayout", "ImpossibleDivision", "LayoutMatchesNothing",
            "NotMigCapable"} <= set(seen)  # fmt: skip
    assert slowest < 1


HOSTILE: dict[str, Any] = {
    "deep": nested(100_000),
    "bomb": bomb(12),
    "bomb in a mapping": {"1g.10gb": bomb(12)},
    "wide": {f"{number}g.10gb": 1 for number in range(20_000)},
    "long": "3g.40gb" * 100_000,
    "long digits": "9" * 5000,
    "long name": "9" * 5000 + "g.10gb",
    "huge number": 10**5000,
    "not a number": float("nan"),
    "superscript": "²",
    "two lines": "3g.40gb\n7g.80gb",
    "surrogate": "\ud800",
    "bytes": b"\xff",
}
PLACES = [
    lambda value: {"layouts": value},
    lambda value: {"layouts": [value]},
    lambda value: {"layouts": [{"match": value, "mode": "disabled"}]},
    lambda value: {"layouts": [{"match": {"product": value}, "mode": "disabled"}]},
    lambda value: {"layouts": [{"match": {"index": value}, "mode": "disabled"}]},
    lambda value: {"layouts": [{"match": "all", "mode": value, "instances": {}}]},
    lambda value: {"layouts": [{"match": "all", "instances": value}]},
    lambda value: {"layouts": [{"match": "all", "instances": [value]}]},
    lambda value: {"layouts": [{"match": "all", "instances": [{"profile": value}]}]},
    lambda value: {"layouts": [{"match": "all", "instances": [{"profile": "1g.10gb", "count": value}]}]},
    lambda value: {"layouts": [{"match": "all", "instances": [{"profile": "3g.40gb", "compute_instances": value}]}]},
    lambda value: {"mig_parted_config": value},
    lambda value: {"mig_parted_config": {"version": value, "mig-configs": {}}},
    lambda value: {"mig_parted_config": {"version": "v1", "mig-configs": {"mine": value}}},
    lambda value: {"mig_parted_config": {"version": "v1", "mig-configs": {"mine": [value]}}},
    lambda value: {"mig_parted_config": {"version": "v1", "mig-configs": {"mine": [{"devices": value, "mig-enabled": True, "mig-devices": {}}]}}},
    lambda value: {"mig_parted_config": {"version": "v1", "mig-configs": {"mine": [{"devices": "all", "mig-enabled": value}]}}},
    lambda value: {"mig_parted_config": {"version": "v1", "mig-configs": {"mine": [{"devices": "all", "mig-enabled": True, "mig-devices": value}]}}},
]


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_value_anywhere(value: Any) -> None:
    options = {"layouts": [], "mig_parted_config": None, "mig_parted_selected": None, "mig_parted_source": "fuzzed.yaml", "unlisted": "keep"}
    for place in PLACES:
        outcome({**options, **place(value)})
