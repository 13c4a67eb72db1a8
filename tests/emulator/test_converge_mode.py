# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Changes of the MIG mode that need more than one call: resets, NVLink partners, activation statuses; sick GPUs; and who is named when a GPU is in use."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.modules import run_module
from tests.emulator.test_converge_journal import journal

SEVEN = [{"match": "all", "instances": "all-1g"}]
HALVES = [{"match": "all", "instances": {"3g.40gb": 2}}]


def resets(machine: Any) -> int:
    return sum(call["symbol"] == "nvmlEmulatorResetDevice" for call in machine.calls())


def path_with_nvidia_smi(machine: Any) -> dict[str, str]:
    return {"PATH": f"{machine.folder}:{os.environ['PATH']}"}


def turn(machine: Any, number: int, *settings: str) -> None:
    """Set knobs of a GPU."""
    for setting in settings:
        machine.ctl("set", str(number), setting)


def linked_group(nvml_machine: Any, size: int) -> Any:
    """A machine whose A100s are linked, need a reset that NVML does not do by itself, and are reset together only."""
    machine = nvml_machine(f"a100-80gb-sxm4:{size}")
    for number in range(size):
        turn(machine, number, "nvlink=1", "nvlink-reset=group", "activation=RESET_REQUIRED")
    machine.mark()
    return machine


def test_nvlink_partners_are_reset_together_once_all_their_modes_are_set(nvml_machine: Any) -> None:
    machine = linked_group(nvml_machine, 3)
    made = run_module(machine, "mig_layout", layouts=SEVEN, allow_reset=True, env=path_with_nvidia_smi(machine))
    assert not made.get("failed"), made["msg"]
    assert [len(machine.layout(number)) for number in range(3)] == [7, 7, 7]
    assert resets(machine) == 3, "each GPU once: one reset for the group"


def test_an_idle_partner_goes_along_without_being_changed(nvml_machine: Any) -> None:
    machine = linked_group(nvml_machine, 2)
    rules = [{"match": {"index": 0}, "instances": "all-1g"}]
    made = run_module(machine, "mig_layout", layouts=rules, allow_reset=True, env=path_with_nvidia_smi(machine))
    assert not made.get("failed"), made["msg"]
    assert len(machine.layout(0)) == 7 and not made["after"][1]["mode_current"]


def test_a_partner_with_instances_is_not_reset_but_named(nvml_machine: Any) -> None:
    machine = linked_group(nvml_machine, 2)
    options = {"allow_reset": True, "env": path_with_nvidia_smi(machine)}
    assert not run_module(machine, "mig_layout", layouts=[{"match": {"index": 1}, "instances": "all-1g"}], **options).get("failed")
    before = machine.show()["gpus"][1]
    refused = run_module(machine, "mig_layout", layouts=SEVEN, **options)
    assert refused["reason"] == "ResetRequired" and refused["reset_required"]
    assert f"NVLink partners cannot be: GPU 1 (NVIDIA A100-SXM4-80GB, {before['uuid']})" in refused["msg"]
    assert machine.show()["gpus"][1] == before
    assert journal(machine)["steps"][0]["state"] == "waiting"
    assert "GPU 0 has MIG mode disabled (pending: enabled) and no instances." in refused["msg"]


@pytest.mark.parametrize(("status", "reason"), [("RESET_REQUIRED", "ResetRequired"), ("NOT_SUPPORTED", "RebootRequired"), ("IN_USE", "ResetRequired")])
def test_a_mode_that_is_only_pending_is_no_success(nvml_machine: Any, status: str, reason: str) -> None:
    machine = nvml_machine("a100-80gb-pcie:2")
    machine.ctl("set", "0", f"activation={status}")
    waits = run_module(machine, "mig_layout", layouts=SEVEN)
    assert waits["reason"] == reason and status in waits["msg"] and waits["changed"]
    assert len(machine.layout(1)) == 7, "the other GPU is not held up"
    assert "GPU 0 has MIG mode disabled (pending: enabled) and no instances; GPU 1 is as wanted." in waits["msg"]
    assert journal(machine)["status"] == "failed"
    machine.ctl("set", "0", "activation=none")
    resumed = run_module(machine, "mig_layout", layouts=SEVEN)
    assert not resumed.get("failed") and len(resumed["resumed"]["doing"]) == 1
    assert len(machine.layout(0)) == 7


