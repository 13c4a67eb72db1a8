# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The binary interface: struct sizes against nvidia-ml-py, version words, exported names."""
from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from tests.emulator.conftest import Machine

HEADER = Path(__file__).parents[2] / "sandbox" / "nvml" / "src" / "nvml_abi.h"

#: Our type, and the class of nvidia-ml-py with the same layout.
SAME_LAYOUT = {
    "nvmlPciInfo_t": pynvml.nvmlPciInfo_t,
    "nvmlMemory_t": pynvml.c_nvmlMemory_t,
    "nvmlMemory_v2_t": pynvml.c_nvmlMemory_v2_t,
    "nvmlDeviceAddressingMode_t": pynvml.c_nvmlDeviceAddressingMode_t,
    "nvmlFieldValue_t": pynvml.c_nvmlFieldValue_t,
    "nvmlProcessInfo_t": pynvml.c_nvmlProcessInfo_v3_t,
    "nvmlEventData_t": pynvml.c_nvmlEventData_t,
    "nvmlPlacement_t": pynvml.c_nvmlGpuInstancePlacement_t,
    "nvmlGpuInstanceProfileInfo_t": pynvml.c_nvmlGpuInstanceProfileInfo_t,
    "nvmlGpuInstanceProfileInfo_v2_t": pynvml.c_nvmlGpuInstanceProfileInfo_v2_t,
    "nvmlGpuInstanceInfo_t": pynvml.c_nvmlGpuInstanceInfo_t,
    "nvmlComputeInstanceProfileInfo_t": pynvml.c_nvmlComputeInstanceProfileInfo_t,
    "nvmlComputeInstanceProfileInfo_v2_t": pynvml.c_nvmlComputeInstanceProfileInfo_v2_t,
    "nvmlComputeInstanceInfo_t": pynvml.c_nvmlComputeInstanceInfo_t,
    "nvmlDeviceAttributes_t": pynvml.c_nvmlDeviceAttributes,
}
#: Types that nvidia-ml-py does not have; their sizes are asserted against the documented version words.
NOT_IN_PYNVML = {"nvmlGpuInstanceProfileInfo_v3_t": 0x98, "nvmlComputeInstanceProfileInfo_v3_t": 0x8C}


def asserted_sizes() -> dict[str, int]:
    return {name: int(size) for name, size in re.findall(r"^ABI_SIZE\((\w+), (\d+)\);", HEADER.read_text(), re.MULTILINE)}


def test_every_struct_of_the_header_is_compared() -> None:
    assert set(asserted_sizes()) == set(SAME_LAYOUT) | set(NOT_IN_PYNVML)


@pytest.mark.parametrize("name", sorted(SAME_LAYOUT))
def test_size_equals_nvidia_ml_py(name: str) -> None:
    assert asserted_sizes()[name] == ctypes.sizeof(SAME_LAYOUT[name])


@pytest.mark.parametrize("name", sorted(NOT_IN_PYNVML))
def test_size_equals_the_version_word(name: str) -> None:
    assert asserted_sizes()[name] == NOT_IN_PYNVML[name]


def test_only_nvml_and_control_symbols_are_exported(emulator_folder: Path) -> None:
    listing = subprocess.run(["nm", "-D", "--defined-only", str(emulator_folder / "libnvidia-ml.so.1")], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in listing.stdout.splitlines()}
    assert names and all(name.startswith("nvml") for name in names)


@pytest.mark.parametrize("symbol", ["nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlDeviceGetGpuInstanceProfileInfoByIdV"])
@pytest.mark.parametrize(("version", "code"), [(0x02000098, 0), (0x03000098, 0), (0x01000098, 25), (0x02000030, 25)])
def test_version_words_of_gpu_instance_profiles(nvml_machine: Callable[..., Machine], symbol: str, version: int, code: int) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    assert machine.python(f"""
        buffer = (ctypes.c_ubyte * 152)()
        ctypes.cast(buffer, ctypes.POINTER(ctypes.c_uint))[0] = {version}
        result = nvml.nvmlLib.{symbol}(device(), 0, buffer)
    """) == code


@pytest.mark.parametrize(("version", "code"), [(0x02000088, 0), (0x0300008C, 0), (0x01000088, 25)])
def test_version_words_of_compute_instance_profiles(nvml_machine: Callable[..., Machine], version: int, code: int) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("repartition", "0", "1g.10gb@0")
    assert machine.python(f"""
        buffer = (ctypes.c_ubyte * 140)()
        ctypes.cast(buffer, ctypes.POINTER(ctypes.c_uint))[0] = {version}
        instance = nvml.nvmlDeviceGetGpuInstanceById(device(), 11)
        result = nvml.nvmlLib.nvmlGpuInstanceGetComputeInstanceProfileInfoV(instance, 0, 0, buffer)
    """) == code


def test_memory_of_a_wrong_version_is_refused(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    assert machine.python("result = code_of(nvml.nvmlDeviceGetMemoryInfo, device(), 0x01000028)") == 25


def test_version_3_carries_capabilities(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("rtx-pro-6000-server")
    assert machine.python("""
        result = []
        for profile in (0, 10):
            buffer = (ctypes.c_ubyte * 152)()
            ctypes.cast(buffer, ctypes.POINTER(ctypes.c_uint))[0] = 0x03000098
            assert nvml.nvmlLib.nvmlDeviceGetGpuInstanceProfileInfoV(device(), profile, buffer) == 0
            name = bytes(buffer[48:144]).split(b"\\0")[0].decode()
            result.append([name, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_uint))[36]])
    """) == [["MIG 1g.24gb", 0], ["MIG 1g.24gb+gfx", 2]]
