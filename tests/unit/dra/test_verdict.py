# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The verdict over hosts and cluster: who is judged, what each finding does to the table, when waiting makes sense."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.slices import form_pools, parse_slice
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.verdict import Host, Verdict, judge

DRIVER = "gpu.nvidia.com"


def hosts(fleet: Any, **more: Any) -> list[Host]:
    """One host per node; ``more`` maps a node name with _ for - to Host fields."""
    result = []
    for name, nvml in fleet.nvml.items():
        fields = {"node": name, "nvml": nvml, "machine_id": fleet.machine_id} | more.get(name.replace("-", "_"), {})
        result.append(Host(name, **fields))
    return result


def verdict(fleet: Any, **more: Any) -> Verdict:
    return judge(hosts(fleet, **more), fleet.cluster(), DRIVER)


def codes(found: Verdict) -> list[str]:
    return [item.code for item in found.findings]


def verdicts(found: Verdict) -> dict[tuple[str, int | None], str]:
    return {(row.node, row.gpu and row.gpu["index"]): row.verdict for row in found.rows}


def test_right_fleet(fleet: Any) -> None:
    found = verdict(fleet)
    assert found.findings == []
    assert [(row.node, row.layout, len(row.devices), row.verdict) for row in found.rows] == [
        ("h100-1", "MIG off", 1, "right"),
        ("h100-1", "4x 1g.10gb + 3g.40gb", 5, "right"),
        ("a100-1", "3g.40gb + 1g.10gb+me + 1g.20gb", 3, "right"),
    ]
    assert {node: len(devices) for node, devices in found.expected.items()} == {"h100-1": 6, "a100-1": 3}


def test_a_device_finding_makes_its_own_gpu_wrong(fleet: Any) -> None:
    fleet.devices("h100-1").remove(fleet.device("h100-1", "gpu-1-mig-3g40gb-9-4"))
    found = verdict(fleet)
    assert codes(found) == ["DeviceMissing"]
    assert verdicts(found) == {("h100-1", 0): "right", ("h100-1", 1): "wrong", ("a100-1", 0): "right"}
    assert found.may_mend_itself


def test_device_of_no_gpu_gets_a_row(fleet: Any) -> None:
    stray = fleet.device("a100-1", "gpu-3-mig-1g20gb-15-6")
    fleet.devices("h100-1").append(stray)
    found = verdict(fleet)
    assert codes(found) == ["DeviceExtra"]
    stray_rows = [row for row in found.rows if row.gpu is None]
    assert [(row.node, row.devices, row.verdict) for row in stray_rows] == [("h100-1", ("gpu-3-mig-1g20gb-15-6",), "wrong")]


def test_plugin_that_is_not_there(fleet: Any) -> None:
    """The slices are still right, for the kubelet keeps those of a dead plugin a while; the verdict is wrong all the same."""
    del fleet.pods["h100-1"]
    fleet.nodes["h100-1"] = fleet.nodes["h100-1"]._replace(deploy_label="paused-for-mig-change")
    found = verdict(fleet)
    assert codes(found) == ["PluginNotRunning"]
    assert "'paused-for-mig-change'" in found.findings[0].cause
    assert verdicts(found) == {("h100-1", 0): "wrong", ("h100-1", 1): "wrong", ("a100-1", 0): "right"}


def test_plugin_on_a_node_that_is_not_ready(fleet: Any) -> None:
    fleet.pods["h100-1"] = fleet.pods["h100-1"]._replace(problem="Running")
    fleet.nodes["h100-1"] = fleet.nodes["h100-1"]._replace(ready=False)
    assert "the Node is not Ready; pod gpu-operator/plugin-h100-1 is not ready (Running)" in verdict(fleet).findings[0].cause


def test_plugin_that_is_not_ready(fleet: Any) -> None:
    fleet.pods["a100-1"] = fleet.pods["a100-1"]._replace(problem="gpus: CrashLoopBackOff")
    found = verdict(fleet)
    assert codes(found) == ["PluginNotRunning"]
    assert "gpus: CrashLoopBackOff" in found.findings[0].cause


def test_missing_node(fleet: Any) -> None:
    del fleet.nodes["a100-1"]
    assert codes(verdict(fleet)) == ["NodeMissing"]


@pytest.mark.parametrize("own", ["ffffffffffffffffffffffffffffffff", "FFFFFFFF-0000-0000-0000-000000000000"])
def test_node_of_another_host(fleet: Any, own: str) -> None:
    found = verdict(fleet, a100_1={"machine_id": own})
    assert codes(found) == ["NodeIdentityMismatch"]
    assert not found.may_mend_itself


@pytest.mark.parametrize("own", ["", "01234567-89ab-cdef-0123-456789ABCDEF\n"])
def test_machine_id_unknown_or_in_another_spelling(fleet: Any, own: str) -> None:
    assert verdict(fleet, a100_1={"machine_id": own}).findings == []


