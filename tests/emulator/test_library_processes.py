# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Several processes and threads on one machine, and processes that are killed."""
from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.emulator.conftest import PRELUDE, Machine

#: Creates and destroys instances at random for a while; prints how many of each succeeded.
CHURN = PRELUDE + """
import random, threading, time
nvml.nvmlInit()
gpu = device()
generator = random.Random(int(sys.argv[1]))
end = time.monotonic() + float(sys.argv[2])
made = gone = 0
while time.monotonic() < end:
    try:
        if generator.random() < 0.55:
            instance = nvml.nvmlDeviceCreateGpuInstance(gpu, generator.choice((19, 15, 14, 9)))
            made += 1
            info = nvml.nvmlGpuInstanceGetInfo(instance)
            nvml.nvmlGpuInstanceCreateComputeInstance(instance, {19: 0, 15: 0, 14: 1, 9: 2}[info.profileId])
        else:
            instance = nvml.nvmlDeviceGetGpuInstanceById(gpu, generator.randrange(15))
            code_of(lambda: nvml.nvmlComputeInstanceDestroy(nvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0)))
            nvml.nvmlGpuInstanceDestroy(instance)
            gone += 1
    except nvml.NVMLError as error:
        assert error.value in (6, 19, 23), error
print(json.dumps([made, gone]))
"""


def start(machine: Machine, seed: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHURN, str(seed), str(seconds)], env=machine.env, stdout=subprocess.PIPE, text=True)


def check_geometry(machine: Machine) -> list[dict[str, Any]]:
    """No slice is used twice, ids are unique, at most seven MIG devices with different indices. Returns the instances."""
    instances: list[dict[str, Any]] = machine.show()["gpus"][0]["instances"]
    slices = [slot for item in instances for slot in range(item["start"], item["start"] + item["size"])]
    assert len(slices) == len(set(slices)) and all(slot < 8 for slot in slices)
    indices = [compute["mig_index"] for item in instances for compute in item["compute_instances"]]
    assert len(indices) == len(set(indices)) and all(index < 7 for index in indices)
    return instances


def test_processes_do_not_disturb_each_other(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("mode", "0", "on")
    machine.mark()
    workers = [start(machine, seed, 1.5) for seed in range(4)]
    counts = []
    for worker in workers:
        output, _errors = worker.communicate(timeout=120)
        assert worker.returncode == 0
        counts.append(output)
    made = sum(int(text.strip("[]\n").split(",")[0]) for text in counts)
    gone = sum(int(text.strip("[]\n").split(",")[1]) for text in counts)
    assert made > 20
    assert len(check_geometry(machine)) == made - gone
    created = [call for call in machine.calls() if call["symbol"] == "nvmlDeviceCreateGpuInstance" and call["rc"] == 0]
    assert len(created) == made
    assert len({call["pid"] for call in created}) == len(workers)


def test_threads_share_the_library(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    assert machine.python("""
        import threading
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        codes = []
        def create():
            codes.append(code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, 19))
        threads = [threading.Thread(target=create) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        result = sorted(codes)
    """) == [0] * 7 + [23] * 9
    assert len(check_geometry(machine)) == 7


def test_forked_children_have_their_own_locks(nvml_machine: Callable[..., Machine]) -> None:
    """Four children, forked after the initialisation, fill the GPU at once: with a shared lock some of their changes would be lost, and
    more creations than slots succeed."""
    machine = nvml_machine("h100-80gb-hbm3")
    totals = machine.python("""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        result = []
        for _ in range(40):
            reader, writer = os.pipe()
            children = []
            for _ in range(4):
                child = os.fork()
                if child == 0:
                    os.close(writer)
                    os.read(reader, 1)
                    os._exit(sum(code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, 19) == 0 for _ in range(7)))
                children.append(child)
            os.close(reader)
            os.close(writer)
            result.append(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
            for number in range(7, 15):
                code_of(lambda: nvml.nvmlGpuInstanceDestroy(nvml.nvmlDeviceGetGpuInstanceById(gpu, number)))
    """)
    assert totals == [7] * 40


def test_a_killed_process_leaves_a_valid_machine(nvml_machine: Callable[..., Machine]) -> None:
    """kill -9 in the middle of changes, many times: the machine stays valid and unlocked, and every instance has its capability file."""
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("boot")
    machine.ctl("mode", "0", "on")
    generator = random.Random(7)
    killed = 0
    for seed in range(12):
        worker = start(machine, seed, 30)
        time.sleep(0.6 + generator.random() * 0.6)
        worker.send_signal(signal.SIGKILL)
        killed += worker.wait(timeout=60) == -signal.SIGKILL
        root = machine.directory.parent / "nvidia" / "capabilities" / "gpu0" / "mig"
        for item in check_geometry(machine):
            folder = root / f"gi{item['gpu_instance_id']}"
            assert (folder / "access").exists()
            assert all((folder / f"ci{compute['compute_instance_id']}" / "access").exists() for compute in item["compute_instances"])
    assert killed == 12
    assert any(call["rc"] == 0 for call in machine.calls())
    machine.ctl("repartition", "0", "7g.80gb")
    assert machine.layout() == [("7g.80gb", 0)]
