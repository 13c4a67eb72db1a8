# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A change that fails: what is taken back, what is not, and what the failure says about each GPU."""
from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.modules import run_engine, run_module
from tests.emulator.test_converge_journal import journal

HALVES = [{"match": "all", "instances": {"3g.40gb": 2}}]
SEVEN = [{"match": "all", "instances": "all-1g"}]
DESTROY, CREATE = "nvmlGpuInstanceDestroy", "nvmlDeviceCreateGpuInstanceWithPlacement"
CREATE_COMPUTE = "nvmlGpuInstanceCreateComputeInstanceWithPlacement"


def fault(machine: Any, symbol: str, nth: int = 1, when: str = "before", code: str = "UNKNOWN", times: int = 1) -> None:
    machine.ctl("fault", "add", "--symbol", symbol, "--nth", str(nth), "--code", code, "--when", when, "--times", str(times))


@pytest.mark.parametrize(("symbol", "nth", "when"), [
    (DESTROY, 1, "before"),  # its compute instance is gone already
    (DESTROY, 2, "after"),  # an error, and gone all the same
    ("nvmlComputeInstanceDestroy", 2, "before"),
    (CREATE, 1, "before"),  # everything is gone
])
def test_what_was_destroyed_is_made_again_at_its_place(nvml_machine: Any, symbol: str, nth: int, when: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    run_module(machine, "mig_layout", layouts=HALVES)
    before = machine.show()["gpus"]
    fault(machine, symbol, nth, when)
    failed = run_module(machine, "mig_layout", layouts=SEVEN)
    assert failed["failed"] and failed["reason"] in ("InstanceDestroyFailed", "InstanceCreateFailed") and "UNKNOWN (999)" in failed["msg"]
    assert machine.show()["gpus"] == before, "the same instances with the same UUIDs; the second GPU was not begun"
    assert not failed["changed"] and failed["after"] == failed["before"]
    assert failed["rolled_back"] == [gpu_label(failed, 0)]
    assert "GPU 0 is as before; GPU 1 is as before." in failed["msg"] and set(failed["details"]["left"].values()) == {"before"}
    assert any(text.startswith("undo: destroy") for text in failed["executed"])
    written = journal(machine)
    assert written["status"] == "rolled_back" and "done" not in {step["state"] for step in written["steps"]}
    assert run_module(machine, "mig_layout", layouts=SEVEN)["resumed"] is None
    assert len(machine.layout(0)) == len(machine.layout(1)) == 7


def gpu_label(result: dict[str, Any], number: int) -> str:
    gpu = result["before"][number]
    return f"GPU {gpu['index']} ({gpu['product']}, {gpu['uuid']})"


def test_the_device_nodes_of_a_gpu_that_does_not_answer_are_left_alone(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    run_module(machine, "mig_layout", layouts=SEVEN)
    other = [{"match": {"index": 0}, "instances": {"3g.40gb": 2}}]
    lost = f"""
        import json
        from ansible_collections.gpufleet.dra.plugins.module_utils.converge import run
        from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.device_nodes import NodeChanges
        asked = []
        run.put_device_nodes_right = lambda before, after, root: asked.append([gpu["index"] for gpu in before["gpus"]]) or NodeChanges()
        survey = run.survey
        run.survey = lambda session: (lambda facts: {{**facts, "gpus": facts["gpus"][:1], "unreadable_gpus": [{{"index": 1}}]}})(survey(session))
        try:
            with NvmlSession() as session:
                run.apply_layout(session, parse_layouts({other!r}), run.Policy(state_dir={str(machine.directory.parent / 'state')!r}), {{}})
        except FleetError as error:
            result = [error.finding.code, asked]
    """
    fault(machine, CREATE, 1)
    assert run_engine(machine, lost) == ["InstanceCreateFailed", [[0]]]


def test_a_divided_instance_comes_back_divided(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=[{"match": "all", "instances": [{"profile": "3g.40gb", "start": 4, "compute_instances": [2, 1]}]}])
    before = machine.show()["gpus"]
    fault(machine, CREATE_COMPUTE, 1)
    failed = run_module(machine, "mig_layout", layouts=[{"match": "all", "instances": [{"profile": "3g.40gb", "start": 4}]}])
    assert failed["reason"] == "InstanceCreateFailed" and machine.show()["gpus"] == before


def test_once_a_new_instance_stands_nothing_is_taken_back_and_the_state_is_told(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    fault(machine, CREATE_COMPUTE, 2)
    failed = run_module(machine, "mig_layout", layouts=HALVES)
    assert failed["reason"] == "InstanceCreateFailed" and failed["rolled_back"] == [] and failed["changed"]
    first, second = machine.layout(0)
    assert "GPU 0 has MIG mode enabled and 3g.40gb at start" in failed["msg"] and "without compute instance; GPU 1 is as before." in failed["msg"]
    assert list(failed["details"]["left"].values()) == ["between", "before"]
    assert journal(machine)["status"] == "failed"
    machine.mark()
    resumed = run_module(machine, "mig_layout", layouts=HALVES)
    assert resumed["resumed"]["status"] == "failed" and len(resumed["resumed"]["done"]) == 4
    assert machine.layout(0) == [first, second] and DESTROY not in {call["symbol"] for call in machine.calls()}


def test_an_error_after_which_the_instance_stands_is_told_as_it_is(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    fault(machine, CREATE, 1, "after")
    failed = run_module(machine, "mig_layout", layouts=HALVES)
    assert failed["reason"] == "InstanceCreateFailed"
    assert [step["state"] for step in journal(machine)["steps"]][:3] == ["done", "done", "planned"]
    assert len(machine.layout()) == 1


def test_an_instance_that_is_gone_already_counts_as_destroyed(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=HALVES)
    fault(machine, DESTROY, 1, "after", code="NOT_FOUND")
    assert run_module(machine, "mig_layout", layouts=SEVEN)["changed"]
    assert len(machine.layout()) == 7


def test_not_found_for_an_instance_that_is_there_is_an_error(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=HALVES)
    before = machine.show()["gpus"]
    fault(machine, DESTROY, 1, "before", code="NOT_FOUND")
    failed = run_module(machine, "mig_layout", layouts=SEVEN)
    assert failed["reason"] == "InstanceDestroyFailed" and machine.show()["gpus"] == before


def test_a_way_back_that_fails_too_leaves_an_exact_account(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=HALVES)
    fault(machine, CREATE, 1, times=3)
    failed = run_module(machine, "mig_layout", layouts=SEVEN)
    assert failed["reason"] == "InstanceCreateFailed" and failed["rolled_back"] == []
    assert "GPU 0 has MIG mode enabled and no instances." in failed["msg"]
    written = journal(machine)
    assert written["status"] == "failed" and [step["state"] for step in written["steps"] if step["action"] == "destroy_gpu_instance"] == ["done", "done"]


@pytest.mark.parametrize(("model", "mode"), [("h100-80gb-hbm3", False), ("a100-80gb-pcie", True)])
def test_the_mode_goes_back_where_no_reset_is_needed(nvml_machine: Any, model: str, mode: bool) -> None:
    machine = nvml_machine(model)
    fault(machine, CREATE, 1)
    failed = run_module(machine, "mig_layout", layouts=SEVEN)
    gpu = failed["after"][0]
    assert failed["reason"] == "InstanceCreateFailed" and (gpu["mode_current"], gpu["mode_pending"]) == (mode, mode)
    assert bool(failed["rolled_back"]) == (not mode)
    assert ("GPU 0 has MIG mode enabled and no instances." if mode else "GPU 0 is as before.") in failed["msg"]


def test_gpus_before_the_one_that_fails_stay_as_wanted(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:3")
    machine.ctl("fault", "add", "--symbol", CREATE, "--gpu", "1", "--code", "INSUFFICIENT_RESOURCES")
    failed = run_module(machine, "mig_layout", layouts=HALVES)
    assert "GPU 0 is as wanted; GPU 1 is as before; GPU 2 is as before." in failed["msg"]
    assert [len(machine.layout(number)) for number in range(3)] == [2, 0, 0]


def test_a_gpu_that_is_lost_on_the_way_is_named_with_what_the_journal_says(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    run_module(machine, "mig_layout", layouts=HALVES)
    machine.ctl("fault", "add", "--symbol", "*", "--gpu", "0", "--nth", "1", "--times", "0", "--code", "GPU_IS_LOST", "--mutating")
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetMigMode", "--gpu", "0", "--nth", "2", "--times", "0", "--code", "GPU_IS_LOST")
    failed = run_module(machine, "mig_layout", layouts=SEVEN)
    assert failed["failed"] and "GPU_IS_LOST" in failed["msg"]
    assert "GPU 0 does not answer; GPU 1 is as before; by the journal: failed: destroy compute instance" in failed["msg"]
    assert len(machine.layout(1)) == 2
