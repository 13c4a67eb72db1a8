# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A GPU that does not answer: nvml_info shows the others, mig_layout changes nothing, both name it."""
from __future__ import annotations

import json
from typing import Any

import pytest

from tests.emulator.modules import run_module

EVERY_TIME = ("--times", "0")


@pytest.mark.parametrize(("symbol", "code", "reason"), [
    ("*", "GPU_IS_LOST", "GpuLost"), ("nvmlDeviceGetMigMode", "GPU_IS_LOST", "GpuLost"), ("nvmlDeviceGetName", "RESET_REQUIRED", "GpuResetNeeded"),
    ("nvmlDeviceGetGpuInstancePossiblePlacements", "UNKNOWN", "GpuUnreadable"), ("*", "NOT_READY", "GpuUnreadable"),
])
def test_one_gpu_that_does_not_answer_hides_no_other(nvml_machine: Any, symbol: str, code: str, reason: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3:3")
    whole = run_module(machine, "nvml_info")["nvml"]
    assert whole["unreadable_gpus"] == []
    machine.ctl("fault", "add", "--symbol", symbol, "--gpu", "1", "--code", code, *EVERY_TIME)
    result = run_module(machine, "nvml_info")
    assert [gpu["index"] for gpu in result["nvml"]["gpus"]] == [0, 2]
    (lost,) = result["nvml"]["unreadable_gpus"]
    assert (lost["index"], lost["error"], lost["reason"]) == (1, code, reason)
    named = symbol != "*"
    assert (lost["uuid"], lost["pci_bus_id"]) == ((whole["gpus"][1]["uuid"], whole["gpus"][1]["pci_bus_id"]) if named else (None, None))
    assert lost["message"].startswith("GPU 1") and lost["message"].endswith(f"[{reason}]")
    assert len(result["warnings"]) == 1 and lost["message"] in json.dumps(result["warnings"])


def test_a_gpu_without_a_handle_is_listed_by_its_index(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    # The first GPU's handle is asked for once; the second one's fails, also when its UUID is looked for.
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetHandleByIndex", "--nth", "2", "--code", "GPU_IS_LOST", *EVERY_TIME)
    nvml = run_module(machine, "nvml_info")["nvml"]
    assert [gpu["index"] for gpu in nvml["gpus"]] == [0]
    assert nvml["unreadable_gpus"][0]["message"].startswith("GPU 1: the GPU does not answer any more (nvmlDeviceGetHandleByIndex: GPU_IS_LOST).")


@pytest.mark.parametrize(("code", "reason"), [("NO_PERMISSION", "NvmlNoPermission"), ("LIB_RM_VERSION_MISMATCH", "NvmlCallFailed")])
def test_what_concerns_the_whole_node_fails_the_module(nvml_machine: Any, code: str, reason: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetMigMode", "--gpu", "1", "--code", code, *EVERY_TIME)
    failed = run_module(machine, "nvml_info")
    assert failed["failed"] and failed["reason"] == reason


@pytest.mark.parametrize("check", [True, False])
def test_a_layout_is_not_made_as_if_the_gpu_were_not_there(nvml_machine: Any, check: bool) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetUUID", "--gpu", "1", "--code", "GPU_IS_LOST", *EVERY_TIME)
    machine.mark()
    refused = run_module(machine, "mig_layout", check=check, layouts=[{"match": "all", "instances": "balanced"}])
    assert refused["failed"] and refused["reason"] == "GpuLost" and refused["object"].startswith("GPU 1 (") and not refused["changed"]
    assert machine.calls() == []
