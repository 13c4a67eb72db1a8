# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The call log."""
from __future__ import annotations

from collections.abc import Callable

from tests.emulator.conftest import Machine


def test_changes_are_logged_with_their_results(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.python("nvml.nvmlDeviceSetMigMode(device(), 1)")
    machine.mark()
    machine.python("""
        gpu = device()
        nvml.nvmlDeviceGetName(gpu)
        instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, placement(4, 4))
        compute = nvml.nvmlGpuInstanceCreateComputeInstance(instance, 2)
        code_of(nvml.nvmlGpuInstanceDestroy, instance)
        nvml.nvmlDeviceSetMigMode(gpu, 0)
        nvml.nvmlComputeInstanceDestroy(compute)
    """)
    calls = machine.calls()
    assert [(call["symbol"], call["args"], call["rc"]) for call in calls] == [
        ("nvmlDeviceCreateGpuInstanceWithPlacement", {"profile_id": 9, "start": 4, "size": 4}, 0),
        ("nvmlGpuInstanceCreateComputeInstance", {"gpu_instance": 1, "profile_id": 2}, 0),
        ("nvmlGpuInstanceDestroy", {"gpu_instance": 1}, 19),
        ("nvmlDeviceSetMigMode", {"mode": 0}, 0),
        ("nvmlComputeInstanceDestroy", {"gpu_instance": 1, "compute_instance": 0}, 0),
    ]
    assert calls[3]["activation"] == 19
    assert {call["gpu"] for call in calls} == {machine.show()["gpus"][0]["uuid"]}
    assert all(call["comm"].startswith("python") and call["pid"] > 0 and call["time"] > 0 for call in calls)


def test_queries_are_logged_only_if_asked(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.mark()
    machine.python("nvml.nvmlDeviceGetUUID(device())")
    assert machine.calls(mutating=False) == []
    machine.ctl("set", "0", "log=all")
    machine.python("nvml.nvmlDeviceGetUUID(device())")
    assert [call["symbol"] for call in machine.calls(mutating=False)] == [
        "nvmlInitWithFlags", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
    ]
    assert machine.calls() == []


def test_the_log_is_bounded(nvml_machine: Callable[..., Machine]) -> None:
    """A full log becomes the old one; reading goes over both."""
    machine = nvml_machine("h100-80gb-hbm3")
    machine.mark()
    machine.python("nvml.nvmlDeviceSetMigMode(device(), 1)")
    log = machine.directory / "calls.jsonl"
    line = '{"time": 0, "marker": "' + "x" * 1000 + '"}\n'
    with open(log, "a") as stream:
        stream.write(line * (16 * 1024 * 1024 // len(line) + 1))
    machine.mark()
    machine.python("nvml.nvmlDeviceSetMigMode(device(), 0)")
    assert log.stat().st_size < 4096
    assert (machine.directory / "calls.jsonl.1").stat().st_size >= 16 * 1024 * 1024
    assert [call["args"] for call in machine.calls()] == [{"mode": 0}]
