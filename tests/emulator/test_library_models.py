# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Each model's facts and profile table, through nvidia-ml-py, against what boards print."""
from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine
from tests.emulator.listings import BOARDS, INFERRED, NAMES_ONLY, geometry, options

READ_PROFILES = """
result = []
for enum in range(32):
    try:
        info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(device(), enum, version=2)
    except nvml.NVMLError_NotSupported:
        continue
    except nvml.NVMLError_InvalidArgument:
        break
    old = nvml.nvmlDeviceGetGpuInstanceProfileInfo(device(), enum, version=1)
    same = all(getattr(old, name) == getattr(info, name) for name, _type in old._fields_)
    by_id = nvml.nvmlDeviceGetGpuInstanceProfileInfoByIdV(device(), info.id)
    count = ctypes.c_uint()
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(device(), info.id, None, ctypes.byref(count))
    places = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(device(), info.id, places, ctypes.byref(count))
    name = info.name if isinstance(info.name, str) else info.name.decode()
    result.append({
        "enum": enum, "name": name, "id": info.id, "count": info.instanceCount, "slices": info.sliceCount,
        "memory": info.memorySizeMB, "multiprocessors": info.multiprocessorCount, "same": same and by_id.id == info.id,
        "engines": [info.copyEngineCount, info.decoderCount, info.encoderCount, info.jpegCount, info.ofaCount],
        "starts": [place.start for place in places], "sizes": sorted({place.size for place in places}),
    })
result = {"profiles": result, "end": enum}
"""


@pytest.mark.parametrize("model", BOARDS)
def test_plain_facts(nvml_machine: Callable[..., Machine], model: str) -> None:
    board = BOARDS[model]
    facts = nvml_machine(model, options=options(model)).python("""
        gpu, pci = device(), nvml.nvmlDeviceGetPciInfo(device())
        fields = nvml.nvmlDeviceGetFieldValues(gpu, [184, 199, 1])
        idle = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        result = {
            "name": nvml.nvmlDeviceGetName(gpu), "memory": nvml.nvmlDeviceGetMemoryInfo(gpu).total,
            "memory_v2": nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2).total, "pci": pci.pciDeviceId,
            "bus": str(pci.busId), "architecture": nvml.nvmlDeviceGetArchitecture(gpu), "brand": nvml.nvmlDeviceGetBrand(gpu),
            "capability": nvml.nvmlDeviceGetCudaComputeCapability(gpu), "minor": nvml.nvmlDeviceGetMinorNumber(gpu),
            "resetless": fields[0].value.uiVal, "query": fields[1].value.uiVal, "unknown_field": fields[2].nvmlReturn,
            "virtualization": nvml.nvmlDeviceGetVirtualizationMode(gpu), "persistence": nvml.nvmlDeviceGetPersistenceMode(gpu),
            "slots": [idle, nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)], "index": nvml.nvmlDeviceGetIndex(gpu),
            "serial": nvml.nvmlDeviceGetSerial(gpu), "processes": len(nvml.nvmlDeviceGetComputeRunningProcesses(gpu)),
            "module": nvml.nvmlLib.nvmlDeviceGetModuleId(gpu, ctypes.byref(ctypes.c_uint())),
            "versions": [nvml.nvmlSystemGetDriverVersion(), nvml.nvmlSystemGetNVMLVersion(), nvml.nvmlSystemGetCudaDriverVersion()],
        }
    """)
    assert facts["name"] == board.product
    assert facts["memory"] == facts["memory_v2"] == board.memory_mib << 20
    assert (facts["pci"], facts["bus"]) == (board.pci_device << 16 | 0x10DE, "00000000:19:00.0")
    assert (facts["architecture"], facts["brand"], facts["capability"]) == (board.architecture, 14, list(board.capability))
    assert (facts["resetless"], facts["query"], facts["unknown_field"]) == (int(board.architecture > 7), 1, 3)
    assert (facts["virtualization"], facts["persistence"], facts["processes"], facts["module"]) == (0, 0, 0, 3)
    assert facts["slots"] == [0, 4 if model in ("a30", "rtx-pro-6000-server") else 7]
    assert (facts["index"], facts["minor"]) == (0, 0)
    assert facts["serial"].isdecimal()
    assert facts["versions"] == ["595.91.07", "13.595.91.07", 13020]


SHORT_LISTS = """
nvml.nvmlDeviceSetMigMode(device(), 1)
instance = nvml.nvmlDeviceCreateGpuInstance(device(), 9)
result = []
for call, handle, profile in (
    (nvml.nvmlDeviceGetGpuInstancePossiblePlacements, device(), 19),
    (nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements, instance, 0),
):
    for size in (0, 2, 3, 9):
        places = (nvml.c_nvmlGpuInstancePlacement_t * size)()
        count = ctypes.c_uint(size)
        result.append([code_of(call, handle, profile, places, ctypes.byref(count)), count.value, sum(place.size for place in places)])
"""


def test_a_list_of_placements_that_is_too_short_is_left_alone(nvml_machine: Callable[..., Machine]) -> None:
    gpu_instances, compute_instances = [[7, 7, 0]] * 3 + [[0, 7, 7]], [[7, 3, 0]] * 2 + [[0, 3, 3]] * 2
    assert nvml_machine("h100-80gb-hbm3").python(SHORT_LISTS) == gpu_instances + compute_instances


