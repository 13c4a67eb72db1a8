# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Injected faults: calls that fail, kill their caller or are slow, before or after their effect; and snapshots of the machine."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from sandbox.nvml.control.library import Emulator
from tests.emulator.conftest import PRELUDE, Machine

MODEL = "h100-80gb-hbm3"
ENABLE = "result = code_of(nvml.nvmlDeviceSetMigMode, device(), 1)"
CREATE = "result = code_of(nvml.nvmlDeviceCreateGpuInstanceWithPlacement, device(), 9, placement(4, 4))"


def add(machine: Machine, *arguments: str) -> None:
    machine.ctl("fault", "add", *arguments)


def faults(machine: Machine) -> list[tuple[int, int]]:
    """(seen, hits) of each fault."""
    return [(fault["seen"], fault["hits"]) for fault in json.loads(machine.ctl("fault", "list", "--json"))]


def open_machine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """The machine for use in this process; Emulator sets a variable, which is set back at the end of the test."""
    monkeypatch.setenv("NVML_EMULATOR_DIR", str(machine.directory))
    return Emulator(str(machine.directory), str(machine.folder / "libnvidia-ml.so.1"))


def run(machine: Machine, code: str) -> subprocess.CompletedProcess[str]:
    """Run a snippet that may be killed."""
    return machine.run([sys.executable, "-c", PRELUDE + "nvml.nvmlInit()\n" + code])


@pytest.fixture
def machine(nvml_machine: Callable[..., Machine]) -> Machine:
    made = nvml_machine(MODEL)
    made.ctl("mode", "0", "on")
    made.mark()
    return made


@pytest.mark.parametrize("code", ["IN_USE", "NVML_ERROR_IN_USE", "19"])
@pytest.mark.parametrize(("when", "layout"), [("before", []), ("after", [("3g.40gb", 4)])])
def test_a_call_fails(machine: Machine, when: str, code: str, layout: list[tuple[str, int]]) -> None:
    add(machine, "--symbol", "nvmlDeviceCreateGpuInstanceWithPlacement", "--code", code, "--when", when)
    assert machine.python(CREATE) == 19
    assert machine.layout() == layout
    assert [(call["rc"], call["fault"]) for call in machine.calls()] == [(19, {"id": 1, "when": when, "action": "code"})]


@pytest.mark.parametrize(("when", "layout"), [("before", []), ("after", [("3g.40gb", 4)])])
def test_a_caller_is_killed(machine: Machine, when: str, layout: list[tuple[str, int]]) -> None:
    add(machine, "--symbol", "nvmlDeviceCreateGpuInstanceWithPlacement", "--kill", "--when", when)
    assert run(machine, CREATE).returncode == -signal.SIGKILL
    assert machine.layout() == layout
    assert [call["fault"]["action"] for call in machine.calls()] == ["kill"]
    assert machine.python("result = code_of(nvml.nvmlDeviceGetUUID, device())") == 0  # the dead process holds no lock


@pytest.mark.parametrize(("when", "meanwhile"), [("before", 0), ("after", 1)])
def test_a_call_is_slow_and_others_are_not(machine: Machine, monkeypatch: pytest.MonkeyPatch, when: str, meanwhile: int) -> None:
    emulator = open_machine(machine, monkeypatch)
    seconds = 2.0
    emulator.add_fault("nvmlDeviceCreateGpuInstanceWithPlacement", delay=seconds, when="after" if when == "after" else "before")
    code = f"{PRELUDE}nvml.nvmlInit()\nimport time\nbegin = time.monotonic()\n{CREATE}\nprint(result, time.monotonic() - begin)"
    slow = subprocess.Popen([sys.executable, "-c", code], env=machine.env, stdout=subprocess.PIPE, text=True)
    while emulator.faults()[0]["seen"] == 0:
        time.sleep(0.005)
    assert len(emulator.show()["gpus"][0]["instances"]) == meanwhile, "read without waiting for the slow call"
    result, took = slow.communicate(timeout=60)[0].split()
    assert result == "0" and float(took) >= seconds
    assert machine.layout() == [("3g.40gb", 4)]


