# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Calls that hang or are late: the module ends in bounded time and says what was in progress."""
from __future__ import annotations

import time
from typing import Any

import pytest

from tests.emulator.modules import run_module
from tests.emulator.test_converge_journal import journal

HALVES = [{"match": "all", "instances": {"3g.40gb": 2}}]
SEVEN = [{"match": "all", "instances": "all-1g"}]
HANGS_S = 120
PHASE_S = 3


@pytest.mark.parametrize(("symbol", "phase", "step"), [
    ("nvmlGpuInstanceDestroy", "destroy", "destroy GPU instance 3g.40gb at start"),
    ("nvmlDeviceCreateGpuInstanceWithPlacement", "create", "create GPU instance 1g.10gb at start"),
])
def test_a_call_that_hangs_ends_the_run_and_is_named(nvml_machine: Any, symbol: str, phase: str, step: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    run_module(machine, "mig_layout", layouts=HALVES)
    machine.ctl("fault", "add", "--symbol", symbol, "--delay", str(HANGS_S))
    began = time.monotonic()
    failed = run_module(machine, "mig_layout", layouts=SEVEN, phase_timeout=PHASE_S)
    assert time.monotonic() - began < HANGS_S / 2
    assert failed["reason"] == "PhaseTimeout" and failed["object"].startswith("GPU 0 (")
    assert f"phase {phase} took longer than {PHASE_S} s; in progress: {step}" in failed["msg"] and f"(NVML call {symbol})" in failed["msg"]
    written = journal(machine)
    assert written["status"] == "failed" and [row["text"].startswith(step) for row in written["steps"] if row["state"] == "doing"] == [True]
    assert "begun: " + step in failed["msg"] and failed["changed"]
    assert len(machine.layout(1)) == 2, "the other GPU was not begun"

    machine.ctl("fault", "clear")
    resumed = run_module(machine, "mig_layout", layouts=SEVEN)
    assert resumed["resumed"]["status"] == "failed" and len(resumed["resumed"]["doing"]) == 1
    assert len(machine.layout(0)) == len(machine.layout(1)) == 7


@pytest.mark.parametrize("check", [True, False])
def test_reading_that_hangs_ends_the_run(nvml_machine: Any, check: bool) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetMigMode", "--delay", str(HANGS_S))
    machine.mark()
    failed = run_module(machine, "mig_layout", check=check, layouts=SEVEN, phase_timeout=PHASE_S)
    assert failed["reason"] == "PhaseTimeout" and "phase read took longer" in failed["msg"] and "Nothing was changed." in failed["msg"]
    assert not failed["changed"] and machine.calls() == []


def test_slow_calls_within_the_time_of_their_phase_do_no_harm(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceCreateGpuInstanceWithPlacement", "--times", "0", "--delay", "0.5")
    assert run_module(machine, "mig_layout", layouts=HALVES, phase_timeout=20)["changed"]


def test_waiting_for_a_busy_gpu_does_not_count(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=HALVES)
    machine.ctl("fault", "add", "--symbol", "nvmlGpuInstanceDestroy", "--code", "IN_USE", "--times", "16")
    done = run_module(machine, "mig_layout", layouts=SEVEN, phase_timeout=PHASE_S, on_busy="wait", timeout=60)
    assert not done.get("failed") and len(machine.layout()) == 7


def test_a_timeout_of_nothing_is_refused(nvml_machine: Any) -> None:
    refused = run_module(nvml_machine("h100-80gb-hbm3"), "mig_layout", layouts=SEVEN, phase_timeout=0)
    assert refused["reason"] == "InvalidLayout" and "phase_timeout" in refused["msg"]