@pytest.mark.parametrize("model", BOARDS)
def test_profiles_are_those_that_boards_print(nvml_machine: Callable[..., Machine], model: str) -> None:
    read = nvml_machine(model, options=options(model)).python(READ_PROFILES)
    assert read["end"] == 18
    by_name = {profile["name"].removeprefix("MIG "): profile for profile in read["profiles"]}
    rows = [line.split() for line in BOARDS[model].rows.strip().splitlines()]
    assert sorted(by_name) == sorted([row[0] for row in rows] + NAMES_ONLY.get(model, []))
    for name, *numbers in rows:
        profile = by_name[name]
        shown = [profile["id"], profile["count"], f"{profile['memory'] / 1024:.2f}", profile["multiprocessors"], *profile["engines"]]
        assert [str(value) for value in shown] == numbers, name
    assert len({profile["id"] for profile in read["profiles"]}) == len(by_name)
    for name, profile in by_name.items():
        assert profile["same"]
        assert profile["sizes"] == [geometry(model)[profile["id"]][1]]
        assert (profile["starts"], profile["enum"], profile["slices"]) == (geometry(model)[profile["id"]][0], *geometry(model)[profile["id"]][2:])
        assert plugin_name(profile, BOARDS[model].memory_mib) == name


def plugin_name(profile: dict[str, Any], total_mib: int) -> str:
    """The profile's name as NVIDIA's libraries compute it from enum and memory, rounding half away from zero."""
    suffix = {7: "+me", 8: "+me", 10: "+gfx", 11: "+gfx", 12: "+gfx", 13: "-me", 14: "-me", 15: "+me.all", 16: "+me.all"}
    share = math.ceil(8 * profile["memory"] / total_mib) / 8
    gigabytes = math.floor(share * math.ceil(total_mib / 1024) + 0.5)
    return f"{profile['slices']}g.{gigabytes}gb{suffix.get(profile['enum'], '')}"


@pytest.mark.parametrize("model", INFERRED)
def test_a_model_with_inferred_numbers_is_made_only_when_told_to(nvml_machine: Callable[..., Machine], model: str) -> None:
    machine = nvml_machine("h200-nvl")
    create = [str(machine.folder / "nvmlctl"), "--dir", str(machine.directory / "new"), "create", "--gpu", "h200-nvl", "--gpu", model]
    refused = machine.run(create)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"nvmlctl: Partly inferred, so only with --inferred: {model} (")
    assert refused.stderr.count("\n") == 1
    assert not (machine.directory / "new").exists()
    made = machine.run([*create, "--inferred"])
    assert (made.returncode, made.stdout) == (0, "")
    assert made.stderr.startswith(f"nvmlctl: partly inferred: {model} (")
    listed = {model["model"]: model["inferred"] for model in json.loads(machine.ctl("models", "--json"))}
    assert f"({listed[model]})" in refused.stderr and f"({listed[model]})" in made.stderr


def test_only_these_models_have_inferred_numbers(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h200-nvl")
    assert {model["model"] for model in json.loads(machine.ctl("models", "--json")) if model["inferred"]} == set(INFERRED)
    marked = [line.split()[0] for line in machine.ctl("models").splitlines() if " inferred: " in line]
    assert sorted(marked) == sorted(INFERRED)


def test_a_gpu_that_cannot_be_partitioned(nvml_machine: Callable[..., Machine]) -> None:
    assert nvml_machine("l40s").python("""
        gpu = device()
        count = ctypes.c_uint()
        result = [nvml.nvmlDeviceGetName(gpu), nvml.nvmlDeviceGetCudaComputeCapability(gpu)] + [
            code_of(nvml.nvmlDeviceGetMigMode, gpu), code_of(nvml.nvmlDeviceSetMigMode, gpu, 1), code_of(nvml.nvmlDeviceGetMaxMigDeviceCount, gpu),
            code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 0), code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 18),
            code_of(nvml.nvmlDeviceGetGpuInstancePossiblePlacements, gpu, 19, None, ctypes.byref(count)),
            code_of(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity, gpu, 19), code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, 19),
            code_of(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0), nvml.nvmlDeviceGetFieldValues(gpu, [184])[0].value.uiVal,
        ]
    """) == ["NVIDIA L40S", [8, 9], 3, 3, 3, 3, 2, 3, 3, 3, 3, 0]


def test_gpus_are_found_by_every_address(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2", "rtx-pro-6000-server", options=("--minors", "5,1,0", "--seed", "here"))
    found = machine.python("""
        result = []
        for index in range(nvml.nvmlDeviceGetCount()):
            gpu = device(index)
            again = [nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(gpu)),
                     nvml.nvmlDeviceGetHandleByPciBusId(nvml.nvmlDeviceGetPciInfo(gpu).busId),
                     nvml.nvmlDeviceGetHandleByPciBusId(nvml.nvmlDeviceGetPciInfo(gpu).busIdLegacy)]
            result.append([nvml.nvmlDeviceGetMinorNumber(gpu), [nvml.nvmlDeviceGetIndex(handle) for handle in again]])
        result.append([code_of(nvml.nvmlDeviceGetHandleByUUID, uuid) for uuid in ("", "GPU-0", "MIG-0")])
        result.append(code_of(nvml.nvmlDeviceGetHandleByIndex, 3))
        result.append(code_of(nvml.nvmlDeviceGetHandleByPciBusId, "00000000:FF:00.0"))
    """)
    assert found == [[5, [0, 0, 0]], [1, [1, 1, 1]], [0, [2, 2, 2]], [2, 6, 6], 2, 6]


def test_uuids_follow_from_the_seed(nvml_machine: Callable[..., Machine]) -> None:
    def uuids(seed: str) -> list[str]:
        return [gpu["uuid"] for gpu in nvml_machine("h100-80gb-hbm3:2", options=("--seed", seed)).show()["gpus"]]

    first = uuids("a")
    assert first == uuids("a")
    assert len({*first, *uuids("b")}) == 4
