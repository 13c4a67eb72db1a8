# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan: order of steps, who blocks it, the diff, the device names."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.layout import parse_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import Plan, layout_of, make_plan, present_device_names

from tests.unit.mig.models import gpu


def plan(device: Any, instances: Any = None, mode: str = "enabled") -> Plan:
    rule = {"match": {"index": device.index}, "mode": mode}
    return make_plan([device], parse_layouts([rule if instances is None else {**rule, "instances": instances}]), "keep")


def texts(made: Plan) -> list[tuple[str, str | None, int | None]]:
    return [(step.action, step.profile or None, step.start) for step in made.steps]


def test_nothing_to_do_is_no_step_and_an_empty_diff() -> None:
    made = plan(gpu("h100", instances=[("3g.40gb", 4), ("1g.10gb", 0)]), {"3g.40gb": 1, "1g.10gb": 1})
    assert not made.changed and made.steps == []
    assert made.diff()["before"] == made.diff()["after"]
    assert made.device_names == ["gpu-0-mig-1g10gb-19-0", "gpu-0-mig-3g40gb-9-4"]


def test_destroy_comes_before_create_and_compute_instances_go_first() -> None:
    made = plan(gpu("h100", instances=[("3g.40gb", 0), ("3g.40gb", 4)]), {"3g.40gb": 1, "2g.20gb": 1})
    actions = [step.action for step in made.steps]
    assert actions == ["destroy_compute_instance", "destroy_gpu_instance", "create_gpu_instance", "create_compute_instance"]
    assert len(made.summary()["kept"]) == len(made.summary()["destroyed"]) == len(made.summary()["created"]) == 1


def test_the_mode_is_enabled_before_instances_come_and_disabled_after_they_went() -> None:
    on = plan(gpu("h100", enabled=False), "whole")
    assert texts(on) == [("set_mode", None, None), ("create_gpu_instance", "7g.80gb", 0), ("create_compute_instance", "7g.80gb", 0)]
    off = plan(gpu("h100", instances=[("7g.80gb", 0)]), mode="disabled")
    assert [step.action for step in off.steps] == ["destroy_compute_instance", "destroy_gpu_instance", "set_mode"]
    assert off.device_names == ["gpu-0"]
    assert on.device_names == ["gpu-0-mig-7g80gb-0-0"]


@pytest.mark.parametrize(("current", "pending", "mode", "steps"), [
    (False, True, "enabled", 1), (False, True, "disabled", 1), (True, False, "enabled", 1), (True, False, "disabled", 1),
    (True, True, "enabled", 0), (False, False, "disabled", 0),
])
def test_a_pending_mode_is_not_a_settled_one(current: bool, pending: bool, mode: str, steps: int) -> None:
    made = plan(gpu("h100", enabled=current, pending=pending), {} if mode == "enabled" else None, mode)
    assert len(made.steps) == steps


def test_an_orphan_gets_its_compute_instance_and_a_divided_one_is_made_whole() -> None:
    device = gpu("h100", instances=[("3g.40gb", 0), ("3g.40gb", 4)], slices={0: [], 4: [1, 2]})
    made = plan(device, {"3g.40gb": 2})
    assert [(step.action, step.start, step.compute_instance_id) for step in made.steps] == [
        ("destroy_compute_instance", 4, 0), ("destroy_compute_instance", 4, 1), ("create_compute_instance", 0, None), ("create_compute_instance", 4, None),
    ]
    assert made.device_names == ["gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"]
    assert [row["uuids"] for row in made.layout_after()[0]["instances"]] == [[], []]


def test_only_whole_instances_have_a_device_name() -> None:
    device = gpu("h100", instances=[("3g.40gb", 0), ("3g.40gb", 4)], slices={0: [], 4: [1, 2]})
    assert make_plan([device], parse_layouts([{"match": "all", "mode": "unmanaged"}]), "keep").device_names == []


def test_the_devices_of_gpus_as_they_are_are_those_that_a_plugin_started_now_would_publish() -> None:
    gpus = [gpu("h100", instances=[("1g.10gb", 0), ("2g.20gb", 2)], slices={2: [1]}), gpu("h100", index=1, enabled=False), gpu("l40s", index=2),
            replace(gpu("l40s", index=3), product="NVIDIA DGX Display")]
    assert present_device_names(gpus) == ["gpu-0-mig-1g10gb-19-0", "gpu-1", "gpu-2"]


