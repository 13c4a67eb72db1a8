# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPU health through NVML's own structures, as nvml_info returns it, and the links between GPUs."""
from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.modules import run_module


def gpus(machine: Any) -> list[dict[str, Any]]:
    return list(run_module(machine, "nvml_info")["nvml"]["gpus"])


def tell(machine: Any, gpu: int, *settings: str) -> None:
    for setting in settings:
        machine.ctl("set", str(gpu), setting)


def test_a_healthy_gpu_has_no_reason_and_every_value(nvml_machine: Any) -> None:
    health = gpus(nvml_machine("h100-80gb-hbm3"))[0]["health"]
    assert health["ecc"] == {
        "enabled": True, "pending": True, "uncorrected_volatile": 0, "uncorrected_aggregate": 0, "sram_threshold_exceeded": False}
    assert health["row_remap"] == {"correctable": 0, "uncorrectable": 0, "pending": False, "failed": False}
    assert health["recovery_action"] == "none" and health["repair"] == {"channel_pending": False, "tpc_pending": False}
    assert health["reasons"] == []


def test_each_gpu_has_its_own_faults(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:4")
    tell(machine, 0, "remap-failed=on", "remap-pending=on", "remap-correctable=5", "remap-uncorrectable=2", "sram-threshold=on", "ecc-pending=off")
    tell(machine, 1, "recovery-action=drain_and_reset", "dram-uncorrected-volatile=3", "dram-uncorrected-aggregate=7")
    tell(machine, 2, "ecc=off", "tpc-repair-pending=on", "clock-reasons=0x48", "fabric-state=in_progress")
    first, second, third, fourth = (gpu["health"] for gpu in gpus(machine))
    assert first["row_remap"] == {"correctable": 5, "uncorrectable": 2, "pending": True, "failed": True}
    assert (first["ecc"]["sram_threshold_exceeded"], first["ecc"]["enabled"], first["ecc"]["pending"]) == (True, True, False)
    assert first["reasons"] == ["RowRemapFailed", "RowRemapPending", "SramErrorsExceeded"]
    assert second["recovery_action"] == "drain_and_reset" and second["reasons"] == ["GpuResetNeeded"]
    assert (second["ecc"]["uncorrected_volatile"], second["ecc"]["uncorrected_aggregate"]) == (3, 7)
    assert third["clock_event_reasons"] == ["hw_slowdown", "hw_thermal_slowdown"] and third["repair"]["tpc_pending"]
    assert third["fabric"]["state"] == "in_progress"
    assert third["reasons"] == ["EccDisabled", "RepairPending", "ClocksHeldBack", "FabricNotReady"]
    assert fourth["reasons"] == []


def test_the_fabric_is_read_with_its_health(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    tell(machine, 0, "fabric-state=completed", "fabric-health-mask=0x11aa", "fabric-summary=unhealthy", "fabric-status=0")
    health = gpus(machine)[0]["health"]
    assert health["fabric"] == {"state": "completed", "status": 0, "health_mask": 0x11AA, "summary": "unhealthy"}
    assert health["reasons"] == ["FabricNotReady"]


def test_what_mig_instances_hide_is_null_and_not_healthy(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    tell(machine, 0, "remap-failed=on")
    machine.ctl("repartition", "0", "3g.40gb@4")
    health = gpus(machine)[0]["health"]
    assert health["row_remap"] is None and health["recovery_action"] == "none" and health["reasons"] == []


@pytest.mark.parametrize(("knob", "reason"), [("lost", "GpuLost"), ("not-ready", "GpuUnreadable")])
def test_a_gpu_that_is_gone_hides_no_other(nvml_machine: Any, knob: str, reason: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    tell(machine, 0, f"{knob}=on")
    nvml = run_module(machine, "nvml_info")["nvml"]
    assert [gpu["index"] for gpu in nvml["gpus"]] == [1]
    assert [(gpu["index"], gpu["reason"]) for gpu in nvml["unreadable_gpus"]] == [(0, reason)]


# -- NVLink ------------------------------------------------------------------------------------------------------------------------------------------

def test_linked_gpus_name_each_other(nvml_machine: Any) -> None:
    machine = nvml_machine("a100-80gb-pcie:4")
    for gpu, group in ((0, 1), (2, 1), (1, 2), (3, 2)):
        tell(machine, gpu, f"nvlink={group}")
    found = gpus(machine)
    uuids = [gpu["uuid"] for gpu in found]
    assert [gpu["nvlink_peers"] for gpu in found] == [[uuids[2]], [uuids[3]], [uuids[0]], [uuids[1]]]
    assert not any(gpu["nvlink_switch"] for gpu in found)


def test_a_peer_that_does_not_answer_is_named_by_its_address(nvml_machine: Any) -> None:
    machine = nvml_machine("a100-80gb-pcie:2")
    tell(machine, 0, "nvlink=1")
    tell(machine, 1, "nvlink=1")
    address = gpus(machine)[1]["pci_bus_id"]
    machine.ctl("fault", "add", "--symbol", "nvmlDeviceGetName", "--gpu", "1", "--code", "GPU_IS_LOST", "--times", "0")
    assert [gpu["nvlink_peers"] for gpu in gpus(machine)] == [[address.lower()]]


def test_gpus_behind_a_switch_have_no_direct_peers(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3:2")
    tell(machine, 0, "nvlink=switch")
    assert [(gpu["nvlink_peers"], gpu["nvlink_switch"]) for gpu in gpus(machine)] == [([], True), ([], False)]
