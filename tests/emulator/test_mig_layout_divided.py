# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Layouts with compute instances smaller than their GPU instance, made on emulated GPUs, and the choice between compute instance profiles of one size."""
from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.modules import run_module


def everything(instances: Any) -> list[dict[str, Any]]:
    return [{"match": "all", "instances": instances}]


def computes(result: dict[str, Any]) -> list[tuple[str, list[tuple[int, int, int]]]]:
    """Return per GPU instance its profile and (profile id, slices, start) of its compute instances."""
    return [
        (item["profile"], sorted((one["profile_id"], one["slices"], one["start"]) for one in item["compute_instances"]))
        for item in result["nvml"]["gpus"][0]["mig"]["instances"]
    ]


@pytest.mark.parametrize(("instances", "expected"), [
    ({"1c.3g.40gb": 3}, [("3g.40gb", [(0, 1, 0), (0, 1, 1), (0, 1, 2)])]),
    ({"1c.3g.40gb": 1, "2c.3g.40gb": 1}, [("3g.40gb", [(0, 1, 2), (1, 2, 0)])]),
    ({"3c.7g.80gb": 2}, [("7g.80gb", [(2, 3, 0), (2, 3, 4)])]),
    ({"4c.7g.80gb": 1, "3c.7g.80gb": 1}, [("7g.80gb", [(2, 3, 4), (3, 4, 0)])]),
    ("all-1c.2g", [("2g.20gb", [(0, 1, 0), (0, 1, 1)])] * 3),
])
def test_divided_layouts_are_made_once_and_then_left_alone(nvml_machine: Any, instances: Any, expected: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    made = run_module(machine, "mig_layout", layouts=everything(instances))
    assert made["changed"] and computes(made) == expected and made["device_names"] == []
    assert "DividedInstance" in str(made["warnings"])
    machine.mark()
    again = run_module(machine, "mig_layout", layouts=everything(instances))
    assert not again["changed"] and machine.calls() == []
    fixed = run_module(machine, "mig_layout", layouts=made["fixed_layouts"])
    assert not fixed["changed"] and machine.calls() == []


def test_only_the_parts_that_must_go_are_destroyed(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=everything({"1c.3g.40gb": 3}))
    machine.mark()
    changed = run_module(machine, "mig_layout", layouts=everything({"1c.3g.40gb": 1, "2c.3g.40gb": 1}))
    assert computes(changed) == [("3g.40gb", [(0, 1, 2), (1, 2, 0)])]
    assert sorted(call["symbol"] for call in machine.calls()) == ["nvmlComputeInstanceDestroy"] * 2 + ["nvmlGpuInstanceCreateComputeInstanceWithPlacement"]


def test_a_1g_with_double_memory_gets_the_compute_instance_with_most_multiprocessors(nvml_machine: Any) -> None:
    # nvidia-smi mig -cgi 15 -C makes profile 7 (26 SMs) on an H100, not 0 (16 SMs)
    made = run_module(nvml_machine("h100-80gb-hbm3"), "mig_layout", layouts=everything({"1g.20gb": 1, "1g.10gb": 1, "2g.20gb": 1}))
    assert sorted(computes(made)) == [("1g.10gb", [(0, 1, 0)]), ("1g.20gb", [(7, 1, 0)]), ("2g.20gb", [(1, 2, 0)])]