def holder(instance: int | None) -> dict[str, Any]:
    return {"pid": 4711, "gpu_instance_id": instance, "compute_instance_id": None, "used_memory_mib": 1, "kind": "compute"}


@pytest.mark.parametrize(("enabled", "instances", "process", "wanted", "blocked"), [
    (True, [("3g.40gb", 0), ("3g.40gb", 4)], 7, {"3g.40gb": 1}, False),  # the free one goes, the busy one stays
    (True, [("3g.40gb", 0), ("3g.40gb", 4)], 7, {"4g.40gb": 1}, True),
    (True, [("3g.40gb", 0)], 7, {"3g.40gb": 1, "1g.10gb": 1}, False),
    (True, [], None, {"1g.10gb": 1}, True),  # the first instance of a GPU needs it to be idle
    (True, [("3g.40gb", 0)], None, {"3g.40gb": 1, "1g.10gb": 1}, False),
    (False, [], None, {}, True),  # so does a change of its mode
])
def test_blockers(enabled: bool, instances: list[tuple[str, int]], process: int | None, wanted: Any, blocked: bool) -> None:
    made = plan(gpu("h100", enabled=enabled, instances=instances, processes=[holder(process)]), wanted)
    assert bool(made.gpus[0].blockers) is blocked


def test_every_line_of_the_diff_names_its_gpu() -> None:
    diff = plan(gpu("h100", instances=[("7g.80gb", 0)]), {"3g.40gb": 1, "1g.10gb": 1}).diff()
    for line in (diff["before"] + diff["after"]).splitlines():
        assert line.startswith("GPU-h100-0 NVIDIA H100 80GB HBM3: ")
    assert "7g.80gb at start 0 (profile id 0) MIG-0-0-0" in diff["before"]
    assert "3g.40gb at start 4 (profile id 9) new" in diff["after"] and "7g.80gb" not in diff["after"]


def test_the_predicted_layout_has_the_form_of_the_read_one() -> None:
    device = gpu("h100", instances=[("3g.40gb", 4)])
    made = plan(device, {"3g.40gb": 1, "1g.10gb": 1})
    before, after = layout_of([device])[0], made.layout_after()[0]
    assert before.keys() == after.keys() and before["instances"][0] in after["instances"]
    assert [row["profile"] for row in after["instances"]] == ["1g.10gb", "3g.40gb"]


def test_device_names_use_the_drivers_own_formula_not_nvmls_name() -> None:
    device = gpu("h100", instances=[("3g.40gb", 4)])
    renamed = type(device)(**{**vars(device), "profiles": tuple(
        type(item)(**{**vars(item), "name": item.name.replace("3g.40gb", "3g.39gb")}) for item in device.profiles)})
    assert plan(renamed, {"3g.39gb": 2}).device_names == ["gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"]


def test_the_outcome_as_fixed_layouts_leads_to_the_same_again_from_nothing() -> None:
    wanted = {"3g.40gb": 1, "1g.10gb": 2, "1c.2g.20gb": 1}
    made = plan(gpu("h100", instances=[("1g.10gb", 1), ("3g.40gb", 0)]), wanted)
    rules = parse_layouts(made.fixed_layouts())
    again = make_plan([gpu("h100", enabled=False)], rules, "keep")

    def places(one: Plan) -> list[Any]:
        return [(row["profile_id"], row["start"], row["compute_slices"]) for row in one.layout_after()[0]["instances"]]

    assert places(again) == places(made) and len(places(made)) == 4
    assert again.device_names == made.device_names


def test_fixed_layouts_speak_only_of_gpus_that_the_layout_decides_about() -> None:
    gpus = [gpu("h100", 0), gpu("h100", 1, enabled=False), gpu("l40s", 2), gpu("h100", 3, instances=[("7g.80gb", 0)])]
    layout = parse_layouts([{"match": {"index": 0}, "instances": {}}, {"match": {"index": 1}, "mode": "disabled"}])
    assert make_plan(gpus, layout, "keep").fixed_layouts() == [
        {"match": {"uuid": "GPU-h100-0"}, "mode": "enabled", "instances": []}, {"match": {"uuid": "GPU-h100-1"}, "mode": "disabled"},
    ]
