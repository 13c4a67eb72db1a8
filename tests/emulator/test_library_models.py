# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Each model's facts and profile table, through nvidia-ml-py, against numbers written down here a second time."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine

ONES = [0, 1, 2, 3, 4, 5, 6]
MODELS: dict[str, dict[str, Any]] = {
    "a100-80gb-pcie": {
        "name": "NVIDIA A100 80GB PCIe", "memory_mib": 81920, "pci": 0x20B510DE, "architecture": 7, "capability": [8, 0],
        "resetless": 0, "slots": 7,
        "engines": {"1g.10gb": [1, 0, 0, 0, 0], "1g.10gb+me": [1, 1, 0, 1, 1], "1g.20gb": [1, 1, 0, 0, 0], "2g.20gb": [2, 1, 0, 0, 0],
                    "3g.40gb": [3, 2, 0, 0, 0], "4g.40gb": [4, 2, 0, 0, 0], "7g.80gb": [7, 5, 0, 1, 1]},
        "multiprocessors": [14, 14, 14, 28, 42, 56, 98],
        "memory": [9728, 9728, 19968, 19968, 40192, 40192, 80384],
    },
    "h100-80gb-hbm3": {
        "name": "NVIDIA H100 80GB HBM3", "memory_mib": 81559, "pci": 0x233010DE, "architecture": 9, "capability": [9, 0],
        "resetless": 1, "slots": 7,
        "engines": {"1g.10gb": [1, 1, 0, 1, 0], "1g.10gb+me": [1, 1, 0, 1, 1], "1g.20gb": [1, 1, 0, 1, 0], "2g.20gb": [2, 2, 0, 2, 0],
                    "3g.40gb": [3, 3, 0, 3, 0], "4g.40gb": [4, 4, 0, 4, 0], "7g.80gb": [8, 7, 0, 7, 1]},
        "multiprocessors": [16, 16, 26, 32, 60, 64, 132],
        "memory": [9984, 9984, 20096, 20096, 40448, 40448, 81152],
    },
    "h200-nvl": {
        "name": "NVIDIA H200 NVL", "memory_mib": 143771, "pci": 0x233B10DE, "architecture": 9, "capability": [9, 0],
        "resetless": 1, "slots": 7,
        "engines": {"1g.18gb": [1, 1, 0, 1, 0], "1g.18gb+me": [1, 1, 0, 1, 1], "1g.35gb": [1, 1, 0, 1, 0], "2g.35gb": [2, 2, 0, 2, 0],
                    "3g.71gb": [3, 3, 0, 3, 0], "4g.71gb": [4, 4, 0, 4, 0], "7g.141gb": [8, 7, 0, 7, 1]},
        "multiprocessors": [16, 16, 26, 32, 60, 64, 132],
        "memory": [16384, 16384, 33280, 33280, 71168, 71168, 143360],
    },
}
#: enum, id, instance count, compute slices, placements {start: size} of the parts with seven compute and eight memory slices.
SEVEN_SLICES = [
    (0, 19, 7, 1, ONES, 1), (7, 20, 1, 1, ONES, 1), (9, 15, 4, 1, [0, 2, 4, 6], 2), (1, 14, 3, 2, [0, 2, 4], 2),
    (2, 9, 2, 3, [0, 4], 4), (3, 5, 1, 4, [0], 4), (4, 0, 1, 7, [0], 8),
]
QUARTERS, HALVES = [0, 3, 6, 9], [0, 6]
#: name, enum, id, instance count, compute slices, starts, size, SMs, engines, MiB
RTX_PRO_6000 = [
    ("1g.24gb", 0, 14, 4, 1, QUARTERS, 3, 46, [1, 1, 1, 1, 0], 24192),
    ("1g.24gb+me", 7, 21, 1, 1, QUARTERS, 3, 46, [1, 1, 1, 1, 1], 24192),
    ("1g.24gb+gfx", 10, 47, 4, 1, QUARTERS, 3, 46, [1, 1, 1, 1, 0], 24192),
    ("1g.24gb+me.all", 15, 65, 1, 1, QUARTERS, 3, 46, [1, 4, 4, 4, 1], 24192),
    ("1g.24gb-me", 13, 67, 4, 1, QUARTERS, 3, 46, [1, 0, 0, 0, 0], 24192),
    ("2g.48gb", 1, 5, 2, 2, HALVES, 6, 94, [2, 2, 2, 2, 0], 48512),
    ("2g.48gb+gfx", 11, 35, 2, 2, HALVES, 6, 94, [2, 2, 2, 2, 0], 48512),
    ("2g.48gb+me.all", 16, 64, 1, 2, HALVES, 6, 94, [2, 4, 4, 4, 1], 48512),
    ("2g.48gb-me", 14, 66, 2, 2, HALVES, 6, 94, [2, 0, 0, 0, 0], 48512),
    ("4g.96gb", 3, 0, 1, 4, [0], 12, 188, [4, 4, 4, 4, 1], 97280),
    ("4g.96gb+gfx", 12, 32, 1, 4, [0], 12, 188, [4, 4, 4, 4, 1], 97280),
]
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


