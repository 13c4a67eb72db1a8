# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clients: in which process lists they are, what they block, and when they end."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine

HOPPER, AMPERE = "h100-80gb-hbm3", "a100-80gb-pcie"
IN_USE = 19
NO_INSTANCE = 0xFFFFFFFF
#: Process lists of GPU 0 and of its MIG devices by GPU instance id: [pid, MiB or None, GPU instance, compute instance].
LISTS = """
def processes(device):
    calls = {
        "compute": nvml.nvmlDeviceGetComputeRunningProcesses, "graphics": nvml.nvmlDeviceGetGraphicsRunningProcesses,
        "mps": nvml.nvmlDeviceGetMPSComputeRunningProcesses,
    }
    return {
        kind: [[p.pid, p.usedGpuMemory and p.usedGpuMemory >> 20, p.gpuInstanceId, p.computeInstanceId] for p in call(device)]
        for kind, call in calls.items()
    }
gpu = device()
result = {"gpu": processes(gpu)}
for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
    try:
        mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)
    except nvml.NVMLError_NotFound:
        continue
    result[f"{nvml.nvmlDeviceGetGpuInstanceId(mig)}/{nvml.nvmlDeviceGetComputeInstanceId(mig)}"] = processes(mig)
"""
SET_MODE = "activation = nvml.nvmlDeviceSetMigMode(device(), %d)\nresult = [activation, *nvml.nvmlDeviceGetMigMode(device())]"
DESTROY_COMPUTE = """
gpu_instance = nvml.nvmlDeviceGetGpuInstanceById(device(), %d)
result = code_of(nvml.nvmlComputeInstanceDestroy, nvml.nvmlGpuInstanceGetComputeInstanceById(gpu_instance, 0))
"""
DESTROY = "result = code_of(nvml.nvmlGpuInstanceDestroy, nvml.nvmlDeviceGetGpuInstanceById(device(), %d))"
CREATE = "result = code_of(nvml.nvmlDeviceCreateGpuInstance, device(), 9)"


def clients(machine: Machine) -> list[dict[str, Any]]:
    return list(json.loads(machine.ctl("client", "list", "--json")))


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


@pytest.fixture
def machine(nvml_machine: Callable[..., Machine]) -> Machine:
    """An H100 with 3g.40gb at 0 (id 2) and at 4 (id 1)."""
    made = nvml_machine(HOPPER)
    made.ctl("repartition", "0", "3g.40gb@0,3g.40gb@4")
    return made


def test_process_lists(machine: Machine) -> None:
    machine.ctl("client", "add", "0", "--pid", "10", "--gpu-instance", "1", "--compute-instance", "0", "--memory-mib", "300")
    machine.ctl("client", "add", "0", "--pid", "11", "--gpu-instance", "2")
    machine.ctl("client", "add", "0", "--pid", "12", "--kind", "graphics", "--memory-mib", "7")
    machine.ctl("client", "add", "0", "--pid", "13", "--kind", "mps", "--gpu-instance", "2", "--compute-instance", "0")
    machine.ctl("client", "add", "0", "--pid", "14", "--kind", "unlisted")
    empty: list[Any] = []
    assert machine.python(LISTS) == {
        "gpu": {
            "compute": [[10, 300, 1, 0], [11, None, 2, NO_INSTANCE]],
            "graphics": [[12, 7, NO_INSTANCE, NO_INSTANCE]],
            "mps": [[13, None, 2, 0]],
        },
        "1/0": {"compute": [[10, 300, 1, 0]], "graphics": empty, "mps": empty},
        "2/0": {"compute": [[11, None, 2, NO_INSTANCE]], "graphics": empty, "mps": [[13, None, 2, 0]]},
    }
    used, used_by_instance = machine.python("""
        def used(device):
            memory = nvml.nvmlDeviceGetMemoryInfo(device, version=nvml.nvmlMemory_v2)
            assert memory.total == memory.used + memory.free + memory.reserved
            return memory.used >> 20
        mig = [nvml.nvmlDeviceGetMigDeviceHandleByIndex(device(), slot) for slot in (0, 1)]
        result = [used(device()), {nvml.nvmlDeviceGetGpuInstanceId(one): used(one) for one in mig}]
    """)
    assert (used, used_by_instance) == (307, {"1": 300, "2": 0})


