# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVLink: what links lead to, and GPUs that must be reset together."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.conftest import Machine

AMPERE, HOPPER, BLACKWELL = "a100-80gb-pcie", "h100-80gb-hbm3", "rtx-pro-6000-server"
#: Per GPU and link: state, kind and bus id of the other end, or the code of the first of these calls that fails.
LINKS = """
def link(gpu, number):
    try:
        return [
            nvml.nvmlDeviceGetNvLinkState(gpu, number), nvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, number),
            nvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, number).busId,
        ]
    except nvml.NVMLError as error:
        return error.value
result = [[link(device(index), number) for number in range(19)] for index in range(nvml.nvmlDeviceGetCount())]
"""
NOT_SUPPORTED, INVALID_ARGUMENT = 3, 2


def smi(machine: Machine, *arguments: str) -> subprocess.CompletedProcess[str]:
    return machine.run([str(machine.folder / "nvidia-smi"), *arguments])


def linked(nvml_machine: Callable[..., Machine], *settings: str) -> Machine:
    """Four A100: 0, 1 and 3 are linked with each other, and have these settings."""
    machine = nvml_machine(f"{AMPERE}:4")
    for gpu in "013":
        machine.ctl("set", gpu, "nvlink=1", *settings)
    machine.ctl("set", "2", "nvlink=2")
    return machine


def test_links_lead_to_the_gpus_of_the_group(nvml_machine: Callable[..., Machine]) -> None:
    machine = linked(nvml_machine)
    bus_ids = [f"00000000:{bus}:00.0" for bus in ("19", "3B", "4C", "5D")]
    found: Any = machine.python(LINKS)
    for gpu, peers in ((0, (1, 3)), (1, (0, 3)), (3, (0, 1))):
        assert found[gpu][:12] == [[1, 0, bus_ids[peers[number % 2]]] for number in range(12)]
        assert found[gpu][12:] == [NOT_SUPPORTED] * 6 + [INVALID_ARGUMENT]
    assert found[2][:12] == [NOT_SUPPORTED] * 12, "its links are down, so they have no other end"
    assert machine.python("result = nvml.nvmlDeviceGetNvLinkState(device(2), 0)") == 0


def test_links_to_switches(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(f"{HOPPER}:2")
    machine.ctl("set", "0", "nvlink=switch")
    found: Any = machine.python(LINKS)
    assert all(state == 1 and kind == 2 for state, kind, _bus_id in found[0][:18])
    assert len({bus_id for _state, _kind, bus_id in found[0][:18]}) == 4
    assert machine.show()["gpus"][1]["pci_bus_id"].upper() not in {bus_id[4:] for _state, _kind, bus_id in found[0][:18]}


def test_boards_without_nvlink(nvml_machine: Callable[..., Machine]) -> None:
    machine = nvml_machine(BLACKWELL)
    assert machine.python(LINKS)[0][0] == NOT_SUPPORTED
    done = machine.run([str(machine.folder / "nvmlctl"), "set", "0", "nvlink=1"])
    assert (done.returncode, done.stderr) == (2, "nvmlctl: GPU 0 is of a model that has no nvlink.\n")


def test_linked_gpus_are_reset_together_or_not_at_all(nvml_machine: Callable[..., Machine]) -> None:
    machine = linked(nvml_machine, "nvlink-reset=group")
    for gpu in "013":
        machine.ctl("repartition", gpu, "3g.40gb")
    machine.mark()
    refused = smi(machine, "-r", "-i", "0,1")
    assert (refused.returncode, refused.stdout.splitlines()) == (255, [
        "The following GPUs could not be reset:",
        "  GPU 00000000:19:00.0: Not Supported (NVLink peers must be reset together: 00000000:5D:00.0)",
        "  GPU 00000000:3B:00.0: Not Supported (NVLink peers must be reset together: 00000000:5D:00.0)",
    ])
    assert machine.calls() == [] and len(machine.layout(0)) == 1
    assert machine.run([str(machine.folder / "nvmlctl"), "reset", "0"]).stderr == (
        "nvmlctl: Cannot reset GPU 0: the GPUs linked with it must be reset together.\n"
    )
    uuids = ",".join(machine.show()["gpus"][gpu]["uuid"] for gpu in (0, 1, 3))
    assert smi(machine, "-r", "-i", uuids).returncode == 0
    assert [machine.layout(gpu) for gpu in (0, 1, 3)] == [[], [], []]
    assert [call["symbol"] for call in machine.calls()] == ["nvmlEmulatorResetDevice"] * 3
    assert smi(machine, "-r", "-i", "2").returncode == 0


def test_one_busy_gpu_keeps_the_whole_group(nvml_machine: Callable[..., Machine]) -> None:
    machine = linked(nvml_machine, "nvlink-reset=group")
    for gpu in "013":
        machine.ctl("repartition", gpu, "3g.40gb")
    machine.ctl("client", "add", "1", "--pid", "10")
    refused = smi(machine, "-r", "-i", "0,1,3")
    assert refused.returncode == 255
    assert refused.stdout.splitlines()[:3] == [
        "The following GPUs could not be reset:", "  GPU 00000000:3B:00.0: In use by another client", "",
    ]
    assert refused.stdout.splitlines()[3].startswith("1 device is currently being used")
    assert [len(machine.layout(gpu)) for gpu in (0, 1, 3)] == [1, 1, 1]


def test_a_mode_change_waits_for_the_reset_of_the_group(nvml_machine: Callable[..., Machine]) -> None:
    machine = linked(nvml_machine, "nvlink-reset=group")
    modes = "result = [[nvml.nvmlDeviceSetMigMode(device(gpu), 1), *nvml.nvmlDeviceGetMigMode(device(gpu))] for gpu in (0, 1, 2, 3)]"
    assert machine.python(modes) == [[16, 0, 1], [16, 0, 1], [0, 1, 1], [16, 0, 1]]
    assert smi(machine, "-r", "-i", "0,1,3").returncode == 0
    assert [machine.show()["gpus"][gpu]["mig_current"] for gpu in range(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize("model", [AMPERE, HOPPER])
def test_links_do_not_matter_for_single_resets(nvml_machine: Callable[..., Machine], model: str) -> None:
    machine = nvml_machine(f"{model}:2")
    for gpu in "01":
        machine.ctl("set", gpu, "nvlink=1")
    assert machine.python("result = [nvml.nvmlDeviceSetMigMode(device(), 1), *nvml.nvmlDeviceGetMigMode(device())]") == [0, 1, 1]
    assert smi(machine, "-r", "-i", "0").returncode == 0
