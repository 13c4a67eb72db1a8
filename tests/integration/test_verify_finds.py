# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""verify.yml on a damaged cluster: each kind of damage is found, named by device, with what was expected, what was found, and a remedy."""
from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cluster import Cluster, Done, wait_for

NODE = "h200-1"


@pytest.fixture(scope="module")
def damaged(cluster: Cluster) -> Iterator[Cluster]:
    yield cluster
    cluster.playbook("site")


@pytest.fixture(autouse=True)
def right_before(damaged: Cluster) -> Iterator[None]:
    """Each test starts from slices that a fresh plugin has just published: an edit of theirs then stands for half a minute."""
    damaged.kubectl("label", "node", NODE, "nvidia.com/gpu.deploy.dra-driver=true", "--overwrite")
    damaged.emulator(NODE, "repartition", "0", "3g.71gb@0,3g.71gb@4")
    damaged.emulator(NODE, "repartition", "1", "1g.18gb@0,1g.18gb@1,2g.35gb@2,3g.71gb@4")
    damaged.restart_plugin(NODE)
    wait_for("the slices to be as on the GPUs", lambda: len(devices(damaged)) == 6)
    yield


def the_slice(cluster: Cluster) -> dict:
    item, = cluster.slices(NODE)
    return item


def devices(cluster: Cluster) -> list[dict]:
    return [device for item in cluster.slices(NODE) for device in item["spec"].get("devices", [])]


def edit_slice(cluster: Cluster, operations: list[dict]) -> None:
    cluster.kubectl("patch", "resourceslice", the_slice(cluster)["metadata"]["name"], "--type=json", "-p", json.dumps(operations))


def verify(cluster: Cluster) -> tuple[Done, dict[str, dict]]:
    """Run verify.yml at once; return it and the error findings by reason code."""
    done = cluster.playbook("verify", "--limit", NODE, "-e", "dra_verify_timeout=0", check=False)
    assert "Traceback" not in done.output
    document = json.loads((cluster.report_dir / "verdict.json").read_text(encoding="utf-8"))
    return done, {item["reason"]: item for item in document["findings"] if item["severity"] == "error"}


def expect(cluster: Cluster, reason: str, subject: str, only: bool = True) -> dict:
    done, found = verify(cluster)
    assert done.status != 0, done.output
    assert reason in found, (sorted(found), done.output)
    assert not only or set(found) == {reason}
    assert subject in found[reason]["object"] and found[reason]["remedy"]
    assert f"[{reason}]" in done.output
    return found[reason]


def test_nothing_is_found_when_all_is_right(damaged: Cluster) -> None:
    done, found = verify(damaged)
    assert done.status == 0 and found == {}, done.output


def test_a_missing_device(damaged: Cluster) -> None:
    name = devices(damaged)[0]["name"]
    edit_slice(damaged, [{"op": "remove", "path": "/spec/devices/0"}])
    expect(damaged, "DeviceMissing", name)


def test_an_extra_device(damaged: Cluster) -> None:
    extra = dict(devices(damaged)[0], name="gpu-7")
    edit_slice(damaged, [{"op": "add", "path": "/spec/devices/-", "value": extra}])
    expect(damaged, "DeviceExtra", "gpu-7")


def test_a_wrong_uuid(damaged: Cluster) -> None:
    device = devices(damaged)[0]
    edit_slice(damaged, [{"op": "replace", "path": "/spec/devices/0/attributes/uuid", "value": {"string": "MIG-00000000-0000-5000-8000-000000000000"}}])
    details = expect(damaged, "DeviceUuidMismatch", device["name"])["details"]
    assert details["expected"] == device["attributes"]["uuid"]["string"]
    assert details["found"] == "MIG-00000000-0000-5000-8000-000000000000"


def test_a_wrong_memory(damaged: Cluster) -> None:
    device = devices(damaged)[0]
    edit_slice(damaged, [{"op": "replace", "path": "/spec/devices/0/capacity/memory", "value": {"value": "1Gi"}}])
    expect(damaged, "DeviceMemoryMismatch", device["name"])


def test_an_incomplete_pool(damaged: Cluster) -> None:
    edit_slice(damaged, [{"op": "replace", "path": "/spec/pool/resourceSliceCount", "value": 2}])
    expect(damaged, "PoolIncomplete", NODE)


def test_a_plugin_that_does_not_run(damaged: Cluster) -> None:
    damaged.kubectl("label", "node", NODE, "nvidia.com/gpu.deploy.dra-driver=off", "--overwrite")
    wait_for("the plugin pod to be gone", lambda: damaged.plugin_pod(NODE) is None)
    expect(damaged, "PluginNotRunning", NODE, only=False)


def test_mig_mode_without_instances(damaged: Cluster) -> None:
    for instance in json.loads(damaged.emulator(NODE, "show", "--json"))["gpus"][0]["instances"]:
        damaged.emulator(NODE, "destroy", "0", str(instance["gpu_instance_id"]))
    damaged.restart_plugin(NODE)
    wait_for("the slices to lose the devices", lambda: len(devices(damaged)) == 4)
    found = expect(damaged, "MigWithoutInstances", NODE, only=False)
    assert damaged.nvml(NODE)["gpus"][0]["uuid"] in json.dumps(found)


def test_a_wrong_layout_that_is_published_faithfully(damaged: Cluster) -> None:
    damaged.emulator(NODE, "repartition", "0", "4g.71gb@0")
    damaged.restart_plugin(NODE)
    wait_for("the slices to follow", lambda: "gpu-0-mig-4g71gb-5-0" in {device["name"] for device in devices(damaged)})
    found = expect(damaged, "LayoutMismatch", NODE)
    assert "3g.71gb" in json.dumps(found) and "4g.71gb" in json.dumps(found)


def test_a_repartition_behind_our_back_that_the_plugin_has_not_seen(damaged: Cluster) -> None:
    damaged.emulator(NODE, "repartition", "0", "4g.71gb@0")
    _done, found = verify(damaged)
    assert {"DeviceMissing", "DeviceExtra", "LayoutMismatch"} <= set(found)
    assert "gpu-0-mig-4g71gb-5-0" in json.dumps(found["DeviceMissing"])
