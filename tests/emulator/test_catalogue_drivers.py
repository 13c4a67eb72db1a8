# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The catalogue on drivers that answer otherwise than a current one: old structures, fewer profiles, wrong counts, nothing while MIG mode is off."""
from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.modules import run_module


def profiles(machine: Any, gpu: int = 0) -> list[dict[str, Any]]:
    return list(run_module(machine, "nvml_info")["nvml"]["gpus"][gpu]["mig"]["profiles"])


def layout(machine: Any, instances: Any, **options: Any) -> dict[str, Any]:
    return run_module(machine, "mig_layout", layouts=[{"match": "all", "instances": instances}], **options)


@pytest.mark.parametrize(("model", "bad_version"), [
    ("a100-80gb-pcie", "argument"), ("h100-80gb-hbm3", "mismatch"), ("h200-nvl", "argument"), ("rtx-pro-6000-server", "mismatch")])
def test_names_are_computed_where_the_driver_has_none_and_all_else_is_the_same(nvml_machine: Any, model: str, bad_version: str) -> None:
    machine = nvml_machine(f"{model}:2")
    machine.ctl("set", "1", "names=off")
    machine.ctl("set", "1", f"bad-version={bad_version}")
    with_names, without = (gpu["mig"]["profiles"] for gpu in run_module(machine, "nvml_info")["nvml"]["gpus"])
    assert len(with_names) > 4 and without == with_names


def test_a_driver_that_knows_fewer_profiles_offers_those(nvml_machine: Any) -> None:
    machine = nvml_machine("rtx-pro-6000-server")
    machine.ctl("set", "0", "known-enums=11")
    assert [row["name"] for row in profiles(machine)] == ["1g.24gb", "2g.48gb", "4g.96gb", "1g.24gb+me", "1g.24gb+gfx"]
    refused = layout(machine, {"2g.48gb-me": 1})
    assert refused["reason"] == "UnknownProfile" and "1g.24gb+gfx" in refused["msg"] and "2g.48gb+gfx" not in refused["msg"]
    made = layout(machine, {"1g.24gb+gfx": 2, "1g.24gb+me": 1})
    assert made["changed"] and [name for name, _start in machine.layout()].count("1g.24gb+gfx") == 2


def test_a_wrong_instance_count_neither_hides_instances_nor_limits_a_layout(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("set", "0", "instance-counts=wrong")
    assert layout(machine, {"1g.10gb": 7})["changed"]
    instances = run_module(machine, "nvml_info")["nvml"]["gpus"][0]["mig"]["instances"]
    assert [(item["profile"], item["start"]) for item in instances] == [("1g.10gb", start) for start in range(7)]
    assert not layout(machine, {"1g.10gb": 7})["changed"]


@pytest.mark.parametrize("model", ["a100-80gb-pcie", "h100-80gb-hbm3"])
def test_a_driver_that_lists_profiles_only_in_mig_mode_is_reached_by_the_remedy(nvml_machine: Any, model: str) -> None:
    machine = nvml_machine(model)
    machine.ctl("set", "0", "profiles-need-mode=on")
    assert profiles(machine) == []
    machine.mark()
    refused = layout(machine, {"3g.40gb": 1})
    assert refused["reason"] == "ProfilesNotListed" and "instances: {}" in refused["remedy"] and machine.calls() == []
    assert layout(machine, {})["changed"] and profiles(machine) != []
    assert layout(machine, {"3g.40gb": 1})["changed"] and [name for name, _start in machine.layout()] == ["3g.40gb"]
    assert not layout(machine, {"3g.40gb": 1})["changed"]
