# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One spoiled device or pool at a time: each gives its own finding, and nothing else."""
from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.compare import compare_node
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.expected import expected_devices
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import Finding

NODE = "h100-1"


def findings(fleet: Any, node: str = NODE) -> list[Finding]:
    devices, _obstacles = expected_devices(node, fleet.nvml[node])
    return compare_node(node, devices, fleet.cluster().pools_of(node), "gpu.nvidia.com")


def only(fleet: Any) -> Finding:
    (found,) = findings(fleet)
    assert found.severity == "error"
    return found


@pytest.mark.parametrize("node", ["h100-1", "a100-1"])
def test_right(fleet: Any, node: str) -> None:
    assert findings(fleet, node) == []


def test_attributes_from_sysfs_are_not_judged(fleet: Any) -> None:
    fleet.device(NODE, "gpu-0")["attributes"]["resource.kubernetes.io/pcieRoot"] = {"string": "pci0000:ff"}
    assert findings(fleet) == []


def test_missing_device(fleet: Any) -> None:
    fleet.devices(NODE).remove(fleet.device(NODE, "gpu-1-mig-1g10gb-19-2"))
    found = only(fleet)
    assert (found.code, found.subject) == ("DeviceMissing", "h100-1: gpu-1-mig-1g10gb-19-2")
    assert found.details["gpu_uuid"] == "GPU-11111111-0000-4000-8000-000000000001"
    assert "MIG 1g.10gb at start 2" in found.cause


def test_extra_device(fleet: Any) -> None:
    extra = copy.deepcopy(fleet.device(NODE, "gpu-1-mig-1g10gb-19-2"))
    extra["name"] = "gpu-1-mig-1g10gb-19-6"
    extra["attributes"]["uuid"] = {"string": "MIG-99999999-0000-5000-8000-000000000000"}
    fleet.devices(NODE).append(extra)
    found = only(fleet)
    assert (found.code, found.details["device"]) == ("DeviceExtra", "gpu-1-mig-1g10gb-19-6")
    assert found.details["gpu_uuid"] == "GPU-11111111-0000-4000-8000-000000000001"


def test_renumbered_gpu_is_named_in_the_details(fleet: Any) -> None:
    fleet.device(NODE, "gpu-0")["name"] = "gpu-4"
    by_code = {found.code: found for found in findings(fleet)}
    assert set(by_code) == {"DeviceMissing", "DeviceExtra"}
    assert by_code["DeviceMissing"].details["same_uuid_published_as"] == ["gpu-4"]


def test_wrong_uuid(fleet: Any) -> None:
    fleet.device(NODE, "gpu-0")["attributes"]["uuid"] = {"string": "GPU-deadbeef"}
    found = only(fleet)
    assert found.code == "DeviceUuidMismatch"
    assert (found.details["expected"], found.details["found"]) == ("GPU-11111111-0000-4000-8000-000000000000", "GPU-deadbeef")


@pytest.mark.parametrize(("value", "shown"), [("81558Mi", "81558Mi"), ("80Gi", "81920Mi"), ("1", "1"), (None, "absent")])
def test_wrong_memory(fleet: Any, value: str | None, shown: str) -> None:
    capacity = fleet.device(NODE, "gpu-0")["capacity"]
    if value is None:
        del capacity["memory"]
    else:
        capacity["memory"]["value"] = value
    found = only(fleet)
    assert (found.code, found.details["expected"], found.details["found"]) == ("DeviceMemoryMismatch", "81559Mi", shown)