def test_host_that_is_not_judged_is_never_right(fleet: Any) -> None:
    found = verdict(fleet, a100_1={"not_judged": "it failed earlier in this play or cannot be reached"})
    assert [(item.code, item.severity, item.subject) for item in found.findings] == [("HostNotJudged", "warning", "a100-1")]
    assert verdicts(found)[("a100-1", None)] == "not judged"
    assert "a100-1" not in found.expected


def test_host_without_a_gpu_is_never_right(fleet: Any) -> None:
    """A GPU that has fallen off the bus is in no list of NVML; that nothing is published for it then proves nothing."""
    empty = dict(fleet.nvml["a100-1"], gpus=[])
    found = verdict(fleet, a100_1={"nvml": empty})
    assert "DeviceExtra" in codes(found) and verdicts(found)[("a100-1", None)] == "wrong"
    fleet.devices("a100-1").clear()
    found = verdict(fleet, a100_1={"nvml": empty})
    assert [(item.code, item.severity, item.subject) for item in found.findings] == [("NoGpuFound", "warning", "a100-1")]
    assert [(row.layout, row.verdict) for row in found.rows if row.node == "a100-1"] == [("no GPU", "not judged")]


def test_nvml_failure(fleet: Any) -> None:
    found = verdict(fleet, a100_1={"nvml": None, "nvml_error": "driver not loaded"})
    assert codes(found) == ["NvmlFactsMissing"]
    assert "driver not loaded" in found.findings[0].cause
    assert verdicts(found)[("a100-1", None)] == "wrong"


def test_publishing_node_outside_of_the_play(fleet: Any) -> None:
    cluster = fleet.cluster()
    del fleet.nvml["a100-1"]
    found = judge(hosts(fleet), cluster, DRIVER)
    assert [(item.code, item.severity, item.subject) for item in found.findings] == [("NodeNotInPlay", "warning", "a100-1")]


def test_node_name_may_differ_from_the_host_name(fleet: Any) -> None:
    renamed = [host._replace(name=f"{host.name}.example.org") for host in hosts(fleet)]
    assert judge(renamed, fleet.cluster(), DRIVER).findings == []


def step(action: str, uuid: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "text": f"{action} {uuid}", "parent_uuid": uuid, **more}


def test_layout_that_differs(fleet: Any) -> None:
    uuid = fleet.nvml["h100-1"]["gpus"][1]["uuid"]
    plan = [
        step("destroy_compute_instance", uuid, profile="3g.40gb", start=4),
        step("destroy_gpu_instance", uuid, profile="3g.40gb", start=4),
        step("create_gpu_instance", uuid, profile="2g.20gb", start=4),
        step("set_mode", fleet.nvml["h100-1"]["gpus"][0]["uuid"], enable=True),
    ]
    found = verdict(fleet, h100_1={"layout": {"changed": True, "plan": plan}})
    assert codes(found) == ["LayoutMismatch", "LayoutMismatch"]
    causes = {item.details["gpu_uuid"][-1]: item.cause for item in found.findings}
    assert causes["1"].endswith("too much is 3g.40gb at start 4; missing is 2g.20gb at start 4")
    assert causes["0"].endswith("MIG mode is to be on")
    assert not found.may_mend_itself


def test_layout_as_asked_for_or_not_comparable(fleet: Any) -> None:
    assert verdict(fleet, h100_1={"layout": {"changed": False, "plan": []}}).findings == []
    failed = {"failed": True, "msg": "unknown profile 5g", "reason": "UnknownProfile"}
    found = verdict(fleet, h100_1={"layout": failed})
    assert codes(found) == ["LayoutNotCompared"]
    assert "unknown profile 5g" in found.findings[0].cause


def test_waiting_is_for_errors_that_mend_themselves_only(fleet: Any) -> None:
    assert not verdict(fleet).may_mend_itself
    fleet.slices["a100-1"]["spec"]["pool"]["resourceSliceCount"] = 2
    assert verdict(fleet).may_mend_itself
    fleet.nvml["h100-1"]["gpus"][1]["mig"]["instances"] = []
    assert not verdict(fleet).may_mend_itself


def test_pools_of_another_driver_do_not_matter(fleet: Any) -> None:
    """The snapshot holds one driver's pools; a pool without a node belongs to nobody."""
    cluster = fleet.cluster()
    raw = fleet.slices["h100-1"]
    raw["spec"].update(nodeName="", pool={"name": "shared", "generation": 1, "resourceSliceCount": 1})
    shared = form_pools([parse_slice(raw)])
    assert judge(hosts(fleet), cluster._replace(pools=[*cluster.pools, *shared]), DRIVER).findings == []
