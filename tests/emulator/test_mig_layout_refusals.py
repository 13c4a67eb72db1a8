# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""mig_layout where it must refuse or wait: wrong input, GPUs in use, modes that need a reset, two runs at once. Nothing may be left half done."""
from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.modules import run_module

SEVEN = [{"match": "all", "instances": "all-1g"}]


@pytest.mark.parametrize(("options", "reason"), [
    ({"layouts": [{"match": "all", "instances": {"1g.12gb": 1}}]}, "UnknownProfile"),
    ({"layouts": [{"match": "all", "instances": {"3g.40gb": 2, "1g.10gb": 1}}]}, "ImpossibleLayout"),
    ({"layouts": [{"match": {"index": 0}, "instances": {"7g.80gb": 1}}, {"match": {"index": 1}, "instances": {"9g": 1}}]}, "UnknownProfile"),
    ({"layouts": [{"match": {"product": "*B200*"}, "instances": {}}]}, "LayoutMatchesNothing"),
    ({"layouts": [{"match": "all", "instances": "most"}]}, "InvalidLayout"),
    ({"mig_parted_config": {"version": "v1", "mig-configs": {"a": []}}, "mig_parted_selected": "b"}, "UnknownConfigName"),
    ({"mig_parted_config": "/no/such/file"}, "LayoutFileUnreadable"),
])
def test_wrong_input_is_one_sentence_and_changes_nothing(nvml_machine: Any, options: dict[str, Any], reason: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    machine.ctl("repartition", "1", "3g.40gb@4,1g.10gb@0")
    before = machine.show()
    machine.mark()
    for check in (True, False):
        refused = run_module(machine, "mig_layout", check=check, **options)
        assert refused["failed"] and not refused["changed"] and refused["reason"] == reason
        assert refused["msg"].count("\n") == 0 and refused["msg"].endswith(f"[{reason}]")
    assert machine.calls() == [] and machine.show() == before


def test_a_gpu_in_use_is_left_exactly_as_it_was(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=SEVEN)
    machine.ctl("set", "0", "held=on")
    before = machine.show()
    refused = run_module(machine, "mig_layout", layouts=[{"match": "all", "instances": {"3g.40gb": 2}}])
    assert refused["failed"] and refused["reason"] == "InstanceBusy" and not refused["changed"]
    assert "GPU 0 is as before" in refused["msg"] and refused["details"]["left"] == {refused["after"][0]["uuid"]: "before"}
    assert machine.show() == before


def test_on_busy_wait_goes_on_when_the_gpu_is_free(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=SEVEN)
    machine.ctl("set", "0", "held=on")
    release = threading.Timer(2.0, machine.ctl, ("set", "0", "held=off"))
    release.start()
    done = run_module(machine, "mig_layout", layouts=[{"match": "all", "instances": {"3g.40gb": 2}}], on_busy="wait", timeout=60)
    release.join()
    assert not done.get("failed") and done["changed"]
    assert machine.layout() == [("3g.40gb", 0), ("3g.40gb", 4)]


@pytest.mark.parametrize("form", ["activation", "return"])
def test_a_held_hopper_does_not_change_its_mode(nvml_machine: Any, form: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("set", "0", "held=on")
    machine.ctl("set", "0", f"in-use-form={form}")
    refused = run_module(machine, "mig_layout", layouts=SEVEN)
    assert refused["failed"] and refused["reason"] == "ModeChangeFailed" and "IN_USE" in refused["msg"]
    assert machine.layout() == []


def test_an_ampere_that_cannot_be_reset_now_says_so_and_the_next_run_finishes(nvml_machine: Any) -> None:
    machine = nvml_machine("a100-80gb-pcie:2")
    machine.ctl("set", "0", "held=on")
    first = run_module(machine, "mig_layout", layouts=SEVEN)
    assert first["failed"] and first["reason"] == "ResetRequired" and first["reset_required"] and not first["reboot_required"]
    assert first["changed"]
    uuids = [gpu["uuid"] for gpu in first["after"]]
    assert first["details"]["gpus"] == [uuids[0]]
    assert [(gpu["mode_current"], gpu["mode_pending"]) for gpu in first["after"]] == [(False, True), (True, True)]
    assert len(machine.layout(1)) == 7, "the other GPU is not held up"

    machine.ctl("set", "0", "held=off")
    machine.ctl("reset", "0")
    second = run_module(machine, "mig_layout", layouts=SEVEN)
    assert second["changed"] and not second["reset_required"] and len(machine.layout(0)) == 7
    assert len(second["kept"]) == 7


def test_allow_reset_resets_just_this_gpu(nvml_machine: Any, tmp_path: Path) -> None:
    machine = nvml_machine("a100-80gb-pcie:2")
    machine.ctl("set", "0", "held=on")
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    # The client lets go of the GPU just before the reset, which the mode change itself did not wait for.
    tool.write_text(f'#!/bin/sh\n{machine.folder}/nvmlctl set 0 held=off\necho "$@" >> {tmp_path}/asked\nexec {machine.folder}/nvidia-smi "$@"\n')
    tool.chmod(0o755)
    done = run_module(machine, "mig_layout", layouts=SEVEN, allow_reset=True, env={"PATH": f"{tool.parent}:{os.environ['PATH']}"})
    assert not done.get("failed"), done
    assert (tmp_path / "asked").read_text() == f"-r -i {done['after'][0]['uuid']}\n"
    assert len(machine.layout(0)) == len(machine.layout(1)) == 7


def test_a_reset_that_fails_is_named_with_what_the_tool_said(nvml_machine: Any) -> None:
    machine = nvml_machine("a100-80gb-pcie")
    machine.ctl("set", "0", "held=on")
    path = f"{machine.folder}:{os.environ['PATH']}"
    refused = run_module(machine, "mig_layout", layouts=SEVEN, allow_reset=True, env={"PATH": path})
    assert refused["failed"] and refused["reason"] == "GpuResetFailed" and "nvidia-smi -r ended with" in refused["msg"]


def test_without_root_the_mode_change_is_refused_in_a_sentence(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    refused = run_module(machine, "mig_layout", layouts=SEVEN, env={"NVML_EMULATOR_UID": "1000"})
    assert refused["failed"] and refused["reason"] in ("NvmlNoPermission", "ModeChangeFailed") and "NO_PERMISSION" in refused["msg"]
    assert machine.layout() == []


def test_two_runs_cannot_change_a_node_at_once(nvml_machine: Any, tmp_path: Path) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    state = tmp_path / "state"
    state.mkdir()
    with (state / "mig.lock").open("w") as lock:
        lock.write("4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        machine.mark()
        refused = run_module(machine, "mig_layout", layouts=SEVEN, state_dir=str(state))
        assert refused["failed"] and refused["reason"] == "LayoutLocked" and "process 4711" in refused["msg"]
        assert machine.calls() == []
        looked = run_module(machine, "mig_layout", check=True, layouts=SEVEN, state_dir=str(state))
        assert looked["changed"], "looking needs no lock"
        threading.Timer(1.5, fcntl.flock, (lock, fcntl.LOCK_UN)).start()
        started = time.monotonic()
        waited = run_module(machine, "mig_layout", layouts=SEVEN, state_dir=str(state), on_busy="wait", timeout=60)
        assert waited["changed"] and time.monotonic() - started > 1


def test_an_unusable_state_dir_is_a_sentence(nvml_machine: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run_module(nvml_machine("h100-80gb-hbm3"), "mig_layout", layouts=SEVEN, state_dir=str(tmp_path / "file"))
    assert refused["failed"] and refused["reason"] == "StateDirUnusable"
