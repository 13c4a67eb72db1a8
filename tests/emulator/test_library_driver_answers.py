# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Answers in which drivers differ: the knobs for them."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.emulator.conftest import Machine

H100 = "h100-80gb-hbm3"
CODES = """
gpu = device()
def codes(call, *arguments):
    return [code_of(call, *arguments, version) for version in (1, 2)]
result = [codes(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 0)]
if nvml.nvmlDeviceGetMigMode(gpu)[0]:
    instance = nvml.nvmlDeviceGetGpuInstanceById(gpu, 2)
    result.append(codes(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, instance, 0, 0))
buffer = (ctypes.c_ubyte * 152)()
ctypes.cast(buffer, ctypes.POINTER(ctypes.c_uint))[0] = 0x09000098
result.append(nvml.nvmlLib.nvmlDeviceGetGpuInstanceProfileInfoV(gpu, 0, buffer))
"""


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        pytest.param([], [[0, 0], [0, 0], 25], id="current"),
        pytest.param(["bad-version=argument"], [[0, 0], [0, 0], 2], id="invalid argument for a version that is not known"),
        pytest.param(["names=off"], [[0, 25], [0, 25], 25], id="without names"),
        pytest.param(["names=off", "bad-version=argument"], [[0, 2], [0, 2], 2], id="without names, invalid argument"),
    ],
)
def test_struct_versions(nvml_machine: Callable[..., Machine], settings: list[str], codes: list[object]) -> None:
    machine = nvml_machine(H100)
    machine.ctl("repartition", "0", "3g.40gb@0")
    for setting in settings:
        machine.ctl("set", "0", setting)
    assert machine.python(CODES) == codes


def test_an_old_driver_knows_no_newer_profiles(nvml_machine: Callable[..., Machine]) -> None:
    """Ten enums are those of the R525 to R560 drivers: without the variants of RTX PRO."""
    machine = nvml_machine("rtx-pro-6000-server")
    machine.ctl("set", "0", "known-enums=10")
    assert machine.python("""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        count = ctypes.c_uint()
        handles = (nvml.c_nvmlGpuInstance_t * 4)()
        walk = [code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, enum) for enum in range(12)]
        by_id = [code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfoByIdV, gpu, profile) for profile in (21, 47)]
        others = [[
            code_of(nvml.nvmlDeviceGetGpuInstancePossiblePlacements, gpu, profile, None, ctypes.byref(count)),
            code_of(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity, gpu, profile),
            code_of(nvml.nvmlDeviceGetGpuInstances, gpu, profile, handles, ctypes.byref(count)),
            code_of(nvml.nvmlDeviceCreateGpuInstanceWithPlacement, gpu, profile, placement(3, 3)), code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, profile),
        ] for profile in (21, 47)]
        result = [walk, by_id, others]
    """) == [[0, 0, 3, 0, 3, 3, 3, 0, 3, 3, 2, 2], [0, 3], [[0, 0, 0, 0, 23], [2, 2, 2, 2, 2]]]


def test_instance_counts_may_be_wrong_while_placements_are_right(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("a30", options=("--inferred",))
    machine.ctl("set", "0", "instance-counts=wrong")
    assert machine.python("""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        count = ctypes.c_uint()
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, 14, None, ctypes.byref(count))
        made = [code_of(nvml.nvmlDeviceCreateGpuInstance, gpu, 14) for _ in range(5)]
        result = [nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, 0).instanceCount, count.value, made]
    """) == [1, 4, [0, 0, 0, 0, 23]]


def test_profiles_that_are_told_only_in_mig_mode(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(H100)
    machine.ctl("set", "0", "profiles-need-mode=on")
    assert machine.python("""
        gpu = device()
        count = ctypes.c_uint()
        def codes():
            return [
                code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 0, 1), code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 0, 2),
                code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfoByIdV, gpu, 19),
                code_of(nvml.nvmlDeviceGetGpuInstancePossiblePlacements, gpu, 19, None, ctypes.byref(count)),
                code_of(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 18, 1),
            ]
        off = codes()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        result = [off, codes(), nvml.nvmlDeviceGetFieldValues(gpu, [199])[0].value.uiVal]
    """) == [[3, 3, 3, 3, 2], [0, 0, 0, 0, 2], 0]


def test_uuids_may_be_new_at_each_creation(nvml_machine: Callable[..., Machine]) -> None:
    def uuids(machine: Machine) -> list[str]:
        machine.ctl("repartition", "0", "1g.10gb@0,3g.40gb@4")
        return [item["compute_instances"][0]["uuid"] for item in machine.show()["gpus"][0]["instances"]]

    machine = nvml_machine(H100)
    stable = uuids(machine)
    assert uuids(machine) == stable
    machine.ctl("set", "0", "uuid-mode=fresh")
    assert [item["compute_instances"][0]["uuid"] for item in machine.show()["gpus"][0]["instances"]] == stable, "the knob changes no existing device"
    fresh = uuids(machine)
    assert len({*stable, *fresh, *uuids(machine)}) == 6
    machine.ctl("set", "0", "uuid-mode=stable")
    assert uuids(machine) == stable


def test_the_same_uuid_may_come_back_with_another_shape(nvml_machine: Callable[..., Machine]) -> None:
    """The driver hashes GPU, instance id and engine, not the profile."""
    machine = nvml_machine(H100)
    found = []
    for profile in ("2g.20gb@0", "1g.20gb@0"):
        machine.ctl("repartition", "0", profile)
        found.append(machine.show()["gpus"][0]["instances"][0]["compute_instances"][0]["uuid"])
    assert found[0] == found[1]


@pytest.mark.parametrize("setting", ["known-enums=18", "names=maybe", "uuid-mode"])
def test_settings_that_are_none(nvml_machine: Callable[..., Machine], setting: str) -> None:
    machine = nvml_machine(H100)
    refused = machine.run([str(machine.folder / "nvmlctl"), "set", "0", setting])
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert set(machine.show()["gpus"][0]["mig_knobs"].values()) == {0}


def test_settings_are_shown(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(H100, "a100-80gb-pcie")
    machine.ctl("set", "1", "known-enums=7")
    machine.ctl("set", "1", "uuid-mode=fresh")
    lines = [line for line in machine.ctl("show").splitlines() if line.startswith("GPU ")]
    assert lines[0].endswith("MIG off") and lines[1].endswith("MIG off, known-enums=7, uuid-mode=fresh")
    assert machine.show()["gpus"][1]["mig_knobs"]["known-enums"] == 7
