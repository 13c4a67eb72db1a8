# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hardware check on emulated boards: it agrees with each, sees what differs, and changes nothing. So the offline tables are those of the emulator."""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.mig_profiles import MODELS

CHECK = Path(__file__).resolve().parents[1] / "hardware" / "check.py"


def check(machine: Any, **env: str) -> tuple[int, str, dict[str, Any]]:
    """Run the check on a machine; returns its status, what it printed, and its report."""
    report = machine.directory.parent / "report.json"
    done = machine.run([sys.executable, str(CHECK), "--nvidia-smi", str(machine.folder / "nvidia-smi"), "--json", str(report)], **env)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, json.loads(report.read_text()) if report.exists() else {}


def verdicts(report: dict[str, Any], verdict: str) -> list[tuple[str, str]]:
    return [(row["what"], row["note"]) for row in report["rows"] if row["verdict"] == verdict]


def test_the_emulator_has_the_models_of_the_offline_tables(nvml_machine: Any) -> None:
    known = {model["model"]: model for model in json.loads(nvml_machine("a30", options=("--inferred",)).ctl("models", "--json")) if model["profiles"]}
    assert sorted(known) == sorted(MODELS)
    for key, model in known.items():
        assert MODELS[key].slots == model["memory_slices"]
        assert MODELS[key].inferred or not model["inferred"], f"{key}: only the emulator says what is inferred"


@pytest.mark.parametrize("keys", [tuple(sorted(MODELS))[:7], tuple(sorted(MODELS))[7:]], ids=["first half", "second half"])
def test_every_model_agrees_with_nvidia_smi_and_its_table_and_nothing_changes(nvml_machine: Any, keys: tuple[str, ...]) -> None:
    machine = nvml_machine(*keys, options=("--inferred",))
    before = machine.show()
    machine.mark()
    status, said, report = check(machine)
    assert verdicts(report, "differs") == [], said
    assert status == 0
    looked_at = {what for what, _note in verdicts(report, "ok")}
    for index, key in enumerate(keys):
        assert f"GPU {index} uuid" in looked_at and f"GPU {index} minor number" in looked_at
        for profile in MODELS[key].profiles:
            assert f"GPU {index} profile {profile.name}" in looked_at
            assert f"GPU {index} table {key} {profile.name}" in looked_at
    assert machine.calls() == []
    assert machine.show() == before


def test_instances_are_compared_also_without_compute_instance(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("mode", "0", "on")
    machine.python("""
        for profile, start, size, whole in ((9, 0, 4, 2), (19, 6, 1, None)):
            gi = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device(), profile, placement(start, size))
            if whole is not None:
                nvml.nvmlGpuInstanceCreateComputeInstance(gi, whole)
    """)
    machine.mark()
    status, said, report = check(machine)
    assert status == 0, said
    assert ("GPU instances (-lgi)", "2 of them") in verdicts(report, "ok")
    assert ("compute instances (-lci)", "1 of them") in verdicts(report, "ok")
    assert machine.calls() == []


def test_a_driver_that_differs_from_the_table_is_reported(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("set", "0", "instance-counts=wrong")
    status, said, report = check(machine)
    assert status == 1
    assert any(what.startswith("GPU 0 table h100-80gb-hbm3 ") and "count: ours" in note for what, note in verdicts(report, "differs")), said


def test_without_a_gpu_one_sentence_and_status_2(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    status, said, _report = check(machine, NVML_EMULATOR_DIR=str(machine.directory.parent / "none"))
    assert (status, said.count("\n")) == (2, 1) and said.startswith("Nothing was checked: "), said
    status, said, _report = check(machine, LD_LIBRARY_PATH="/nowhere")
    assert (status, said.count("\n")) == (2, 1) and "NvmlLibraryMissing" in said, said
