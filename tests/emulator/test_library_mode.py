# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""MIG mode, reset, driver reload and reboot, on Ampere and on later GPUs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine

AMPERE, HOPPER, BLACKWELL = "a100-80gb-pcie", "h100-80gb-hbm3", "rtx-pro-6000-server"
SET_MODE = """
activation = nvml.nvmlDeviceSetMigMode(device(), %d)
result = [activation, *nvml.nvmlDeviceGetMigMode(device())]
"""
IN_USE, RESET_REQUIRED = 19, 16


def mode(machine: Machine) -> list[int]:
    gpu = machine.show()["gpus"][0]
    return [gpu["mig_current"], gpu["mig_pending"]]


@pytest.mark.parametrize("model", [AMPERE, HOPPER, BLACKWELL])
def test_an_idle_gpu_switches_at_once(nvml_machine: Callable[..., Machine], model: str) -> None:
    machine = nvml_machine(model)
    assert machine.python(SET_MODE % 1) == [0, 1, 1]
    assert machine.python(SET_MODE % 1) == [0, 1, 1]
    assert machine.python(SET_MODE % 0) == [0, 0, 0]


@pytest.mark.parametrize(("model", "expected"), [(AMPERE, [IN_USE, 0, 1]), (HOPPER, [IN_USE, 0, 0])])
def test_a_held_gpu_does_not_switch(nvml_machine: Callable[..., Machine], model: str, expected: list[int]) -> None:
    machine = nvml_machine(model)
    machine.ctl("set", "0", "held=on")
    assert machine.python(SET_MODE % 1) == expected


def test_a_pending_mode_takes_effect_at_the_reset(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(AMPERE)
    machine.ctl("set", "0", "reset-refused=on")
    assert machine.python(SET_MODE % 1) == [RESET_REQUIRED, 0, 1]
    smi = [str(machine.folder / "nvidia-smi"), "-r", "-i", machine.show()["gpus"][0]["uuid"]]
    assert machine.run(smi).returncode == 255
    machine.ctl("set", "0", "reset-refused=off")
    assert machine.run(smi).stdout.splitlines() == ["GPU 00000000:19:00.0 was successfully reset.", "All done."]
    assert mode(machine) == [1, 1]


def test_asking_for_the_present_mode_takes_back_a_pending_one(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(AMPERE)
    machine.ctl("set", "0", "reset-refused=on")
    machine.python(SET_MODE % 1)
    assert machine.python(SET_MODE % 0) == [0, 0, 0]


@pytest.mark.parametrize(("model", "expected"), [(AMPERE, [1, 0]), (HOPPER, [1, 1])])
def test_instances_keep_the_mode_on(nvml_machine: Callable[..., Machine], model: str, expected: list[int]) -> None:
    machine = nvml_machine(model)
    machine.ctl("repartition", "0", "3g.40gb@4")
    assert machine.python(SET_MODE % 0) == [IN_USE, *expected]
    assert machine.layout() == [("3g.40gb", 4)]


@pytest.mark.parametrize("model", [AMPERE, HOPPER])
def test_in_use_may_come_as_return_code(nvml_machine: Callable[..., Machine], model: str) -> None:
    machine = nvml_machine(model)
    machine.ctl("repartition", "0", "3g.40gb@4")
    machine.ctl("set", "0", "in-use-form=return")
    assert machine.python("result = code_of(nvml.nvmlDeviceSetMigMode, device(), 0)") == IN_USE
    assert mode(machine) == [1, 1]


@pytest.mark.parametrize(("model", "kept"), [(AMPERE, 1), (HOPPER, 0), (BLACKWELL, 0)])
@pytest.mark.parametrize("event", ["boot", "reload"])
def test_what_a_boot_leaves(nvml_machine: Callable[..., Machine], model: str, kept: int, event: str) -> None:
    machine = nvml_machine(model)
    profile = "2g.48gb" if model == BLACKWELL else "3g.40gb"
    machine.ctl("repartition", "0", profile)
    machine.ctl(event)
    assert mode(machine) == [kept, kept]
    assert machine.layout() == []


@pytest.mark.parametrize("model", [AMPERE, HOPPER])
def test_a_reset_drops_instances_and_keeps_the_mode(nvml_machine: Callable[..., Machine], model: str) -> None:
    machine = nvml_machine(model)
    machine.ctl("repartition", "0", "3g.40gb,3g.40gb")
    machine.ctl("reset", "0")
    assert (mode(machine), machine.layout()) == ([1, 1], [])


def test_a_held_gpu_refuses_first_creation_destruction_and_reset(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(HOPPER)
    machine.ctl("mode", "0", "on")
    machine.ctl("set", "0", "held=on")
    create = "result = code_of(nvml.nvmlDeviceCreateGpuInstance, device(), 19)"
    assert machine.python(create) == IN_USE
    machine.ctl("set", "0", "held=off")
    assert machine.python(create) == 0
    machine.ctl("set", "0", "held=on")
    destroy: Any = machine.python("result = code_of(nvml.nvmlGpuInstanceDestroy, nvml.nvmlDeviceGetGpuInstanceById(device(), 9))")
    assert destroy == IN_USE
    assert machine.run([str(machine.folder / "nvidia-smi"), "-r"]).returncode == 255


def test_library_of_another_version_is_refused_until_the_module_is_reloaded(
    nvml_machine: Callable[..., Machine], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from sandbox.nvml.build import build

    newer = build(tmp_path_factory.mktemp("newer"), driver_version="600.10")
    machine = nvml_machine(HOPPER)
    other = {"LD_LIBRARY_PATH": str(newer)}
    start = "result = code_of(nvml.nvmlInit)"
    assert machine.python(start, init=False, **other) == 18
    assert machine.run([str(newer / "nvidia-smi"), "-L"], **other).returncode == 18
    assert machine.run([str(newer / "nvmlctl"), "reload"], **other).returncode == 0
    assert machine.python(start, init=False, **other) == 0
    assert machine.python(start, init=False) == 18
