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

SAMPLE = 1_800
LEAST_TRANSITIONS = 40


def disturb(library_folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Run a campaign, print its figures and return them. Fails when anything is wrong."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(library_folder), "NVML_EMULATOR_LIBRARY": str(library_folder / "libnvidia-ml.so.1"),
           "NVML_EMULATOR_UID": "0", "PYTHONPATH": f"{COLLECTIONS}:{ROOT}"}  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "tests.emulator.faults.campaign", *options], env=env, capture_output=True, text=True)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    violations = report.pop("violations")
    with capsys.disabled():
        print(f"\nMIG faults: {report}", file=sys.stderr)
    assert violations == [] and report["missed"] == [] and report["transitions"] >= LEAST_TRANSITIONS
    return report


def test_a_sample_of_all_faults(emulator_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = disturb(emulator_folder, capsys, "--runs", str(SAMPLE), "--workers", "2")
    assert report["combinations"] == report["functions"] * len(KINDS) * 2, "every function meets every kind before and after its effect"


@pytest.mark.slow
def test_all_faults(emulator_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disturb(emulator_folder, capsys, "--workers", str(2 * (os.cpu_count() or 1)))
