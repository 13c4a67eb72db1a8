# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compute instances: which profiles a GPU instance offers, where they lie, what they are called."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine
from tests.emulator.listings import options

H100 = "h100-80gb-hbm3"
OFFERED = """
    gpu = device()
    nvml.nvmlDeviceSetMigMode(gpu, 1)
    instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, %d, placement(0, %d))
    result = []
    for number in range(9):
        try:
            info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, 0, version=2)
        except nvml.NVMLError_NotSupported:
            continue
        count = ctypes.c_uint(8)
        places = (nvml.c_nvmlComputeInstancePlacement_t * 8)()
        nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements(instance, number, places, ctypes.byref(count))
        old = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, 0, version=1)
        assert info.id == old.id == number and info.multiprocessorCount == old.multiprocessorCount
        assert info.instanceCount == count.value == nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(instance, number)
        assert {place.size for place in places[:count.value]} == {info.sliceCount}
        name = info.name if isinstance(info.name, str) else info.name.decode()
        result.append([info.id, name, [place.start for place in places[:count.value]], info.multiprocessorCount])
    assert code_of(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, instance, 9, 0) == 2
"""


@pytest.mark.parametrize(
    ("model", "profile", "size", "expected"),
    [
        pytest.param(H100, 19, 1, [[0, "1g.10gb", [0], 16]], id="H100 1g"),
        pytest.param(H100, 15, 2, [[0, "1g.20gb", [0], 16], [7, "1g.20gb", [0], 26]], id="H100 1g with double memory"),
        pytest.param(H100, 14, 2, [[0, "1c.2g.20gb", [0, 1], 16], [1, "2g.20gb", [0], 32], [7, "1c.2g.20gb", [0], 26]], id="H100 2g"),
        pytest.param(H100, 9, 4, [[0, "1c.3g.40gb", [0, 1, 2], 16], [1, "2c.3g.40gb", [0], 32], [2, "3g.40gb", [0], 60]], id="H100 3g"),
        pytest.param(H100, 5, 4, [[0, "1c.4g.40gb", [0, 1, 2, 3], 16], [1, "2c.4g.40gb", [0, 2], 32], [3, "4g.40gb", [0], 64]], id="H100 4g"),
        pytest.param(
            H100, 0, 8,
            [[0, "1c.7g.80gb", [0, 1, 2, 3, 4, 5, 6], 16], [1, "2c.7g.80gb", [0, 2, 4], 32], [2, "3c.7g.80gb", [0, 4], 60], [3, "4c.7g.80gb", [0], 64],
             [4, "7g.80gb", [0], 132]],
            id="H100 7g",
        ),
        pytest.param("h100-80gb-pcie", 14, 2, [[0, "1c.2g.20gb", [0, 1], 14], [1, "2g.20gb", [0], 30]], id="H100 PCIe 2g"),
        pytest.param("a100-40gb-sxm4", 15, 2, [[0, "1g.10gb", [0], 14]], id="A100 1g with double memory"),
        pytest.param("a100-40gb-sxm4", 9, 4, [[0, "1c.3g.20gb", [0, 1, 2], 14], [1, "2c.3g.20gb", [0], 28], [2, "3g.20gb", [0], 42]], id="A100 3g"),
        pytest.param("a30", 5, 2, [[0, "1c.2g.12gb", [0, 1], 14], [1, "2g.12gb", [0], 28]], id="A30 2g"),
        pytest.param("a30", 0, 4, [[0, "1c.4g.24gb", [0, 1, 2, 3], 14], [1, "2c.4g.24gb", [0, 2], 28], [3, "4g.24gb", [0], 56]], id="A30 4g"),
        pytest.param("rtx-pro-6000-server", 35, 6, [[0, "1c.2g.48gb+gfx", [0, 1], 46], [1, "2g.48gb+gfx", [0], 94]], id="RTX PRO 2g+gfx"),
    ],
)
def test_offered_profiles(nvml_machine: Callable[..., Machine], model: str, profile: int, size: int, expected: list[Any]) -> None:
    """[id, name, starts, SMs]. The counts are those that `nvidia-smi mig -lcip` prints; a board has been seen for most of these rows."""
    offered = nvml_machine(model, options=options(model)).python(OFFERED % (profile, size))
    assert offered == [[number, f"MIG {name}", starts, multiprocessors] for number, name, starts, multiprocessors in expected]