def test_calls_are_counted_over_processes_and_from_the_injection_on(machine: Machine) -> None:
    assert machine.python(ENABLE) == 0
    add(machine, "--symbol", "nvmlDeviceSetMigMode", "--code", "UNKNOWN", "--nth", "3", "--times", "2")
    codes = [machine.python(ENABLE) for _ in range(2)]
    codes += machine.python("result = [code_of(nvml.nvmlDeviceSetMigMode, device(), 1) for _ in range(3)]")
    assert codes == [0, 0, 999, 999, 0]
    assert faults(machine) == [(5, 2)]
    machine.ctl("fault", "clear")
    assert faults(machine) == []
    add(machine, "--symbol", "nvmlDeviceSetMigMode", "--code", "15", "--times", "0")
    assert machine.python("result = [code_of(nvml.nvmlDeviceSetMigMode, device(), 1) for _ in range(3)]") == [15] * 3
    machine.ctl("fault", "clear")
    add(machine, "--symbol", "nvmlDeviceSetMigMode", "--code", "15", "--nth", "2", "--times", "0")
    assert machine.python("result = [code_of(nvml.nvmlDeviceSetMigMode, device(), 1) for _ in range(3)]") == [0, 15, 15]


def test_counting_is_exact_with_several_processes(machine: Machine) -> None:
    """Queries hold a shared lock only, so their counts meet; all begin when the test closes the pipe."""
    calls, workers = 20_000, 4
    add(machine, "--symbol", "nvmlDeviceGetIndex", "--code", "TIMEOUT", "--nth", str(calls), "--times", str(2 * calls))
    code = f"""{PRELUDE}
nvml.nvmlInit()
gpu, index, call = device(), ctypes.byref(ctypes.c_uint()), nvml.nvmlLib.nvmlDeviceGetIndex
print("ready", flush=True)
sys.stdin.read()
print(sum(call(gpu, index) == 10 for _ in range({calls})))
"""
    reader, writer = os.pipe()
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=machine.env, stdin=reader, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    os.close(reader)
    assert [process.stdout.readline() for process in processes if process.stdout] == ["ready\n"] * workers
    os.close(writer)
    assert sum(int(process.communicate(timeout=120)[0]) for process in processes) == 2 * calls
    assert faults(machine) == [(workers * calls, 2 * calls)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (("--symbol", "*"), [15, 0, 0, 0, 0]),
        (("--symbol", "*", "--nth", "2"), [0, 15, 0, 0, 0]),
        (("--symbol", "*", "--mutating"), [0, 0, 15, 0, 0]),
        (("--symbol", "*", "--reading", "--nth", "5"), [0, 0, 0, 15, 0]),
        (("--symbol", "*", "--gpu", "1"), [0, 0, 0, 15, 0]),
        (("--symbol", "nvmlDeviceGetHandleByIndex"), [0, 15, 0, 0, 0]),
        (("--symbol", "nvmlDeviceGetHandleByIndex_v2"), [0, 15, 0, 0, 0]),
    ],
)
def test_which_calls_match(nvml_machine: Callable[..., Machine], filters: tuple[str, ...], expected: list[int]) -> None:
    machine = nvml_machine(f"{MODEL}:2")
    gpus = [gpu["uuid"] for gpu in machine.show()["gpus"]]
    add(machine, *filters, "--code", "GPU_IS_LOST")
    # the initialisation and three calls on no GPU, then one that changes GPU 0, and two that read GPU 1
    assert machine.python(f"""
        result = [code_of(nvml.nvmlInit)]
        if result == [15]:
            nvml.nvmlInit()
        handles = []
        result.append(code_of(lambda: handles.append(device(1))))
        gpus = [nvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in {gpus}]
        result.append(code_of(nvml.nvmlDeviceSetMigMode, gpus[0], 0))
        result += [code_of(nvml.nvmlDeviceGetName, gpus[1]), code_of(nvml.nvmlDeviceGetSerial, gpus[1])]
    """, init=False) == expected


def test_a_failed_initialisation_leaves_the_library_uninitialised(machine: Machine) -> None:
    add(machine, "--symbol", "nvmlInitWithFlags", "--code", "DRIVER_NOT_LOADED")
    assert machine.python("result = [code_of(nvml.nvmlInit), code_of(nvml.nvmlDeviceGetCount), code_of(nvml.nvmlInit)]", init=False) == [9, 1, 0]


def test_a_delay_and_an_error_may_meet(machine: Machine) -> None:
    add(machine, "--symbol", "nvmlDeviceGetName", "--delay", "0.3")
    add(machine, "--symbol", "nvmlDeviceGetName", "--code", "TIMEOUT", "--when", "after")
    code, seconds = machine.python("""
        import time
        begin = time.monotonic()
        result = [code_of(nvml.nvmlDeviceGetName, device()), time.monotonic() - begin]
    """)
    assert code == 10
    assert seconds >= 0.3


