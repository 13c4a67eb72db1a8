# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A scenario through most of the library under AddressSanitizer and UndefinedBehaviorSanitizer."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.nvml.build import build
from tests.emulator.conftest import PRELUDE, Machine

SCENARIO = PRELUDE + """
nvml.nvmlInit()
for index in range(nvml.nvmlDeviceGetCount()):
    gpu = device(index)
    nvml.nvmlDeviceGetName(gpu), nvml.nvmlDeviceGetSerial(gpu), nvml.nvmlDeviceGetPciInfo(gpu), nvml.nvmlDeviceGetMemoryInfo(gpu)
    nvml.nvmlDeviceGetFieldValues(gpu, [3, 4, 5, 6, 142, 143, 144, 145, 184, 199, 230, 9999])
    for version in (2, 3):
        fabric = getattr(nvml, f"c_nvmlGpuFabricInfo_v{version}_t")()
        code_of(nvml.nvmlDeviceGetGpuFabricInfoV, gpu, ctypes.byref(fabric))
    nvml.nvmlDeviceGetEccMode(gpu), nvml.nvmlDeviceGetRemappedRows(gpu), nvml.nvmlDeviceGetRowRemapperHistogram(gpu), nvml.nvmlDeviceGetRepairStatus(gpu)
    nvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(nvml.c_nvmlEccSramErrorStatus_v1_t()))
    for link in range(19):
        code_of(nvml.nvmlDeviceGetNvLinkState, gpu, link), code_of(nvml.nvmlDeviceGetNvLinkRemotePciInfo, gpu, link)
    for call in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses, nvml.nvmlDeviceGetMPSComputeRunningProcesses):
        assert len(call(gpu)) == (index == 0)
    nvml.nvmlDeviceSetMigMode(gpu, 1)
    for enum in range(18):
        try:
            info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, enum, version=2)
        except nvml.NVMLError:
            continue
        for size in range(9):
            places = (nvml.c_nvmlGpuInstancePlacement_t * size)()
            code_of(nvml.nvmlDeviceGetGpuInstancePossiblePlacements, gpu, info.id, places, ctypes.byref(ctypes.c_uint(size)))
        made = []
        while code_of(lambda: made.append(nvml.nvmlDeviceCreateGpuInstance(gpu, info.id))) == 0:
            for compute in range(9):
                code_of(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, made[-1], compute, 0)
                places = (nvml.c_nvmlGpuInstancePlacement_t * 1)()
                code_of(nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements, made[-1], compute, places, ctypes.byref(ctypes.c_uint(1)))
                code_of(nvml.nvmlGpuInstanceCreateComputeInstance, made[-1], compute)
        assert nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, info.id) == 0
        for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
            try:
                mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)
            except nvml.NVMLError_NotFound:
                continue
            nvml.nvmlDeviceGetName(mig), nvml.nvmlDeviceGetAttributes(mig), nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(mig))
        for instance in made:
            for number in range(8):
                code_of(lambda: nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(instance, number)))
            nvml.nvmlGpuInstanceDestroy(instance)
            assert code_of(nvml.nvmlGpuInstanceGetInfo, instance) == 6
    events = nvml.nvmlEventSetCreate()
    nvml.nvmlDeviceRegisterEvents(gpu, nvml.nvmlDeviceGetSupportedEventTypes(gpu), events)
    code_of(nvml.nvmlDeviceSetMigMode, gpu, 0)
    code_of(nvml.nvmlEventSetWait, events, 1)
    assert code_of(nvml.nvmlEventSetWait, events, 1) == 10
    nvml.nvmlEventSetFree(events)
nvml.nvmlShutdown()
print("done")
"""


@pytest.fixture(scope="module")
def sanitized_folder() -> Path:
    return build(asan=True)


def test_no_memory_error(nvml_machine: Callable[..., Machine], sanitized_folder: Path) -> None:
    machine = nvml_machine("h100-80gb-hbm3", "a100-80gb-pcie", "rtx-pro-6000-server")
    machine.ctl("boot")
    for kind in ("compute", "graphics", "mps"):
        machine.ctl("client", "add", "0", "--pid", "10", "--kind", kind, "--blocks", "nothing")
    for gpu in ("0", "1"):
        machine.ctl("set", gpu, "nvlink=1")
    machine.ctl("set", "0", "fabric-state=completed")
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetUUID", "--nth", "3", "--delay", "0.01")
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetSerial", "--nth", "9", "--code", "UNKNOWN")
    runtime = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    done = machine.run(
        ["setarch", "--addr-no-randomize", sys.executable, "-c", SCENARIO],  # some kernels' randomness is too much for AddressSanitizer
        LD_LIBRARY_PATH=str(sanitized_folder),
        LD_PRELOAD=" ".join(runtime),
        ASAN_OPTIONS="detect_leaks=0:halt_on_error=1",
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "done\n"
    assert "runtime error" not in done.stderr
