# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Event sets: XIDs, changes of the MIG layout, memory errors."""
from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.emulator.conftest import PRELUDE, Machine

MODEL = "h100-80gb-hbm3"
SBE, DBE, XID, MIG_CHANGE = 1, 2, 8, 0x100
#: Registers for everything that is supported, says so, and prints what comes until nothing has come for a while.
LISTENER = PRELUDE + """
nvml.nvmlInit()
events = nvml.nvmlEventSetCreate()
for index in range(nvml.nvmlDeviceGetCount()):
    nvml.nvmlDeviceRegisterEvents(device(index), nvml.nvmlDeviceGetSupportedEventTypes(device(index)), events)
print("listening", flush=True)
found = []
for _ in range(int(sys.argv[1])):
    event = nvml.nvmlEventSetWait_v2(events, 60000)
    found.append([nvml.nvmlDeviceGetIndex(event.device), event.eventType, event.eventData, event.gpuInstanceId, event.computeInstanceId])
print(json.dumps(found))
"""
NO_INSTANCE = 0xFFFFFFFF


def listen(machine: Machine, count: int, act: Callable[[], None]) -> list[list[Any]]:
    """What a process that waits for so many events hears of an act: [GPU, type, data, GPU instance, compute instance]."""
    process = subprocess.Popen([sys.executable, "-c", LISTENER, str(count)], env=machine.env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "listening\n"
        act()
        output, _errors = process.communicate(timeout=90)
    finally:
        process.kill()
        process.wait()
    return list(json.loads(output))


def test_supported_events_decide_over_registration(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(MODEL)
    assert machine.python("""
        gpu, events = device(), nvml.nvmlEventSetCreate()
        supported = nvml.nvmlDeviceGetSupportedEventTypes(gpu)
        result = [supported, code_of(nvml.nvmlDeviceRegisterEvents, gpu, 8 | 0x4000, events), code_of(nvml.nvmlDeviceRegisterEvents, gpu, 8, events)]
    """) == [SBE | DBE | XID | MIG_CHANGE, 3, 0]


def test_an_xid_reaches_who_waits(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(f"{MODEL}:2")
    machine.ctl("xid", "1", "43")

    def act() -> None:
        machine.ctl("xid", "1", "79")
        machine.ctl("xid", "0", "94", "--gpu-instance", "2", "--compute-instance", "0")

    assert listen(machine, 2, act) == [[1, XID, 79, NO_INSTANCE, NO_INSTANCE], [0, XID, 94, 2, 0]], "earlier events are not delivered"


def test_waiting_ends_at_once_with_the_event(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(MODEL)
    posted = 0.0

    def act() -> None:
        nonlocal posted
        time.sleep(0.5)
        machine.ctl("xid", "0", "31")
        posted = time.monotonic()

    assert len(listen(machine, 1, act)) == 1
    assert time.monotonic() - posted < 30, "far less than the 60 s that it would have waited"


def test_mig_changes_and_memory_errors(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(f"{MODEL}:2")

    def act() -> None:
        machine.python("""
            gpu = device(1)
            nvml.nvmlDeviceSetMigMode(gpu, 1)
            nvml.nvmlDeviceSetMigMode(gpu, 1)
            instance = nvml.nvmlDeviceCreateGpuInstance(gpu, 9)
            nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceCreateComputeInstance(instance, 2))
            code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, 0)
        """)
        machine.ctl("set", "0", "dram-uncorrected-volatile=1")
        machine.ctl("set", "0", "sram-corrected-volatile=2")

    heard = [event[:2] for event in listen(machine, 6, act)]
    assert heard == [[1, MIG_CHANGE]] * 4 + [[0, DBE], [0, SBE]], "what changes nothing is no event"


def test_a_set_hears_only_what_it_registered_for(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(f"{MODEL}:2")
    assert machine.python(f"""
        import subprocess
        events, control = nvml.nvmlEventSetCreate(), {str(machine.folder / "nvmlctl")!r}
        nvml.nvmlDeviceRegisterEvents(device(0), {XID}, events)
        for arguments in (("mode", "0", "on"), ("xid", "1", "13"), ("xid", "0", "48")):
            subprocess.run([control, *arguments], check=True)
        first = nvml.nvmlEventSetWait_v2(events, 1000)
        result = [first.eventData, code_of(nvml.nvmlEventSetWait_v2, events, 100)]
    """) == [48, 10]


def test_a_lost_gpu_ends_the_wait(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(MODEL)
    process = subprocess.Popen([sys.executable, "-c", LISTENER, "1"], env=machine.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "listening\n"
        machine.ctl("set", "0", "lost=on")
        assert "NVMLError_GpuIsLost" in process.communicate(timeout=30)[1]
    finally:
        process.kill()
        process.wait()


def test_older_form_of_waiting_writes_no_instance_ids(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(MODEL)
    assert machine.python(f"""
        import subprocess
        events = nvml.nvmlEventSetCreate()
        nvml.nvmlDeviceRegisterEvents(device(), {XID}, events)
        subprocess.run([{str(machine.folder / "nvmlctl")!r}, "xid", "0", "48", "--gpu-instance", "1"], check=True)
        data = nvml.c_nvmlEventData_t(gpuInstanceId=77, computeInstanceId=78)
        code = nvml.nvmlLib.nvmlEventSetWait(events, ctypes.byref(data), 1000)
        result = [code, data.eventData, data.gpuInstanceId, data.computeInstanceId]
    """) == [0, 48, 77, 78]


def test_many_events_do_not_overrun(nvml_machine: Callable[..., Machine]) -> None:
    """A set that does not listen hears the last 64."""
    machine = nvml_machine(MODEL)
    heard = machine.python(f"""
        sys.path.insert(0, {str(machine.folder / "nvmlctl")!r})
        from control.library import Emulator
        events, emulator = nvml.nvmlEventSetCreate(), Emulator({str(machine.directory)!r}, {str(machine.folder / "libnvidia-ml.so.1")!r})
        nvml.nvmlDeviceRegisterEvents(device(), {XID}, events)
        for number in range(100):
            emulator.xid(0, number)
        result = [nvml.nvmlEventSetWait_v2(events, 100).eventData for _ in range(64)] + [code_of(nvml.nvmlEventSetWait_v2, events, 10)]
    """)
    assert heard == [*range(36, 100), 10]