def test_a_reset_by_nvidia_smi_may_fail_too(machine: Machine) -> None:
    machine.ctl("repartition", "0", "3g.40gb@4")
    add(machine, "--symbol", "nvmlEmulatorResetDevice", "--code", "UNKNOWN")
    refused = machine.run([str(machine.folder / "nvidia-smi"), "-r"])
    assert (refused.returncode, refused.stdout.splitlines()[1]) == (255, "  GPU 00000000:19:00.0: Unknown Error")
    assert machine.layout() == [("3g.40gb", 4)]
    assert machine.run([str(machine.folder / "nvidia-smi"), "-r"]).returncode == 0


def test_faults_outlast_a_reboot(machine: Machine) -> None:
    add(machine, "--symbol", "nvmlDeviceSetMigMode", "--code", "UNKNOWN")
    machine.ctl("boot")
    assert machine.python(ENABLE) == 999


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--symbol", "*", "--code", "SUCCESS"), "SUCCESS is not an NVML error code"),
        (("--symbol", "*", "--code", "0"), "0 is not an NVML error code"),
        (("--symbol", "*", "--kill", "--nth", "0"), "counted from 1"),
        (("--symbol", "nvmlDeviceGetHandle", "--kill"), "The emulator has no function nvmlDeviceGetHandle."),
        (("--symbol", 'a"b', "--kill"), "The emulator has no function"),
        (("--symbol", "*", "--kill", "--gpu", "4"), "There is no GPU 4"),
        (("--symbol", "*", "--delay", "-1"), "from 0 to 4294967295"),
    ],
)
def test_refused_faults(machine: Machine, arguments: tuple[str, ...], words: str) -> None:
    done = machine.run([str(machine.folder / "nvmlctl"), "fault", "add", *arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert faults(machine) == []


def test_there_is_a_limit(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = open_machine(machine, monkeypatch)
    for _ in range(16):
        emulator.add_fault(kill=True, nth=1000)
    done = machine.run([str(machine.folder / "nvmlctl"), "fault", "add", "--symbol", "*", "--kill"])
    assert "There are 16 faults already" in done.stderr


def test_the_list_reads_well(machine: Machine) -> None:
    add(machine, "--symbol", "*", "--mutating", "--gpu", "0", "--nth", "2", "--times", "3", "--code", "IN_USE", "--when", "after")
    add(machine, "--symbol", "nvmlDeviceGetName", "--delay", "1.5", "--times", "0")
    assert machine.ctl("fault", "list").splitlines() == [
        "1: mutating call 2 of * on GPU 0 and the 2 after it fails with code 19 after its effect; 0 seen, 0 hit",
        "2: call 1 of nvmlDeviceGetName and every later one takes 1500 ms more before its effect; 0 seen, 0 hit",
    ]


def test_a_snapshot_is_the_whole_machine(machine: Machine, tmp_path: Any) -> None:
    machine.ctl("repartition", "0", "3g.40gb@4,1g.10gb@0")
    before = machine.show()
    machine.ctl("save", str(tmp_path / "snapshot"))
    add(machine, "--symbol", "nvmlDeviceGetName", "--code", "UNKNOWN", "--nth", "9")
    machine.ctl("mode", "0", "off")
    machine.ctl("boot")
    machine.ctl("restore", str(tmp_path / "snapshot"))
    assert machine.show() == before
    assert faults(machine) == [(0, 0)]
    (tmp_path / "snapshot").write_bytes(b"something else")
    done = machine.run([str(machine.folder / "nvmlctl"), "restore", str(tmp_path / "snapshot")])
    assert (done.returncode, done.stderr) == (2, "nvmlctl: That is no snapshot of this version of the emulator.\n")


def test_handles_stay_stale_over_a_restore(machine: Machine, tmp_path: Any) -> None:
    """An instance made after the snapshot and one made after the restore have the same ids, but are not the same instance."""
    machine.ctl("save", str(tmp_path / "snapshot"))
    assert machine.python(f"""
        import subprocess
        gpu = device()
        first = nvml.nvmlDeviceCreateGpuInstance(gpu, 9)
        subprocess.run([{str(machine.folder / "nvmlctl")!r}, "restore", {str(tmp_path / "snapshot")!r}], check=True)
        result = [code_of(nvml.nvmlGpuInstanceGetInfo, first)]
        second = nvml.nvmlDeviceCreateGpuInstance(gpu, 9)
        result += [code_of(nvml.nvmlGpuInstanceGetInfo, first), code_of(nvml.nvmlGpuInstanceGetInfo, second)]
    """) == [6, 6, 0]