def test_a_gpu_that_cannot_be_reset_does_not_hold_the_others_up(nvml_machine: Any) -> None:
    machine = nvml_machine("a100-80gb-pcie:2")
    turn(machine, 0, "activation=RESET_REQUIRED", "reset-refused=on")
    refused = run_module(machine, "mig_layout", layouts=SEVEN, allow_reset=True, env=path_with_nvidia_smi(machine))
    assert refused["reason"] == "GpuResetFailed" and "nvidia-smi -r ended with" in refused["msg"] and refused["object"].startswith("GPU 0 (")
    assert len(machine.layout(1)) == 7 and refused["reset_required"]


def test_gpus_that_change_without_a_reset_are_never_reset(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("set", "0", "activation=RESET_REQUIRED")
    machine.mark()
    refused = run_module(machine, "mig_layout", layouts=SEVEN, allow_reset=True, env=path_with_nvidia_smi(machine))
    assert refused["reason"] == "ModeChangeFailed" and "RESET_REQUIRED" in refused["msg"] and resets(machine) == 0


def test_a_sick_gpu_is_not_partitioned_unless_told_to(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("set", "0", "remap-failed=on")
    machine.mark()
    looked = run_module(machine, "mig_layout", check=True, layouts=SEVEN)
    assert looked["changed"] and "GpuUnhealthy" in str(looked["warnings"])
    refused = run_module(machine, "mig_layout", layouts=SEVEN)
    assert refused["reason"] == "GpuUnhealthy" and machine.calls() == []
    assert run_module(machine, "mig_layout", layouts=SEVEN, ignore_health=True)["changed"]
    assert not run_module(machine, "mig_layout", layouts=SEVEN).get("failed"), "a GPU that is partitioned already passes"


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[int]:
    """A process that has /dev/nvidia0 open without NVML knowing of it."""
    node = tmp_path / "dev" / "nvidia0"
    node.parent.mkdir()
    node.touch()
    code = f"import time; f = open({str(node)!r}); print('open', flush=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"open\n"
    yield process.pid
    process.kill()
    process.wait()


def test_listed_processes_and_open_device_files_are_named(nvml_machine: Any, watcher: int) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("client", "add", "0", "--pid", str(os.getpid()), "--kind", "compute")
    machine.mark()
    refused = run_module(machine, "mig_layout", layouts=SEVEN)
    assert refused["reason"] == "InstanceBusy" and machine.calls() == []
    assert f"compute process {os.getpid()}" in refused["msg"] and f"process {watcher} (python" in refused["msg"] and "/dev/nvidia0)" in refused["msg"]
    assert {row["pid"] for row in refused["details"]["holders"]} >= {os.getpid(), watcher}


def test_a_client_that_nvml_does_not_list_is_named_by_its_open_file(nvml_machine: Any, watcher: int) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=HALVES)
    before = machine.show()["gpus"][0]["instances"]
    machine.ctl("client", "add", "0", "--kind", "unlisted")
    refused = run_module(machine, "mig_layout", layouts=SEVEN)
    assert refused["reason"] == "InstanceBusy" and f"process {watcher} (python" in refused["msg"]
    assert machine.show()["gpus"][0]["instances"] == before


def test_on_busy_wait_ends_with_the_holder_that_is_left(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("client", "add", "0", "--pid", str(os.getpid()), "--kind", "graphics")
    machine.mark()
    refused = run_module(machine, "mig_layout", layouts=SEVEN, on_busy="wait", timeout=2)
    assert refused["reason"] == "InstanceBusy" and f"graphics process {os.getpid()}" in refused["msg"] and machine.calls() == []