@pytest.mark.parametrize("model", [*MODELS, "rtx-pro-6000-server"])
def test_plain_facts(nvml_machine: Callable[..., Machine], model: str) -> None:
    expected = MODELS.get(model) or {
        "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "memory_mib": 97887, "pci": 0x2BB510DE, "architecture": 10,
        "capability": [12, 0], "resetless": 1, "slots": 4,
    }
    facts = nvml_machine(model).python("""
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
    assert facts["name"] == expected["name"]
    assert facts["memory"] == facts["memory_v2"] == expected["memory_mib"] << 20
    assert (facts["pci"], facts["bus"]) == (expected["pci"], "00000000:19:00.0")
    assert (facts["architecture"], facts["brand"], facts["capability"]) == (expected["architecture"], 14, expected["capability"])
    assert (facts["resetless"], facts["query"], facts["unknown_field"]) == (expected["resetless"], 1, 3)
    assert (facts["virtualization"], facts["persistence"], facts["processes"], facts["module"]) == (0, 0, 0, 3)
    assert facts["slots"] == [0, expected["slots"]]
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


@pytest.mark.parametrize("model", sorted(MODELS))
def test_profiles_of_seven_slice_parts(nvml_machine: Callable[..., Machine], model: str) -> None:
    expected = MODELS[model]
    read = nvml_machine(model).python(READ_PROFILES)
    assert read["end"] == 18
    by_id = {profile["id"]: profile for profile in read["profiles"]}
    assert len(by_id) == len(read["profiles"]) == 7
    for number, ((enum, identity, count, slices, starts, size), name) in enumerate(zip(SEVEN_SLICES, expected["engines"], strict=True)):
        profile = by_id[identity]
        assert profile["same"]
        assert (profile["enum"], profile["name"], profile["count"], profile["slices"]) == (enum, f"MIG {name}", count, slices)
        assert (profile["starts"], profile["sizes"]) == (starts, [size])
        assert profile["multiprocessors"] == expected["multiprocessors"][number]
        assert profile["engines"] == expected["engines"][name]
        assert profile["memory"] == expected["memory"][number]
        assert plugin_name(profile, expected["memory_mib"]) == name


def test_profiles_of_rtx_pro_6000(nvml_machine: Callable[..., Machine]) -> None:
    read = nvml_machine("rtx-pro-6000-server").python(READ_PROFILES)
    assert read["end"] == 18
    by_name = {profile["name"]: profile for profile in read["profiles"]}
    assert len(by_name) == len(RTX_PRO_6000)
    for name, enum, identity, count, slices, starts, size, multiprocessors, engines, memory in RTX_PRO_6000:
        profile = by_name[f"MIG {name}"]
        assert profile["same"]
        assert (profile["enum"], profile["id"], profile["count"], profile["slices"]) == (enum, identity, count, slices)
        assert (profile["starts"], profile["sizes"], profile["memory"]) == (starts, [size], memory)
        assert (profile["multiprocessors"], profile["engines"]) == (multiprocessors, engines)
        assert plugin_name(profile, 97887) == name


def plugin_name(profile: dict[str, Any], total_mib: int) -> str:
    """The profile's name as NVIDIA's libraries compute it from enum and memory, rounding half away from zero."""
    suffix = {7: "+me", 8: "+me", 10: "+gfx", 11: "+gfx", 12: "+gfx", 13: "-me", 14: "-me", 15: "+me.all", 16: "+me.all"}
    share = math.ceil(8 * profile["memory"] / total_mib) / 8
    gigabytes = math.floor(share * math.ceil(total_mib / 1024) + 0.5)
    return f"{profile['slices']}g.{gigabytes}gb{suffix.get(profile['enum'], '')}"


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
