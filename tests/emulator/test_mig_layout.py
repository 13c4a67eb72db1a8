# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""mig_layout on emulated GPUs: what it makes, what it keeps, and that a second run does nothing."""
from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.modules import run_engine, run_module

LAYOUTS = [
    ("h100-80gb-hbm3", {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}, [("1g.10gb", 0), ("1g.10gb", 1), ("2g.20gb", 2), ("3g.40gb", 4)]),
    ("h100-80gb-hbm3", "all-1g", [("1g.10gb", start) for start in range(7)]),
    ("a100-80gb-pcie", {"1g.20gb": 2, "3g.40gb": 1}, [("1g.20gb", 0), ("1g.20gb", 2), ("3g.40gb", 4)]),
    ("h200-nvl", "balanced", [("1g.18gb", 0), ("1g.18gb", 1), ("2g.35gb", 2), ("3g.71gb", 4)]),
    ("rtx-pro-6000-server", {"2g.48gb": 1, "1g.24gb+me": 1, "1g.24gb": 1}, [("1g.24gb+me", 0), ("1g.24gb", 3), ("2g.48gb", 6)]),
    ("rtx-pro-6000-server", "whole", [("4g.96gb", 0)]),
]


def everything(instances: Any) -> list[dict[str, Any]]:
    return [{"match": "all", "instances": instances}]


def without_uuids(layout: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**gpu, "instances": [{**item, "uuids": None} for item in gpu["instances"]]} for gpu in layout]


@pytest.mark.parametrize(("model", "instances", "expected"), LAYOUTS)
def test_check_run_check_run(nvml_machine: Any, model: str, instances: Any, expected: list[tuple[str, int]]) -> None:
    machine = nvml_machine(model)
    before = machine.show()

    machine.mark()
    first_check = run_module(machine, "mig_layout", check=True, layouts=everything(instances))
    assert first_check["changed"] and machine.calls() == [] and machine.show() == before

    first_run = run_module(machine, "mig_layout", layouts=everything(instances))
    assert first_run["changed"]
    assert sorted(machine.layout(), key=lambda item: item[1]) == expected
    assert first_run["diff"] == first_check["diff"]
    assert first_run["device_names"] == first_check["device_names"] and len(first_run["device_names"]) == len(expected)
    assert without_uuids(first_run["after"]) == without_uuids(first_check["after"])
    assert all(len(item["uuids"]) == 1 for item in first_run["after"][0]["instances"])

    machine.mark()
    for check in (True, False):
        again = run_module(machine, "mig_layout", check=check, layouts=everything(instances))
        assert not again["changed"] and again["plan"] == [] and again["executed"] == []
        assert again["after"] == first_run["after"]
        assert again["diff"]["before"] == again["diff"]["after"]
    assert machine.calls() == []


def test_all_77_layouts_of_the_seven_slice_parts_succeed_on_an_empty_gpu(nvml_machine: Any) -> None:
    from tests.unit.mig.test_solver import FEASIBLE_SEVEN

    made = run_engine(nvml_machine("h100-80gb-hbm3"), f"""
        made = []
        for names in {FEASIBLE_SEVEN!r}:
            with NvmlSession() as session:
                apply({{}}, session)
                after = apply({{name: names.count(name) for name in names}}, session)["after"][0]
            made.append(sorted(item["profile"] for item in after["instances"]))
        result = made
    """)
    assert made == [list(names) for names in FEASIBLE_SEVEN]


