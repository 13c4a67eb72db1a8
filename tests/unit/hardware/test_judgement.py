# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the hardware check calls ok, different and not checkable; and that it can only read."""
from __future__ import annotations

import copy
from typing import Any

import pynvml
import pytest

from tests.hardware import abi
from tests.hardware.against_smi import judge_fields, judge_instances, judge_profiles, judge_report
from tests.hardware.against_table import judge_table
from tests.hardware.readonly import ReadOnlyLibrary, RefusedCall, is_reading
from tests.hardware.rows import DIFFERS, OK, UNCHECKED, Row, table
from tests.hardware.smi import Smi
from tests.unit.mig.models import gpu_facts

ENGINES = {"multiprocessors": 16, "copy_engines": 1, "decoders": 1, "encoders": 0, "jpeg_engines": 1, "ofa_engines": 0}


def document() -> dict[str, Any]:
    """One H100 with a 3g and an orphan 1g, as nvml_info reads it."""
    gpu = gpu_facts("h100", instances=[("3g.40gb", 0), ("1g.10gb", 6)], slices={6: []})
    gpu.update(cuda_compute_capability="9.0", health={
        "ecc": {"enabled": True, "pending": True, "uncorrected_volatile": 0, "uncorrected_aggregate": 2}, "recovery_action": "none",
        "row_remap": {"correctable": 0, "uncorrectable": 2, "pending": False, "failed": False},
    })
    for row in gpu["mig"]["profiles"]:
        row.update(ENGINES)
    return {"driver_version": "580.105.08", "gpus": [gpu]}


def printed() -> Smi:
    """What nvidia-smi prints of it."""
    gpu = document()["gpus"][0]
    return Smi(
        gpus={0: {
            "index": "0", "uuid": gpu["uuid"], "name": "NVIDIA H100 80GB HBM3", "pci.bus_id": "00000000:41:00.0", "pci.device_id": "0x233010DE",
            "pci.sub_device_id": "0x16C110DE", "driver_version": "580.105.08", "memory.total": "81559", "compute_cap": "9.0", "mig.mode.current": "Enabled",
            "mig.mode.pending": "Enabled", "ecc.mode.current": "Enabled", "ecc.mode.pending": "Enabled", "ecc.errors.uncorrected.volatile.total": "0",
            "ecc.errors.uncorrected.aggregate.total": "2",
        }},
        details={"00000000:41:00.0": {"Minor Number": "0", "GPU Recovery Action": "None", "Remapped Rows": {
            "Correctable Error": "0", "Uncorrectable Error": "2", "Pending": "No", "Remapping Failure Occurred": "No"}}},
        profiles={(0, row["id"]): {"name": row["name"], "count": row["instance_count"], "memory": f"{row['memory_mib'] / 1024:.2f}", **ENGINES}
                  for row in gpu["mig"]["profiles"]},
        placements={(0, row["id"]): [(place["start"], place["size"]) for place in row["placements"]] for row in gpu["mig"]["profiles"]},
        gpu_instances=[{"gpu": 0, "gpu_instance_id": 7, "profile": "3g.40gb", "profile_id": 9, "start": 0, "size": 4},
                       {"gpu": 0, "gpu_instance_id": 8, "profile": "1g.10gb", "profile_id": 19, "start": 6, "size": 1}],
        compute_instances=[{"gpu": 0, "gpu_instance_id": 7, "compute_instance_id": 0, "profile_id": 0, "start": 0, "size": 3}],
    )


def judge(facts: dict[str, Any], smi: Smi) -> list[Row]:
    return [row for rows in (judge_fields, judge_report, judge_profiles, judge_instances) for row in rows(facts, smi)]


def test_the_same_on_both_sides_is_ok() -> None:
    rows = judge(document(), printed())
    assert [row for row in rows if row.verdict != OK] == []
    assert len(rows) == 1 + 14 + 3 + 2 + 7 + 2


