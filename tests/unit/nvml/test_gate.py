# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What health facts mean, and which GPUs the gate refuses."""
from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.catalogue import gpus_from_facts
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.gate import refuse_unhealthy
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.health import health_findings
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.layout import parse_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import make_plan
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.mig.models import gpu_facts

HEALTHY: dict[str, Any] = {
    "ecc": {"enabled": True, "pending": True, "uncorrected_volatile": 0, "uncorrected_aggregate": 3, "sram_threshold_exceeded": False},
    "row_remap": {"correctable": 2, "uncorrectable": 1, "pending": False, "failed": False},
    "recovery_action": "none",
    # Every two-bit answer of the mask is "false" (2), incorrect configuration is "none" (1), the partition is assigned (1).
    "fabric": {"state": "completed", "status": 0, "health_mask": 0b01_0001_10_10_10_10, "summary": "healthy"},
    "clock_event_reasons": ["gpu_idle", "sw_power_cap"],
    "repair": {"channel_pending": False, "tpc_pending": False},
}
UNTOLD = {
    "ecc": {"enabled": None, "pending": None, "uncorrected_volatile": None, "uncorrected_aggregate": None, "sram_threshold_exceeded": None},
    "row_remap": None, "recovery_action": None, "fabric": None, "clock_event_reasons": [], "repair": None,
}


def with_health(gpu: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the GPU with a healthy GPU's health, changed: ``row_remap={"failed": True}`` changes one value of a part."""
    health = deepcopy(HEALTHY)
    for part, change in changes.items():
        health[part] = {**health[part], **change} if isinstance(change, dict) else change
    return {**gpu, "health": health}


def codes(gpu: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item.code, item.severity) for item in health_findings(gpu)]


@pytest.mark.parametrize(("changes", "code", "severity"), [
    ({"recovery_action": "gpu_reset"}, "GpuResetNeeded", "error"),
    ({"recovery_action": "drain_and_reset"}, "GpuResetNeeded", "error"),
    ({"recovery_action": "bus_reset"}, "GpuResetNeeded", "error"),
    ({"recovery_action": "node_reboot"}, "NodeRebootNeeded", "error"),
    ({"recovery_action": "system_reboot"}, "NodeRebootNeeded", "error"),
    ({"recovery_action": "drain_p2p"}, "GpuRecoveryNeeded", "error"),
    ({"recovery_action": "recover_imex_domain"}, "GpuRecoveryNeeded", "error"),
    ({"recovery_action": "unknown-12"}, "GpuRecoveryNeeded", "error"),
    ({"row_remap": {"pending": True}}, "RowRemapPending", "error"),
    ({"row_remap": {"failed": True}}, "RowRemapFailed", "error"),
    ({"ecc": {"sram_threshold_exceeded": True}}, "SramErrorsExceeded", "error"),
    ({"ecc": {"enabled": False}}, "EccDisabled", "warning"),
    ({"repair": {"channel_pending": True}}, "RepairPending", "warning"),
    ({"repair": {"tpc_pending": True}}, "RepairPending", "warning"),
    ({"clock_event_reasons": ["hw_slowdown", "hw_thermal_slowdown"]}, "ClocksHeldBack", "warning"),
    ({"fabric": {"state": "in_progress"}}, "FabricNotReady", "warning"),
    ({"fabric": {"state": "not_started"}}, "FabricNotReady", "warning"),
    ({"fabric": {"status": 999}}, "FabricNotReady", "warning"),
    ({"fabric": {"summary": "unhealthy"}}, "FabricNotReady", "warning"),
    ({"fabric": {"summary": None, "health_mask": 0b01_0001_10_01_10_10}}, "FabricNotReady", "warning"),  # route unhealthy: true
    ({"fabric": {"summary": None, "health_mask": 0b01_0010_10_10_10_10}}, "FabricNotReady", "warning"),  # incorrect system GUID
])
def test_each_fault_has_its_code_and_severity(changes: dict[str, Any], code: str, severity: str) -> None:
    gpu = with_health(gpu_facts("h100", index=2, enabled=False), **changes)
    assert codes(gpu) == [(code, severity)]
    found = health_findings(gpu)[0]
    assert found.subject == "GPU 2 (NVIDIA H100 80GB HBM3, GPU-h100-2)" and found.sentence().startswith(f"{found.subject}: ")


