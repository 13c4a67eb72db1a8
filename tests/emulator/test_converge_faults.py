# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The engine under fire: at any NVML call any failure, death or delay. It leaves the old layout, the new one or what its journal says, and then gets there."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.faults.kinds import KINDS
from tests.emulator.modules import COLLECTIONS, ROOT

SAMPLE = 1_000
LEAST_TRANSITIONS = 40


def campaign(library_folder: Path, *options: str, sabotage: str = "") -> dict[str, Any]:
    """Run a campaign on the emulator in ``library_folder`` and return its report. ``sabotage`` is code that breaks the engine first."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(library_folder), "NVML_EMULATOR_LIBRARY": str(library_folder / "libnvidia-ml.so.1"),
           "NVML_EMULATOR_UID": "0", "PYTHONPATH": f"{COLLECTIONS}:{ROOT}"}  # fmt: skip
    code = f"{sabotage}\nimport sys\nfrom tests.emulator.faults.campaign import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *options], env=env, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


def check(report: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Print the figures; fail when anything is wrong."""
    violations = report.pop("violations")
    with capsys.disabled():
        print(f"\nMIG faults: {report}", file=sys.stderr)
    assert violations == [] and report["missed"] == [] and report["transitions"] >= LEAST_TRANSITIONS


def test_a_sample_of_all_faults(emulator_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = campaign(emulator_folder, "--runs", str(SAMPLE), "--workers", "2")
    check(report, capsys)
    assert report["combinations"] == report["functions"] * len(KINDS) * 2, "every function meets every kind before and after its effect"


@pytest.mark.slow
def test_all_faults(emulator_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(campaign(emulator_folder, "--workers", str(2 * (os.cpu_count() or 1))), capsys)


TRANSITION = "h100 small ones in the way of a half"
ENGINE = "ansible_collections.gpufleet.dra.plugins.module_utils"
SABOTAGE = {
    "notes nothing before an act": ("killed", f"""
from {ENGINE}.converge.journal import DOING, Journal
mark = Journal.mark
def forget(self, entry, state, error=""):
    if state == DOING:
        entry.state = state
    else:
        mark(self, entry, state, error)
Journal.mark = forget
""", "the journal says"),
    "rebuilds everything": ("killed", f"""
from {ENGINE}.mig import gpu_plan
solve = gpu_plan.solve
def rebuild(wanted, present, profiles):
    least = solve(wanted, present, profiles)
    return least if len(least) == sum(item.kept is not None for item in least) == len(present) else solve(wanted, [], profiles)
gpu_plan.solve = rebuild
""", "more than it has to"),
    "does not go back": ("UNKNOWN", f"""
from {ENGINE}.converge import worker
worker.take_back = lambda *arguments: False
""", "could have gone back"),
    "lets a traceback out": ("IN_USE", f"""
from {ENGINE}.converge import worker
del worker.find_holders
""", "traceback"),
}  # fmt: skip


@pytest.mark.parametrize("broken", SABOTAGE)
def test_a_broken_engine_is_found_out(emulator_folder: Path, broken: str) -> None:
    kind, sabotage, verdict = SABOTAGE[broken]
    report = campaign(emulator_folder, "--only", TRANSITION, "--kind", kind, "--runs", "100", sabotage=sabotage)
    assert any(verdict in violation["wrong"] for violation in report["violations"]), report["violations"][:5]