def test_a_list_that_is_too_short_tells_the_length(machine: Machine) -> None:
    for pid in (10, 11, 12):
        machine.ctl("client", "add", "0", "--pid", str(pid))
    assert machine.python("""
        count, room = ctypes.c_uint(2), (nvml.c_nvmlProcessInfo_v2_t * 3)()
        codes = [nvml.nvmlLib.nvmlDeviceGetComputeRunningProcesses_v3(device(), ctypes.byref(count), room), count.value]
        codes += [nvml.nvmlLib.nvmlDeviceGetComputeRunningProcesses_v3(device(), ctypes.byref(count), room), room[2].pid]
        result = codes
    """) == [7, 3, 0, 12]


@pytest.mark.parametrize("kind", ["compute", "graphics", "mps", "unlisted"])
def test_every_kind_blocks_as_it_is_told(nvml_machine: Callable[..., Machine], kind: str) -> None:
    machine = nvml_machine(HOPPER)
    machine.ctl("client", "add", "0", "--pid", "10", "--kind", kind, "--blocks", "mode")
    assert machine.python(SET_MODE % 1) == [IN_USE, 0, 0]
    machine.ctl("client", "remove", "1")
    machine.ctl("client", "add", "0", "--pid", "10", "--kind", kind, "--blocks", "reset,destroy,create")
    assert machine.python(SET_MODE % 1) == [0, 1, 1]
    assert machine.python(CREATE) == IN_USE
    assert machine.run([str(machine.folder / "nvidia-smi"), "-r"]).returncode == 255
    machine.ctl("client", "remove", "all")
    machine.ctl("client", "add", "0", "--pid", "10", "--kind", kind, "--blocks", "nothing")
    assert machine.python(CREATE) == 0
    assert machine.python(DESTROY % 1) == 0
    assert machine.run([str(machine.folder / "nvidia-smi"), "-r"]).returncode == 0


def test_only_the_first_instance_needs_an_idle_gpu(machine: Machine) -> None:
    machine.ctl("destroy", "0", "2")
    machine.ctl("client", "add", "0", "--pid", "10", "--blocks", "create")
    assert machine.python(CREATE) == 0


def test_a_client_blocks_the_destruction_of_what_it_uses(machine: Machine) -> None:
    machine.ctl("client", "add", "0", "--pid", "10", "--gpu-instance", "1", "--compute-instance", "0")
    assert machine.python(DESTROY_COMPUTE % 1) == IN_USE
    assert machine.python(DESTROY_COMPUTE % 2) == 0
    assert machine.python(DESTROY % 2) == 0
    machine.ctl("client", "remove", "1")
    machine.ctl("client", "add", "0", "--pid", "10", "--gpu-instance", "1")
    assert machine.python(DESTROY_COMPUTE % 1) == 0, "it holds the GPU instance, not its compute instance"
    assert machine.python(DESTROY % 1) == IN_USE
    machine.ctl("client", "remove", "2")
    machine.ctl("client", "add", "0", "--pid", "10")
    assert machine.python(DESTROY % 1) == IN_USE
    machine.ctl("client", "remove", "3")
    assert machine.python(DESTROY % 1) == 0


