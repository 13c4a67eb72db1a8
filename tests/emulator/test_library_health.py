# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Health of a GPU as NVML tells it, GPUs that are lost, virtual machines, and activation statuses of MIG mode."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine

HOPPER, AMPERE, BLACKWELL = "h100-80gb-hbm3", "a100-80gb-pcie", "rtx-pro-6000-server"
NOT_SUPPORTED, NO_PERMISSION, LOST, RESET_REQUIRED, IN_USE, NOT_READY = 3, 4, 15, 16, 19, 27
SET_MODE = "activation = nvml.nvmlDeviceSetMigMode(device(), %d)\nresult = [activation, *nvml.nvmlDeviceGetMigMode(device())]"
FIELDS = """
def fields(*numbers):
    values = nvml.nvmlDeviceGetFieldValues(device(), list(numbers))
    return [(v.value.ullVal if v.valueType == 3 else v.value.uiVal) if v.nvmlReturn == 0 else -v.nvmlReturn for v in values]
"""


def tell(machine: Machine, *settings: str, gpu: str = "0") -> None:
    machine.ctl("set", gpu, *settings)


def test_a_new_gpu_is_healthy(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    assert machine.python(FIELDS + """
gpu = device()
sram, repair = nvml.c_nvmlEccSramErrorStatus_v1_t(), nvml.nvmlDeviceGetRepairStatus(gpu)
nvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(sram))
histogram = nvml.nvmlDeviceGetRowRemapperHistogram(gpu)
result = {
    "ecc": nvml.nvmlDeviceGetEccMode(gpu), "rows": nvml.nvmlDeviceGetRemappedRows(gpu), "repair": repair, "threshold": sram.bThresholdExceeded,
    "reasons": nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu), "virtualization": nvml.nvmlDeviceGetVirtualizationMode(gpu),
    "persistence": nvml.nvmlDeviceGetPersistenceMode(gpu), "fields": fields(3, 4, 5, 6, 142, 143, 144, 145, 184, 199, 230, 31),
    "spare": [histogram.high, histogram.partial, histogram.low, histogram.none], "most": histogram.max > 0,
}
""") == {
        "ecc": [1, 1], "rows": [0, 0, 0, 0], "repair": [0, 0], "threshold": 0, "reasons": 0, "virtualization": 0, "persistence": 0,
        "fields": [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, -NOT_SUPPORTED], "spare": [0, 0, 0, 0], "most": True,
    }


def test_memory_errors(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    tell(machine, "dram-corrected-volatile=1", "dram-uncorrected-volatile=2", "dram-corrected-aggregate=30", "dram-uncorrected-aggregate=40",
         "sram-corrected-volatile=100", "sram-uncorrected-volatile=200", "sram-corrected-aggregate=3000", "sram-uncorrected-aggregate=4000",
         "sram-threshold=on")
    read = FIELDS + """
gpu = device()
sram = nvml.c_nvmlEccSramErrorStatus_v1_t()
nvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(sram))
pairs = [(kind, counter) for counter in (0, 1) for kind in (0, 1)]
result = {
    "total": [nvml.nvmlDeviceGetTotalEccErrors(gpu, *pair) for pair in pairs],
    "dram": [nvml.nvmlDeviceGetMemoryErrorCounter(gpu, *pair, 2) for pair in pairs],
    "sram": [nvml.nvmlDeviceGetMemoryErrorCounter(gpu, *pair, 7) for pair in pairs],
    "others": [code_of(nvml.nvmlDeviceGetMemoryErrorCounter, gpu, 0, 0, place) for place in (0, 1, 3, 4, 5, 6, 8)],
    "status": [sram.volatileCor, sram.volatileUncParity, sram.aggregateCor, sram.aggregateUncParity, sram.bThresholdExceeded],
    "fields": fields(3, 4, 5, 6),
}
"""
    assert machine.python(read) == {
        "total": [101, 202, 3030, 4040], "dram": [1, 2, 30, 40], "sram": [100, 200, 3000, 4000], "others": [NOT_SUPPORTED] * 6 + [2],
        "status": [100, 200, 3000, 4000, 1], "fields": [101, 202, 3030, 4040],
    }
    machine.ctl("reset", "0")
    after: Any = machine.python(read)
    assert after["total"] == [0, 0, 3030, 4040], "volatile counts start anew"


def test_without_ecc_nothing_is_counted(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    tell(machine, "ecc=off")
    assert machine.python(FIELDS + """
gpu = device()
status = nvml.c_nvmlEccSramErrorStatus_v1_t()
result = [
    nvml.nvmlDeviceGetEccMode(gpu), code_of(nvml.nvmlDeviceGetTotalEccErrors, gpu, 1, 0),
    code_of(nvml.nvmlDeviceGetMemoryErrorCounter, gpu, 1, 0, 2), code_of(nvml.nvmlDeviceGetSramEccErrorStatus, gpu, ctypes.byref(status)),
    fields(4, 144),
]
""") == [[0, 1], NOT_SUPPORTED, NOT_SUPPORTED, NOT_SUPPORTED, [-NOT_SUPPORTED, 0]]
    machine.ctl("reset", "0")
    assert machine.python("result = nvml.nvmlDeviceGetEccMode(device())") == [1, 1], "the pending mode takes effect at the reset"


@pytest.mark.parametrize("model", [HOPPER, AMPERE, BLACKWELL])
def test_row_remapping_is_not_told_while_instances_exist(nvml_machine: Callable[..., Machine], model: str) -> None:
    machine = nvml_machine(model)
    tell(machine, "remap-correctable=1", "remap-uncorrectable=2", "remap-pending=on", "remap-failed=on", "banks-high=5", "banks-none=3")
    read = FIELDS + """
gpu = device()
try:
    histogram = nvml.nvmlDeviceGetRowRemapperHistogram(gpu)
    result = [nvml.nvmlDeviceGetRemappedRows(gpu), fields(142, 143, 144, 145), [histogram.high, histogram.none]]
except nvml.NVMLError as error:
    result = [error.value, code_of(nvml.nvmlDeviceGetRemappedRows, gpu), fields(144, 230)]
"""
    assert machine.python(read) == [[1, 2, 1, 1], [1, 2, 1, 1], [5, 3]]
    machine.ctl("mode", "0", "on")
    assert machine.python(read)[0] == [1, 2, 1, 1]
    machine.ctl("repartition", "0", "2g.48gb" if model == BLACKWELL else "3g.40gb")
    assert machine.python(read) == [NOT_SUPPORTED, NOT_SUPPORTED, [-NOT_SUPPORTED, 0]]
    machine.ctl("reset", "0")
    assert machine.python(read)[0] == [1, 2, 0, 1], "pending ones are done at the reset, failed ones stay"


def test_what_a_reset_settles(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(f"{HOPPER}:2")
    tell(machine, "recovery-action=gpu_reset", "channel-repair-pending=on", "tpc-repair-pending=on")
    tell(machine, "recovery-action=node_reboot", gpu="1")
    read = FIELDS + "result = [*fields(230), *nvml.nvmlDeviceGetRepairStatus(device())]"
    assert machine.python(read) == [1, 1, 1]
    machine.ctl("reset", "0")
    machine.ctl("reset", "1")
    assert machine.python(read) == [0, 0, 0]
    assert machine.show()["gpus"][1]["knobs"]["recovery-action"] == 2
    tell(machine, "recovery-action=9")
    assert machine.python(read) == [9, 0, 0], "actions of later drivers can be told, too"


@pytest.mark.parametrize(("version", "summary"), [(2, None), (3, 2)])
def test_fabric(nvml_machine: Callable[..., Machine], version: int, summary: int | None) -> None:
    machine = nvml_machine(HOPPER, AMPERE)
    read = f"""
        info = nvml.c_nvmlGpuFabricInfo_v{version}_t()
        result = [nvml.nvmlLib.nvmlDeviceGetGpuFabricInfoV(device(%d), ctypes.byref(info))]
        result += [info.state, info.status, info.cliqueId, info.healthMask, any(info.clusterUuid), getattr(info, "healthSummary", None)]
    """
    assert machine.python(read % 0) == [0, 0, 0, 0, 0, False, summary and 0]
    tell(machine, "fabric-state=completed", "fabric-status=999", "fabric-health-mask=0x4155", "fabric-summary=unhealthy", "fabric-clique=7")
    assert machine.python(read % 0) == [0, 3, 999, 7, 0x4155, True, summary]
    assert machine.python(read % 1)[0] == NOT_SUPPORTED
    code = f"info = nvml.c_nvmlGpuFabricInfo_v{version}_t()\ninfo.version += 1\n"
    assert machine.python(code + "result = nvml.nvmlLib.nvmlDeviceGetGpuFabricInfoV(device(), ctypes.byref(info))") == 25


def test_clocks_and_persistence(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    tell(machine, "clock-reasons=0x48", "persistence=on")
    assert machine.python("""
        gpu = device()
        result = [
            nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu), nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
            nvml.nvmlDeviceGetPersistenceMode(gpu),
        ]
    """) == [0x48, 0x48, 1]


def test_field_199_tells_whether_profiles_need_the_mode(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(AMPERE)
    assert machine.python(FIELDS + "result = fields(184, 199)") == [0, 1]
    tell(machine, "profiles-need-mode=on")
    assert machine.python(FIELDS + "result = fields(184, 199)") == [0, 0]


@pytest.mark.parametrize(("knob", "code"), [("lost", LOST), ("not-ready", NOT_READY)])
def test_a_gpu_that_does_not_answer(nvml_machine: Callable[..., Machine], knob: str, code: int) -> None:
    machine = nvml_machine(f"{HOPPER}:2")
    machine.ctl("repartition", "0", "3g.40gb")
    answers = machine.python(f"""
        import subprocess
        gpus = [device(0), device(1)]
        instance = nvml.nvmlDeviceGetGpuInstanceById(gpus[0], 1)
        mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpus[0], 0)
        subprocess.run([{str(machine.folder / "nvmlctl")!r}, "set", "0", "{knob}=on"], check=True)
        calls = [nvml.nvmlDeviceGetUUID, nvml.nvmlDeviceGetMigMode, lambda gpu: nvml.nvmlDeviceSetMigMode(gpu, 0), nvml.nvmlDeviceGetMinorNumber]
        result = [[code_of(call, gpu) for call in calls] for gpu in gpus]
        result += [code_of(nvml.nvmlGpuInstanceGetInfo, instance), code_of(nvml.nvmlDeviceGetName, mig), code_of(device, 0), nvml.nvmlDeviceGetCount()]
    """)
    assert answers == [[code] * 4, [0] * 4, code, code, LOST if knob == "lost" else 0, 2]
    assert machine.layout() != []
    listed = machine.run([str(machine.folder / "nvidia-smi"), "-L"]).stdout
    assert ("Unable to determine the device handle for GPU0: GPU is lost" in listed) == (knob == "lost")


def test_a_vgpu_guest_changes_nothing(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    machine.ctl("repartition", "0", "3g.40gb@4")
    tell(machine, "virtualization=vgpu")
    assert machine.python("""
        gpu = device()
        instance = nvml.nvmlDeviceGetGpuInstanceById(gpu, 1)
        compute = nvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
        result = [
            nvml.nvmlDeviceGetVirtualizationMode(gpu), code_of(nvml.nvmlDeviceGetMigMode, gpu), code_of(nvml.nvmlDeviceSetMigMode, gpu, 0),
            code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, 9), code_of(nvml.nvmlGpuInstanceCreateComputeInstance, instance, 2),
            code_of(nvml.nvmlComputeInstanceDestroy, compute), code_of(nvml.nvmlGpuInstanceDestroy, instance),
        ]
    """) == [2, *[NOT_SUPPORTED] * 6]
    assert machine.python("result = code_of(nvml.nvmlDeviceSetMigMode, device(), 0)", NVML_EMULATOR_UID="1000") == NO_PERMISSION
    tell(machine, "virtualization=passthrough")
    assert machine.python("result = [nvml.nvmlDeviceGetVirtualizationMode(device()), code_of(nvml.nvmlDeviceGetMigMode, device())]") == [1, 0]


@pytest.mark.parametrize(
    ("model", "status", "code", "pending"),
    [
        (AMPERE, "IN_USE", IN_USE, 1), (AMPERE, "RESET_REQUIRED", RESET_REQUIRED, 1), (AMPERE, "NOT_SUPPORTED", NOT_SUPPORTED, 1),
        (HOPPER, "IN_USE", IN_USE, 0), (HOPPER, "RESET_REQUIRED", RESET_REQUIRED, 1), (HOPPER, "NOT_SUPPORTED", NOT_SUPPORTED, 0),
    ],
)
def test_activation_statuses(nvml_machine: Callable[..., Machine], model: str, status: str, code: int, pending: int) -> None:
    machine = nvml_machine(model)
    tell(machine, f"activation={status}")
    assert machine.python(SET_MODE % 1) == [code, 0, pending]
    tell(machine, "activation=none")
    assert machine.python(SET_MODE % 1) == [0, 1, 1]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("volume=11", "the known ones are held=off|on, lost=off|on"),
        ("fabric-state=lost", "it is fabric-state=not_supported|not_started|in_progress|completed"),
        ("remap-pending=2", "it is remap-pending=off|on"),
        ("remap-correctable=-1", "it is remap-correctable=N"),
        ("clock-reasons", "it is clock-reasons=N"),
        ("fabric-summary=256", "256 is too high for fabric-summary"),
    ],
)
def test_refused_settings(nvml_machine: Callable[..., Machine], setting: str, words: str) -> None:
    machine = nvml_machine(HOPPER)
    done = machine.run([str(machine.folder / "nvmlctl"), "set", "0", setting])
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_show_names_what_is_set(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    tell(machine, "recovery-action=drain_p2p", "remap-correctable=3", "activation=IN_USE", "held=on")
    assert machine.ctl("show").splitlines()[1].endswith(", MIG off, activation=IN_USE, remap-correctable=3, recovery-action=drain_p2p, 1 clients")