@pytest.mark.parametrize(("change", "what"), [
    (lambda smi: smi.gpus[0].update({"memory.total": "81920"}), "GPU 0 memory.total"),
    (lambda smi: smi.gpus[0].update({"mig.mode.pending": "[N/A]"}), "GPU 0 mig.mode.pending"),
    (lambda smi: smi.gpus.update({1: dict(smi.gpus[0])}), "GPUs"),
    (lambda smi: smi.details["00000000:41:00.0"].update({"Minor Number": "1"}), "GPU 0 minor number"),
    (lambda smi: smi.details["00000000:41:00.0"].update({"GPU Recovery Action": "Reset"}), "GPU 0 recovery action"),
    (lambda smi: smi.details["00000000:41:00.0"]["Remapped Rows"].update({"Pending": "Yes"}), "GPU 0 remapped rows"),
    (lambda smi: smi.profiles[0, 9].update({"multiprocessors": 60}), "GPU 0 profile 3g.40gb"),
    (lambda smi: smi.profiles[0, 9].update({"memory": "39.62"}), "GPU 0 profile 3g.40gb"),
    (lambda smi: smi.placements.update({(0, 9): [(0, 4)]}), "GPU 0 profile 3g.40gb"),
    (lambda smi: smi.placements.update({(0, 21): [(0, 1)]}), "GPU 0 placements (-lgipp)"),
    (lambda smi: smi.gpu_instances[1].update({"start": 5}), "GPU instances (-lgi)"),
    (lambda smi: smi.compute_instances.pop(), "compute instances (-lci)"),
])
def test_any_difference_is_one_row(change: Any, what: str) -> None:
    smi = printed()
    change(smi)
    assert [row.what for row in judge(document(), smi) if row.verdict == DIFFERS] == [what]


def test_what_nvidia_smi_does_not_say_is_not_checkable() -> None:
    rows = judge(document(), Smi(silent={"nvidia-smi": "there is no nvidia-smi"}))
    assert {row.verdict for row in rows} == {UNCHECKED}


def test_a_field_that_neither_side_has_is_ok() -> None:
    facts, smi = document(), printed()
    facts["gpus"][0]["health"]["ecc"]["enabled"] = None
    smi.gpus[0]["ecc.mode.current"] = "[N/A]"
    assert [row for row in judge(facts, smi) if row.verdict != OK] == []


def test_a_driver_is_held_against_the_table_of_its_model() -> None:
    facts = document()
    assert {row.verdict for row in judge_table(facts)} == {OK}
    other = copy.deepcopy(facts)
    other["gpus"][0]["mig"]["profiles"][0]["name"] = "1g.11gb"
    del other["gpus"][0]["mig"]["profiles"][3]
    assert [(row.what, row.note) for row in judge_table(other) if row.verdict == DIFFERS] == [
        ("GPU 0 table h100-80gb-hbm3 2g.20gb", "only the table has profile id 14"),
        ("GPU 0 table h100-80gb-hbm3 1g.10gb", "name: ours 1g.11gb, the table 1g.10gb"),
    ]
    other["gpus"][0]["pci_device_id"] = "0xFFFF10DE"
    assert [row.verdict for row in judge_table(other)] == [UNCHECKED]


def test_the_wrapper_has_the_structures_of_the_header() -> None:
    assert {row.verdict for row in abi.judge_wrapper(pynvml)} == {OK}


def test_runs_of_answers_are_told_short() -> None:
    assert abi._runs([3, 3, 2, 2], 10) == "NOT_SUPPORTED from 10, INVALID_ARGUMENT from 12"


@pytest.mark.parametrize("symbol", [
    "nvmlDeviceSetMigMode", "nvmlDeviceCreateGpuInstance", "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceDestroy", "nvmlComputeInstanceDestroy",
    "nvmlGpuInstanceCreateComputeInstance", "nvmlDeviceClearEccErrorCounts", "nvmlDeviceResetGpuLockedClocks", "nvmlDeviceModifyDrainState",
    "nvmlDeviceSetPersistenceMode", "nvmlEmulatorResetDevice", "nvmlDeviceRegisterEvents", "nvmlEventSetCreate", "nvmlSystemSetConfComputeGpusReadyState",
])
def test_what_is_no_query_is_refused(symbol: str) -> None:
    with pytest.raises(RefusedCall):
        getattr(ReadOnlyLibrary(None), symbol)  # type: ignore[arg-type]


def test_no_function_of_nvml_that_changes_something_counts_as_a_query() -> None:
    functions = [name for name in dir(pynvml) if name.startswith("nvml") and callable(getattr(pynvml, name))]
    reading = [name for name in functions if is_reading(name)]
    assert len(reading) > 100
    assert [name for name in reading if any(word in name for word in ("Set", "Create", "Destroy", "Clear", "Reset", "Modify", "Remove", "Write", "Update"))
            and not name.startswith(("nvmlDeviceGet", "nvmlSystemGet", "nvmlGpuInstanceGet", "nvmlComputeInstanceGet", "nvmlUnitGet"))] == []


def test_the_table_ends_with_the_counts() -> None:
    text = table([Row("one", OK), Row("another", DIFFERS, "ours 1, nvidia-smi 2")])
    assert text == "one      ok\nanother  differs        ours 1, nvidia-smi 2\n\n1 ok, 1 differs, 0 not checkable"