@pytest.mark.parametrize("spelling", ["81559Mi", str(81559 * 2**20), f"{81559 * 1024}Ki"])
def test_memory_is_compared_as_a_number(fleet: Any, spelling: str) -> None:
    fleet.device(NODE, "gpu-0")["capacity"]["memory"]["value"] = spelling
    assert findings(fleet) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("driverVersion", {"version": "580.105.8"}), ("productName", {"string": "NVIDIA H200"}), ("addressingMode", None),
        ("resource.kubernetes.io/pciBusID", {"string": "0000:42:00.0"}), ("profile", {"string": "1g.10gb"}),
        ("cudaComputeCapability", {"string": "9.0.0"}),
    ],
)  # fmt: skip
def test_wrong_attribute(fleet: Any, name: str, value: dict[str, str] | None) -> None:
    attributes = fleet.device(NODE, "gpu-0")["attributes"]
    if value is None:
        del attributes[name]
    else:
        attributes[name] = value
    found = only(fleet)
    assert (found.code, found.details["attribute"]) == ("DeviceAttributeMismatch", name)
    assert str(found.details["expected"]) != str(found.details["found"])


@pytest.mark.parametrize(("name", "value"), [("multiprocessors", "14"), ("memorySlice4", "0"), ("memorySlice3", "1"), ("shares", "4")])
def test_wrong_or_extra_capacity(fleet: Any, name: str, value: str) -> None:
    fleet.device(NODE, "gpu-1-mig-3g40gb-9-4")["capacity"][name] = {"value": value}
    found = only(fleet)
    assert (found.code, found.details["capacity"]) == ("DeviceCapacityMismatch", name)


def test_missing_capacity(fleet: Any) -> None:
    del fleet.device(NODE, "gpu-1-mig-3g40gb-9-4")["capacity"]["jpegEngines"]
    assert only(fleet).details == {
        "node": NODE, "gpu_uuid": "GPU-11111111-0000-4000-8000-000000000001", "device": "gpu-1-mig-3g40gb-9-4",
        "capacity": "jpegEngines", "expected": "3", "found": "absent",
    }  # fmt: skip


def test_incomplete_pool(fleet: Any) -> None:
    """The devices of the absent slice are not missing on their own account; what is there is still compared."""
    fleet.slices[NODE]["spec"]["pool"]["resourceSliceCount"] = 2
    fleet.devices(NODE)[:] = fleet.devices(NODE)[:2]
    found = only(fleet)
    assert (found.code, found.details["expected"], found.details["found"]) == ("PoolIncomplete", 2, 1)
    fleet.device(NODE, "gpu-0")["attributes"]["uuid"] = {"string": "GPU-deadbeef"}
    assert [item.code for item in findings(fleet)] == ["PoolIncomplete", "DeviceUuidMismatch"]


def test_stale_generation_is_not_read(fleet: Any) -> None:
    old = copy.deepcopy(fleet.slices[NODE])
    old["metadata"]["name"] = "old"
    fleet.slices[NODE]["spec"]["pool"]["generation"] = 2
    fleet.devices(NODE).remove(fleet.device(NODE, "gpu-0"))
    fleet.extra_slices.append(old)
    assert only(fleet).code == "DeviceMissing"


def test_missing_pool_is_one_finding(fleet: Any) -> None:
    del fleet.slices[NODE]
    found = only(fleet)
    assert found.code == "PoolMissing"
    assert len(found.details["expected"]) == 6


def test_node_without_gpus_needs_no_pool(fleet: Any) -> None:
    del fleet.slices[NODE]
    fleet.nvml[NODE]["gpus"] = []
    assert findings(fleet) == []


def test_duplicate_device(fleet: Any) -> None:
    second = copy.deepcopy(fleet.slices[NODE])
    second["metadata"]["name"] = "made-by-hand"
    second["spec"]["devices"] = [copy.deepcopy(fleet.device(NODE, "gpu-0"))]
    for item in (second, fleet.slices[NODE]):
        item["spec"]["pool"]["resourceSliceCount"] = 2
    fleet.extra_slices.append(second)
    found = only(fleet)
    assert (found.code, found.details["found"]) == ("DuplicateDevice", 2)
    assert "made-by-hand" in found.remedy


def test_dynamic_mig_is_said_once(fleet: Any) -> None:
    fleet.slices[NODE]["spec"]["sharedCounters"] = [{"name": "gpu-1-counter-set", "counters": {}}]
    fleet.devices(NODE).clear()
    assert only(fleet).code == "DynamicMigPublished"