def test_the_second_seven_slice_profile_has_the_name_of_the_first(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine("a100-40gb-sxm4")
    machine.ctl("set", "0", "nvl-compute=on")
    assert machine.python(OFFERED % (0, 8))[-2:] == [[4, "MIG 7g.40gb", [0], 98], [8, "MIG 7g.40gb", [0], 98]]


CREATE = """
    gpu = device()
    nvml.nvmlDeviceSetMigMode(gpu, 1)
    instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, %d, placement(0, %d))
    def start(profile, at=None):
        try:
            if at is None:
                made = nvml.nvmlGpuInstanceCreateComputeInstance(instance, profile)
            else:
                made = nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement(instance, profile, placement(*at))
        except nvml.NVMLError as error:
            return -error.value
        return nvml.nvmlComputeInstanceGetInfo(made).placement.start
    result = %s
"""


@pytest.mark.parametrize(
    ("model", "instance", "calls", "starts"),
    [
        pytest.param("a100-40gb-sxm4", (0, 8), "start(0), start(1), start(2)", [0, 2, 4], id="1c, 2c and 3c in a 7g, as in the MIG user guide"),
        pytest.param("a100-40gb-sxm4", (9, 4), "start(0), start(0), start(0), start(0)", [0, 1, 2, -23], id="lowest first on A100"),
        pytest.param(H100, (0, 8), "start(0), start(0), start(0), start(0)", [6, 4, 5, 0], id="least harm first on H100"),
        pytest.param(H100, (0, 8), "start(3), start(2), start(0)", [0, 4, -23], id="4c and 3c share a 7g"),
        pytest.param(H100, (0, 8), "start(2), start(2), start(0)", [4, 0, -23], id="two 3c leave no room for 1c"),
        pytest.param(H100, (14, 2), "start(7), start(0), start(7)", [0, -23, -23], id="the wide 1c keeps the whole 2g"),
        pytest.param(H100, (14, 2), "start(0), start(7), start(0)", [0, -23, 1], id="no wide 1c beside another"),
        pytest.param(H100, (0, 8), "start(2, (3, 3)), start(1, (1, 2)), start(2, (4, 4)), start(0, (7, 1))", [-2] * 4, id="no such place"),
        pytest.param(H100, (0, 8), "start(0, (2, 1)), start(1, (2, 2)), start(2, (0, 3)), start(2, (4, 3))", [2, -23, -23, 4], id="taken place"),
        pytest.param(H100, (5, 4), "start(2), start(7), start(4), start(9)", [-3, -3, -3, -2], id="not offered"),
    ],
)
def test_places(nvml_machine: Callable[..., Machine], model: str, instance: tuple[int, int], calls: str, starts: list[int]) -> None:
    """Starts of the compute instances, or the error as a negative number."""
    assert nvml_machine(model).python(CREATE % (*instance, f"[{calls}]")) == starts


def test_nvmlctl_fills_an_instance_with_the_profile_of_the_most_sms(nvml_machine: Callable[..., Machine]) -> None:
    """As `nvidia-smi mig -C`, which an H100 and a GH200 answered with profile 7 in a 1g with double memory."""
    machine = nvml_machine(H100)
    machine.ctl("repartition", "0", "1g.20gb@0,1g.10gb@2,2g.20gb@4")
    made = {item["profile"]: item["compute_instances"][0]["profile_id"] for item in machine.show()["gpus"][0]["instances"]}
    assert made == {"1g.20gb": 7, "1g.10gb": 0, "2g.20gb": 1}
    assert sorted(machine.python("""
        result = []
        for index in range(3):
            mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device(), index)
            result.append([nvml.nvmlDeviceGetName(mig), nvml.nvmlDeviceGetAttributes(mig).multiprocessorCount])
    """)) == [["NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16], ["NVIDIA H100 80GB HBM3 MIG 1g.20gb", 26], ["NVIDIA H100 80GB HBM3 MIG 2g.20gb", 32]]


def test_compute_instance_placements_and_holes(nvml_machine: Callable[..., Machine]) -> None:
    seen = nvml_machine(H100).python("""
        gpu = device()
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 5, placement(0, 4))
        made = [nvml.nvmlGpuInstanceCreateComputeInstance(instance, 0) for _ in range(4)]
        full = code_of(nvml.nvmlGpuInstanceCreateComputeInstance, instance, 0)
        nvml.nvmlComputeInstanceDestroy(made[1])
        def slots():
            return [index for index in range(7) if code_of(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, index) == 0]
        holes = slots()
        again = nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement(instance, 0, placement(1, 1))
        info = nvml.nvmlComputeInstanceGetInfo(again)
        busy = code_of(nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement, instance, 0, placement(2, 1))
        result = {"full": full, "holes": holes, "again": [info.id, info.placement.start], "slots": slots(), "busy": busy}
    """)
    assert seen == {"full": 23, "holes": [0, 2, 3], "again": [1, 1], "slots": [0, 1, 2, 3], "busy": 23}
