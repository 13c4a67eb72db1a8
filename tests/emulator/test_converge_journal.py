# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The journal of mig_layout: what it says after success, after kill -9 and after a failure, and what the next run makes of it."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.modules import COLLECTIONS, run_module, state_dir

HALVES = [{"match": "all", "instances": {"3g.40gb": 2}}]
MIXED = [{"match": "all", "instances": {"3g.40gb": 1, "1g.10gb": 2}}]


def journal_path(machine: Any) -> Path:
    return Path(state_dir(machine)) / "mig-journal.json"


def journal(machine: Any) -> dict[str, Any]:
    return dict(json.loads(journal_path(machine).read_text()))


def states(machine: Any) -> list[str]:
    return [step["state"] for step in journal(machine)["steps"]]


def run_killed(machine: Any, layouts: list[dict[str, Any]]) -> None:
    """Run the module where a fault kills it."""
    given = machine.directory.parent / "killed.json"
    given.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {"layouts": layouts, "state_dir": state_dir(machine)}}))
    done = machine.run([sys.executable, "-m", "ansible_collections.gpufleet.dra.plugins.modules.mig_layout", str(given)], PYTHONPATH=str(COLLECTIONS))
    assert done.returncode == -9, done


def test_after_success_it_holds_the_layout_before_and_every_step_done(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=HALVES)
    made = run_module(machine, "mig_layout", layouts=MIXED)
    written = journal(machine)
    assert made["journal"] == str(journal_path(machine))
    assert written["version"] == 1 and written["status"] == "finished" and written["error"] is None
    assert written["before"] == made["before"]
    assert [step["text"] for step in written["steps"]] == [step["text"] for step in made["plan"]] == made["executed"]
    assert set(states(machine)) == {"done"}
    assert made["resumed"] is None and made["rolled_back"] == []


def test_a_run_with_nothing_to_do_writes_nothing(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    assert not run_module(machine, "mig_layout", check=True, layouts=HALVES).get("failed") and not journal_path(machine).exists()
    run_module(machine, "mig_layout", layouts=HALVES)
    before = journal_path(machine).stat()
    machine.mark()
    assert not run_module(machine, "mig_layout", layouts=HALVES)["changed"]
    after = journal_path(machine).stat()
    assert machine.calls() == [] and (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(("nth", "when", "left"), [
    (2, "before", "doing"),  # the GPU instance is still there, without its compute instance
    (2, "after", "doing"),
    (4, "after", "doing"),  # a new GPU instance without compute instance
])
def test_after_kill_9_it_says_what_is_done_and_the_next_run_goes_on(nvml_machine: Any, nth: int, when: str, left: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    run_module(machine, "mig_layout", layouts=HALVES)
    machine.ctl("fault", "add", "--symbol", "*", "--mutating", "--nth", str(nth), "--kill", "--when", when)
    run_killed(machine, MIXED)
    machine.ctl("fault", "clear")
    written = journal(machine)
    assert written["status"] == "running"
    assert states(machine)[:nth] == ["done"] * (nth - 1) + [left] and set(states(machine)[nth:]) <= {"planned"}

    looked = run_module(machine, "mig_layout", check=True, layouts=MIXED)
    resumed = run_module(machine, "mig_layout", layouts=MIXED)
    assert resumed["changed"] and resumed["resumed"] == looked["resumed"]
    texts = [step["text"] for step in written["steps"]]
    assert resumed["resumed"] == {"started": written["run"]["started"], "status": "running", "done": texts[:nth - 1], "doing": [texts[nth - 1]]}
    assert sorted(profile for profile, _start in machine.layout()) == ["1g.10gb", "1g.10gb", "3g.40gb"]
    assert journal(machine)["status"] == "finished"
    assert run_module(machine, "mig_layout", layouts=MIXED)["resumed"] is None


def test_a_run_killed_after_its_last_act_is_closed_by_the_next_one(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("fault", "add", "--symbol", "nvmlGpuInstanceCreateComputeInstanceWithPlacement", "--nth", "2", "--kill", "--when", "after")
    run_killed(machine, HALVES)
    machine.ctl("fault", "clear")
    machine.mark()
    closed = run_module(machine, "mig_layout", layouts=HALVES)
    assert not closed["changed"] and machine.calls() == []
    assert closed["resumed"]["doing"] == [closed_step(machine)["text"]] and journal(machine)["status"] == "finished"
    assert run_module(machine, "mig_layout", layouts=HALVES)["resumed"] is None


def closed_step(machine: Any) -> dict[str, Any]:
    return dict(next(step for step in journal(machine)["steps"] if step["state"] == "doing"))


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 99}', '{"version": 1, "status": "running"}', "\udcff"])
def test_a_journal_that_cannot_be_read_is_a_warning_and_moved_aside(nvml_machine: Any, content: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    path = journal_path(machine)
    path.parent.mkdir(parents=True)
    path.write_bytes(content.encode(errors="surrogateescape"))
    looked = run_module(machine, "mig_layout", check=True, layouts=HALVES)
    assert str(path) in str(looked["warnings"]) and path.exists()
    made = run_module(machine, "mig_layout", layouts=HALVES)
    assert made["changed"] and not made.get("failed") and made["resumed"] is None
    assert "mig-journal.unreadable.json" in str(made["warnings"])
    assert path.with_name("mig-journal.unreadable.json").read_bytes() == content.encode(errors="surrogateescape")
    assert journal(machine)["status"] == "finished"


def test_no_act_without_a_journal(nvml_machine: Any) -> None:
    """Where the journal cannot be written, nothing is touched."""
    machine = nvml_machine("h100-80gb-hbm3")
    folder = Path(state_dir(machine))
    (folder / ".mig-journal.json.new").mkdir(parents=True)
    machine.mark()
    refused = run_module(machine, "mig_layout", layouts=HALVES)
    assert refused["reason"] == "StateDirUnusable" and "mig-journal.json" in refused["msg"]
    assert machine.calls() == []


def test_two_runs_at_once_do_not_mix(nvml_machine: Any) -> None:
    """One makes its layout, the other says who does; the calls of the two never alternate."""
    machine = nvml_machine("h100-80gb-hbm3:4")
    machine.ctl("fault", "add", "--symbol", "*", "--mutating", "--times", "0", "--delay", "0.05")
    machine.mark()
    wanted = [HALVES, [{"match": "all", "instances": "all-1g"}]]
    running = []
    for number, layouts in enumerate(wanted):
        given = machine.directory.parent / f"run{number}.json"
        given.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {"layouts": layouts, "state_dir": state_dir(machine)}}))
        command = [sys.executable, "-m", "ansible_collections.gpufleet.dra.plugins.modules.mig_layout", str(given)]
        running.append(subprocess.Popen(command, env={**machine.env, "PYTHONPATH": str(COLLECTIONS)}, stdout=subprocess.PIPE, text=True))
    results = [json.loads(process.communicate(timeout=300)[0]) for process in running]
    winner, loser = sorted(range(2), key=lambda number: bool(results[number].get("failed")))
    assert not results[winner].get("failed") and results[winner]["changed"]
    assert results[loser]["reason"] == "LayoutLocked" and f"process {running[winner].pid}" in results[loser]["msg"]
    assert {call["pid"] for call in machine.calls()} == {running[winner].pid}