@pytest.mark.parametrize("gpu", [
    with_health(gpu_facts()), {**gpu_facts(), "health": UNTOLD}, gpu_facts(), with_health(gpu_facts(enabled=False), fabric=None),
    with_health(gpu_facts(enabled=False), fabric={"state": "not_supported", "summary": "not_supported", "health_mask": 0}),
    with_health(gpu_facts(enabled=True), fabric={"state": "not_started"}),
], ids=["healthy", "nothing told", "facts without health", "no fabric", "fabric not supported", "fabric suspended by MIG"])
def test_a_healthy_gpu_and_one_that_tells_nothing_have_no_finding(gpu: dict[str, Any]) -> None:
    assert codes(gpu) == []


def test_errors_come_before_warnings() -> None:
    gpu = with_health(gpu_facts(), ecc={"enabled": False, "sram_threshold_exceeded": True}, row_remap={"failed": True, "pending": True})
    assert [severity for _code, severity in codes(gpu)] == ["error", "error", "error", "warning"]


# -- the gate ----------------------------------------------------------------------------------------------------------------------------------------

def check(gpus: list[dict[str, Any]], instances: Any, mode: str = "enabled") -> None:
    facts = {"gpus": gpus}
    rule = {"match": "all", "mode": mode, **({} if instances is None else {"instances": instances})}
    refuse_unhealthy(facts, make_plan(gpus_from_facts(facts), parse_layouts([rule]), "keep"))


BROKEN = {"row_remap": {"failed": True}}


@pytest.mark.parametrize(("gpu", "instances"), [
    (gpu_facts(enabled=False), "balanced"), (gpu_facts(enabled=False), {}), (gpu_facts(enabled=True), {"3g.40gb": 1}),
], ids=["mode and instances", "mode only", "first instance"])
def test_a_broken_gpu_is_not_partitioned_for_the_first_time(gpu: dict[str, Any], instances: Any) -> None:
    check([with_health(gpu)], instances)
    with pytest.raises(FleetError) as caught:
        check([with_health(gpu, **BROKEN)], instances)
    found = caught.value.finding
    assert found.code == "GpuUnhealthy" and found.subject == "GPU 0 (NVIDIA H100 80GB HBM3, GPU-h100-0)"
    assert "remapping a faulty memory row has failed" in found.cause and "RMA" in found.remedy
    assert [item["reason"] for item in found.details["gpus"][0]["findings"]] == ["RowRemapFailed"]


@pytest.mark.parametrize(("gpu", "instances", "mode"), [
    (gpu_facts(instances=[("3g.40gb", 0)]), {"3g.40gb": 2}, "enabled"), (gpu_facts(instances=[("3g.40gb", 0)]), None, "disabled"),
    (gpu_facts(enabled=True), {}, "enabled"), (gpu_facts(enabled=False), None, "disabled"), (gpu_facts("l40s"), None, "unmanaged"),
], ids=["partitioned already", "taken apart", "nothing to do", "stays off", "no MIG"])
def test_a_broken_gpu_that_is_not_newly_partitioned_passes(gpu: dict[str, Any], instances: Any, mode: str) -> None:
    check([with_health(gpu, **BROKEN)], instances, mode)


def test_a_warning_does_not_close_the_gate() -> None:
    check([with_health(gpu_facts(enabled=False), ecc={"enabled": False}, fabric={"state": "in_progress"})], "balanced")


def test_the_sentence_names_every_broken_gpu_and_each_remedy_once() -> None:
    gpus = [with_health(gpu_facts(index=number, enabled=False), **changes) for number, changes in enumerate(
        [BROKEN, {}, BROKEN, {"recovery_action": "node_reboot"}])]
    with pytest.raises(FleetError) as caught:
        check(gpus, "balanced")
    found = caught.value.finding
    assert [item["uuid"] for item in found.details["gpus"]] == ["GPU-h100-0", "GPU-h100-2", "GPU-h100-3"]
    assert "GPU 3: the driver asks for a reboot" in found.cause and "GPU-h100-1" not in found.sentence()
    assert found.remedy.count("RMA") == 1 and "Drain the node and reboot it." in found.remedy