def test_instances_that_fit_keep_their_uuid_and_only_the_others_go(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    first = run_module(machine, "mig_layout", layouts=everything({"3g.40gb": 2}))
    machine.mark()
    second = run_module(machine, "mig_layout", layouts=everything({"3g.40gb": 1, "2g.20gb": 2}))
    assert len(second["kept"]) == len(second["destroyed"]) == 1 and len(second["created"]) == 2
    kept = second["kept"][0]["start"]

    def uuid_at(result: dict[str, Any], start: int) -> list[str]:
        return next(item["uuids"] for item in result["after"][0]["instances"] if item["start"] == start)

    assert uuid_at(second, kept) == uuid_at(first, kept)
    symbols = [call["symbol"] for call in machine.calls()]
    assert symbols.count("nvmlGpuInstanceDestroy") == 1 and symbols.count("nvmlDeviceCreateGpuInstanceWithPlacement") == 2


def test_mode_off_destroys_first_and_unmanaged_and_kept_gpus_are_left_alone(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:3")
    run_module(machine, "mig_layout", layouts=everything("all-1g"))
    rules = [{"match": {"index": 0}, "mode": "disabled"}, {"match": {"index": 1}, "mode": "unmanaged"}]
    off = run_module(machine, "mig_layout", layouts=rules)
    assert off["changed"] and [gpu["mode_current"] for gpu in off["after"]] == [False, True, True]
    assert [name for name in off["device_names"] if not name.startswith(("gpu-1-mig", "gpu-2-mig"))] == ["gpu-0"]
    assert len(machine.layout(1)) == len(machine.layout(2)) == 7
    disabled = run_module(machine, "mig_layout", layouts=rules, unlisted="disable")
    assert disabled["changed"] and [gpu["mode_current"] for gpu in disabled["after"]] == [False, True, False]


def test_a_gpu_instance_without_compute_instance_is_seen_and_completed(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=everything({"3g.40gb": 1}))
    orphan_id = machine.python("""
        instances = (nvml.c_nvmlGpuInstance_t * 2)()
        nvml.nvmlDeviceGetGpuInstances(device(), 9, instances, ctypes.byref(ctypes.c_uint(2)))
        nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(instances[0], 0))
        result = nvml.nvmlGpuInstanceGetInfo(instances[0]).id
    """)
    machine.mark()
    fixed = run_module(machine, "mig_layout", layouts=everything({"3g.40gb": 1}))
    assert fixed["changed"] and fixed["destroyed"] == []
    assert [call["symbol"] for call in machine.calls()] == ["nvmlGpuInstanceCreateComputeInstanceWithPlacement"]
    assert fixed["nvml"]["gpus"][0]["mig"]["instances"][0]["gpu_instance_id"] == orphan_id


def test_a_divided_instance_is_made_whole_in_place(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=everything({"3g.40gb": 1}))
    machine.python("""
        instances = (nvml.c_nvmlGpuInstance_t * 2)()
        nvml.nvmlDeviceGetGpuInstances(device(), 9, instances, ctypes.byref(ctypes.c_uint(2)))
        nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(instances[0], 0))
        nvml.nvmlGpuInstanceCreateComputeInstance(instances[0], 0)
        nvml.nvmlGpuInstanceCreateComputeInstance(instances[0], 0)
    """)
    machine.mark()
    fixed = run_module(machine, "mig_layout", layouts=everything({"3g.40gb": 1}))
    symbols = [call["symbol"] for call in machine.calls()]
    assert symbols == ["nvmlComputeInstanceDestroy"] * 2 + ["nvmlGpuInstanceCreateComputeInstanceWithPlacement"]
    assert [ci["slices"] for ci in fixed["nvml"]["gpus"][0]["mig"]["instances"][0]["compute_instances"]] == [3]


def test_what_changed_behind_our_back_is_put_right(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    wanted = everything({"3g.40gb": 1, "1g.10gb": 4})
    run_module(machine, "mig_layout", layouts=wanted)
    machine.ctl("repartition", "0", "3g.40gb@0,3g.40gb@4")
    fixed = run_module(machine, "mig_layout", layouts=wanted)
    assert fixed["changed"] and [(row["profile"], row["start"]) for row in fixed["kept"]] == [("3g.40gb", 4)]
    assert not run_module(machine, "mig_layout", check=True, layouts=wanted)["changed"]


def test_a_gpu_that_does_not_obey_is_found_by_the_read_back(nvml_machine: Any) -> None:
    reason = run_engine(nvml_machine("h100-80gb-hbm3"), """
        converge.converge = lambda *arguments: None
        try:
            with NvmlSession() as session:
                apply("whole", session)
        except FleetError as error:
            result = [error.finding.code, error.finding.cause]
    """)
    assert reason[0] == "ReadBackMismatch" and "create GPU instance 7g.80gb" in reason[1]
