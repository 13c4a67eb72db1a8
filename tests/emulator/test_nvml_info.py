# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvml_info on emulated GPUs: the facts document that everything else reads."""
from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.modules import run_module

# From NVIDIA's MIG User Guide and published nvidia-smi output, not from our emulator: memory, PCI id, and one profile (name, id, most, starts, SMs, MiB).
MODELS = [
    ("a100-80gb-pcie", "NVIDIA A100 80GB PCIe", 81920, "0x20B510DE", "8.0", ("3g.40gb", 9, 2, [0, 4], 42, None)),
    ("h100-80gb-hbm3", "NVIDIA H100 80GB HBM3", 81559, "0x233010DE", "9.0", ("1g.20gb", 15, 4, [0, 2, 4, 6], 26, None)),
    ("h200-nvl", "NVIDIA H200 NVL", 143771, "0x233B10DE", "9.0", ("1g.18gb", 19, 7, [0, 1, 2, 3, 4, 5, 6], 16, 16384)),
    ("rtx-pro-6000-server", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "0x2BB510DE", "12.0", ("2g.48gb", 5, 2, [0, 6], 94, None)),
]


@pytest.mark.parametrize(("model", "product", "memory_mib", "pci_device_id", "capability", "profile"), MODELS)
def test_facts_of_each_model(nvml_machine: Any, model: str, product: str, memory_mib: int, pci_device_id: str, capability: str, profile: tuple) -> None:
    machine = nvml_machine(f"{model}:2")
    machine.mark()
    result = run_module(machine, "nvml_info", check=True)
    assert not result["changed"] and machine.calls() == []
    nvml = result["nvml"]
    assert nvml["driver_version"] == "595.91.07" and nvml["cuda_driver_version"] == 13020 and nvml["driver_root"] == "/"
    assert Path(nvml["library"]).resolve().parent == machine.folder.resolve()
    assert [gpu["pci_bus_id"] for gpu in nvml["gpus"]] == sorted(gpu["pci_bus_id"] for gpu in nvml["gpus"])
    gpu = nvml["gpus"][0]
    assert (gpu["product"], gpu["memory_mib"], gpu["pci_device_id"], gpu["cuda_compute_capability"]) == (product, memory_mib, pci_device_id, capability)
    assert gpu["memory_bytes"] == memory_mib << 20 and gpu["uuid"].startswith("GPU-") and gpu["processes"] == []
    assert gpu["mig"]["capable"] and not gpu["mig"]["current"] and gpu["mig"]["reset_free"] is (capability != "8.0")
    name, profile_id, most, starts, multiprocessors, memory = profile
    row = next(item for item in gpu["mig"]["profiles"] if item["name"] == name)
    assert (row["id"], row["instance_count"], [place["start"] for place in row["placements"]], row["multiprocessors"]) == (
        profile_id, most, starts, multiprocessors)
    assert memory in (None, row["memory_mib"])


def test_instances_carry_what_identifies_them_and_reading_twice_is_equal(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    machine.ctl("repartition", "1", "3g.40gb@4,1g.10gb@0,1g.10gb+me@2")
    first = run_module(machine, "nvml_info")["nvml"]
    assert first == run_module(machine, "nvml_info")["nvml"]
    instances = first["gpus"][1]["mig"]["instances"]
    assert [(item["profile"], item["profile_id"], item["start"], item["size"]) for item in instances] == [
        ("1g.10gb", 19, 0, 1), ("1g.10gb+me", 20, 2, 1), ("3g.40gb", 9, 4, 4)]
    seen = machine.python("""
        handles = []
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device(1))):
            try:
                handles.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device(1), index))
            except nvml.NVMLError_NotFound:
                pass
        result = {nvml.nvmlDeviceGetUUID(mig): nvml.nvmlDeviceGetGpuInstanceId(mig) for mig in handles}
    """)
    assert {ci["uuid"]: item["gpu_instance_id"] for item in instances for ci in item["compute_instances"]} == seen
    assert [[ci["slices"] for ci in item["compute_instances"]] for item in instances] == [[1], [1], [3]]


def test_a_driver_root_decides_which_library_is_loaded(nvml_machine: Any, tmp_path: Path) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    root = tmp_path / "run/nvidia/driver"
    (root / "usr/lib64").mkdir(parents=True)
    shutil.copy(machine.folder / "libnvidia-ml.so.1", root / "usr/lib64/libnvidia-ml.so.1")
    nvml = run_module(machine, "nvml_info", driver_root=str(root), env={"LD_LIBRARY_PATH": ""})["nvml"]
    assert nvml["library"] == str(root / "usr/lib64/libnvidia-ml.so.1") and len(nvml["gpus"]) == 1


@pytest.mark.parametrize(("env", "options", "reason"), [
    ({"LD_LIBRARY_PATH": ""}, {}, "NvmlLibraryMissing"),
    ({}, {"driver_root": "/nowhere"}, "NvmlLibraryMissing"),
    ({"NVML_EMULATOR_DIR": "/nowhere"}, {}, "NvmlDriverNotLoaded"),
    ({}, {"pynvml_path": "EMPTY"}, "PynvmlMissing"),
])
def test_a_node_without_a_working_driver_is_a_sentence(nvml_machine: Any, tmp_path: Path, env: dict, options: dict, reason: str) -> None:
    if "pynvml_path" in options:
        (tmp_path / "pynvml.py").write_text("raise ImportError('not for this Python')\n")
        options = {"pynvml_path": str(tmp_path)}
    refused = run_module(nvml_machine("h100-80gb-hbm3"), "nvml_info", env=env, **options)
    assert refused["failed"] and refused["reason"] == reason and refused["msg"].endswith(f"[{reason}]")
    assert json.dumps(refused).count("Traceback") == 0
