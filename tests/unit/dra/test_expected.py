# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The prediction against slices that were written from what is known of the driver, never from the prediction itself."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.expected import NVML_ATTRIBUTES, expected_devices, layout_text
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.quantity import parse_quantity

NOT_FROM_NVML = {"resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"}


@pytest.mark.parametrize("node", ["h100-1", "a100-1"])
def test_equals_what_the_driver_publishes(fleet: Any, node: str) -> None:
    devices, findings = expected_devices(node, fleet.nvml[node])
    assert findings == []
    published = {device["name"]: device for device in fleet.devices(node)}
    assert {device.name for device in devices} == set(published)
    for device in devices:
        golden = published[device.name]
        assert device.attributes == {name: value for name, value in golden["attributes"].items() if name not in NOT_FROM_NVML}
        assert device.capacities == {name: parse_quantity(value["value"]) for name, value in golden["capacity"].items()}


def test_every_predicted_attribute_is_compared(fleet: Any) -> None:
    devices = [device for node, nvml in fleet.nvml.items() for device in expected_devices(node, nvml)[0]]
    assert {name for device in devices for name in device.attributes} == set(NVML_ATTRIBUTES)


def test_no_capacity_when_the_memory_is_not_known(make_gpu: Any) -> None:
    """GB10: nvmlDeviceGetMemoryInfo answers NOT_SUPPORTED, the GPU is published without memory."""
    document = make_gpu.node_document(make_gpu.gpu(0, "GPU-0", "00000000:01:00.0", 0, memory_bytes=None, memory_mib=None))
    devices, findings = expected_devices("n", document)
    assert (devices[0].capacities, findings) == ({}, [])


def test_minor_names_the_device_not_the_index(make_gpu: Any) -> None:
    document = make_gpu.node_document(make_gpu.gpu(5, "GPU-0", "00000000:01:00.0", 81559, index=0))
    assert [device.name for device in expected_devices("n", document)[0]] == ["gpu-5"]


def test_display_gpu_is_left_out(make_gpu: Any) -> None:
    document = make_gpu.node_document(make_gpu.gpu(4, "GPU-4", "00000000:01:00.0", 4096, product="NVIDIA DGX Display"))
    assert expected_devices("n", document) == ([], [])


def codes(findings: list[Any]) -> list[str]:
    return [item.code for item in findings]


def test_mig_mode_without_instances(fleet: Any) -> None:
    fleet.nvml["h100-1"]["gpus"][1]["mig"]["instances"] = []
    devices, findings = expected_devices("h100-1", fleet.nvml["h100-1"])
    assert [device.name for device in devices] == ["gpu-0"]
    assert codes(findings) == ["MigWithoutInstances"]
    assert "GPU-11111111-0000-4000-8000-000000000001" in findings[0].subject


def test_gpu_instance_without_compute_instance(fleet: Any, make_gpu: Any) -> None:
    fleet.nvml["h100-1"]["gpus"][1]["mig"]["instances"][4] = make_gpu.instance("3g.40gb", 9, 4, 4, 3, None)
    devices, findings = expected_devices("h100-1", fleet.nvml["h100-1"])
    assert "gpu-1-mig-3g40gb-9-4" not in {device.name for device in devices}
    assert codes(findings) == ["GpuInstanceWithoutComputeInstance"]


def test_compute_instance_smaller_than_its_gpu_instance(fleet: Any, make_gpu: Any) -> None:
    fleet.nvml["h100-1"]["gpus"][1]["mig"]["instances"][4] = make_gpu.instance("3g.40gb", 9, 4, 4, 3, "MIG-x", compute=1)
    devices, findings = expected_devices("h100-1", fleet.nvml["h100-1"])
    assert "gpu-1-mig-3g40gb-9-4" not in {device.name for device in devices}
    assert codes(findings) == ["ComputeInstanceSmaller"]
    assert "1 of its 3 slices" in findings[0].cause


def test_pending_mode_is_a_warning_and_the_current_mode_counts(fleet: Any) -> None:
    fleet.nvml["h100-1"]["gpus"][0]["mig"]["pending"] = True
    devices, findings = expected_devices("h100-1", fleet.nvml["h100-1"])
    assert "gpu-0" in {device.name for device in devices}
    assert [(item.code, item.severity) for item in findings] == [("MigModePending", "warning")]


@pytest.mark.parametrize(
    ("field", "value"),
    [("brand", 99), ("architecture", 11), ("addressing_mode", 7), ("pci_bus_id", "00010000:41:00.0"), ("cuda_compute_capability", "x")],
)
def test_gpu_that_stops_the_plugin(fleet: Any, field: str, value: Any) -> None:
    fleet.nvml["h100-1"]["gpus"][0][field] = value
    assert codes(expected_devices("h100-1", fleet.nvml["h100-1"])[1]) == ["PluginCannotStart"]


def test_offered_profile_that_stops_the_plugin(fleet: Any, make_gpu: Any) -> None:
    """GI enum 17 (3g+gfx) is fatal as soon as a card offers it, with MIG mode off too."""
    fleet.nvml["h100-1"]["gpus"][0]["mig"]["profiles"].append(make_gpu.profile("3g.40gb+gfx 99 17 1 3 40448 60 3 3 0 3 0", 4, [0]))
    assert codes(expected_devices("h100-1", fleet.nvml["h100-1"])[1]) == ["PluginCannotStart"]


def test_a_gpu_that_nvml_cannot_read_is_named_and_nothing_is_expected_of_it() -> None:
    lost = {"index": 1, "uuid": None, "pci_bus_id": "00000000:42:00.0", "call": "nvmlDeviceGetUUID", "error": "GPU_IS_LOST"}
    devices, findings = expected_devices("node-1", {"gpus": [], "unreadable_gpus": [lost]})
    assert devices == [] and codes(findings) == ["GpuUnreadable"]
    assert "node-1: GPU 1 (00000000:42:00.0)" in findings[0].sentence() and "GPU_IS_LOST" in findings[0].sentence()


def test_layout_text(fleet: Any, make_gpu: Any) -> None:
    off, split = fleet.nvml["h100-1"]["gpus"]
    assert layout_text(off) == "MIG off"
    assert layout_text(split) == "4x 1g.10gb + 3g.40gb"
    assert layout_text(make_gpu.gpu(0, "GPU-0", "", 1)) == "no MIG"
    split["mig"]["instances"] = []
    assert layout_text(split) == "MIG on, empty"