def test_clients_keep_ampere_from_its_reset(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(AMPERE)
    machine.ctl("client", "add", "0", "--pid", "10", "--blocks", "reset")
    assert machine.python(SET_MODE % 1) == [IN_USE, 0, 1]
    machine.ctl("set", "0", "in-use-form=return")
    assert machine.python("result = code_of(nvml.nvmlDeviceSetMigMode, device(), 1)") == IN_USE


def test_clients_block_only_their_gpu(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(f"{HOPPER}:2")
    machine.ctl("client", "add", "1", "--pid", "10")
    assert machine.python(SET_MODE % 1) == [0, 1, 1]


def test_a_followed_client_ends_with_its_process(machine: Machine) -> None:
    process = sleeper()
    try:
        machine.ctl("client", "add", "0", "--pid", str(process.pid), "--follow", "--gpu-instance", "1")
        machine.ctl("client", "add", "0", "--pid", "10", "--gpu-instance", "2")
        assert [row[0] for row in machine.python(LISTS)["gpu"]["compute"]] == [process.pid, 10]
        assert machine.python(DESTROY_COMPUTE % 1) == 0
        assert machine.python(DESTROY % 1) == IN_USE
    finally:
        process.kill()
    assert machine.python(DESTROY % 1) == 0, "a killed process that nobody has waited for yet is gone, too"
    process.wait()
    assert [row[0] for row in machine.python(LISTS)["gpu"]["compute"]] == [10]
    assert [client["pid"] for client in clients(machine)] == [10]


def test_a_client_ends_with_the_instance_that_it_uses(machine: Machine) -> None:
    machine.ctl("client", "add", "0", "--pid", "10", "--gpu-instance", "1", "--blocks", "mode")
    machine.ctl("destroy", "0", "1")
    assert machine.python(CREATE) == 0
    assert [instance["gpu_instance_id"] for instance in machine.show()["gpus"][0]["instances"]] == [1, 2]
    assert clients(machine) == []


def test_client_run_uses_the_gpu_while_it_runs(machine: Machine) -> None:
    command = [str(machine.folder / "nvmlctl"), "client", "run", "0", "--kind", "graphics"]
    for end in (signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen(command, env=machine.env, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        number = int(process.stdout.readline())
        assert [(client["id"], client["pid"], client["kind"]) for client in clients(machine)] == [(number, process.pid, "graphics")]
        process.send_signal(end)
        assert process.wait(timeout=60) == (0 if end == signal.SIGTERM else -end)
        assert clients(machine) == []


def test_a_boot_ends_processes_but_not_what_starts_with_every_boot(machine: Machine) -> None:
    machine.ctl("client", "add", "0", "--pid", "10")
    machine.ctl("set", "0", "held=on")
    machine.ctl("boot")
    assert [(client["pid"], client["kind"], client["blocks"]) for client in clients(machine)] == [
        (0, "unlisted", ["mode", "reset", "destroy", "create"]),
    ]
    machine.ctl("set", "0", "held=off")
    assert clients(machine) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a new pid namespace needs root")
def test_a_container_does_not_judge_pids_of_its_host(machine: Machine) -> None:
    process = sleeper()
    try:
        machine.ctl("client", "add", "0", "--pid", str(process.pid), "--follow")
        listed = machine.run(["unshare", "--pid", "--fork", "--mount-proc", str(machine.folder / "nvmlctl"), "client", "list"])
        if listed.returncode != 0 and "unshare" in listed.stderr:
            pytest.skip("namespaces cannot be made here")
        assert f"pid {process.pid} (compute) uses GPU 0; blocks mode, reset, destroy, create" in listed.stdout
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "0"), "only an unlisted client may be without pid"),
        (("add", "0", "--pid", "10", "--gpu-instance", "5"), "GPU 0 has no such instance"),
        (("add", "0", "--pid", "10", "--gpu-instance", "1", "--compute-instance", "3"), "GPU 0 has no such instance"),
        (("add", "0", "--pid", "10", "--compute-instance", "0"), "a compute instance needs its GPU instance"),
        (("add", "0", "--pid", "10", "--blocks", "everything"), "cannot block everything: it may block mode, reset, destroy, create"),
        (("add", "0", "--pid", "4194305", "--follow"), "there is no process 4194305"),
        (("add", "7", "--pid", "10"), "There is no GPU 7"),
        (("remove", "9"), "There is no client 9"),
        (("remove", "x"), "neither the id of a client nor 'all'"),
    ],
)
def test_refusals(machine: Machine, arguments: tuple[str, ...], words: str) -> None:
    done = machine.run([str(machine.folder / "nvmlctl"), "client", *arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert clients(machine) == []
