# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""upgrade_driver.yml on a cluster in service: nodes are drained one after the other, pods on claims move, and the devices are published again.

The nodes have no driver to begin with: site.yml installs it from the sandbox's package server. The tests follow one another on one fleet.
"""
from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import ROOT, Cluster, Done, ready, wait_for

pytestmark = pytest.mark.slow

NAME = "upgrade"
NODES = ("gpu-1", "gpu-2")
#: Whole GPUs, which the pods claim. The second node has one more, which is cut into MIG devices: their layout has to come back after a reboot.
GPUS_PER_NODE = 2
MIG_DEVICES = 7
MIG_NODE = {"mig_strategy": "static", "mig_layouts": [{"match": {"index": [GPUS_PER_NODE]}, "mode": "enabled", "instances": "all-1g"}]}
DEVICES = {NODES[0]: GPUS_PER_NODE, NODES[1]: GPUS_PER_NODE + MIG_DEVICES}
OLD, NEW = VERSIONS = "580.173.02", "595.91.07"
FLEET = {
    "kubernetes": True, "packages": True,
    "nodes": [{"name": name, "gpus": [{"model": "h100-80gb-hbm3", "count": count}], "driver": "none"}
              for name, count in zip(NODES, (GPUS_PER_NODE, GPUS_PER_NODE + 1), strict=True)],
}  # fmt: skip
DROP_INS = "/etc/systemd/system/emulated-nvidia-driver.service.d"
CLAIMED = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}  # fmt: skip
CONTAINER = {
    "name": "main", "image": "sandbox.local/busybox:1", "imagePullPolicy": "Never",
    "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"], "resources": {"claims": [{"name": "gpu"}]},
}  # fmt: skip
WORKLOAD = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "trainer", "namespace": "default"},
    "spec": {
        "replicas": GPUS_PER_NODE, "selector": {"matchLabels": {"app": "trainer"}},
        "template": {
            "metadata": {"labels": {"app": "trainer"}},
            "spec": {
                "terminationGracePeriodSeconds": 1, "containers": [CONTAINER],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            },
        },
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes in service with the old driver, and a Deployment whose pods each claim a GPU."""
    folder = tmp_path_factory.mktemp("upgrade")
    spec, inventory = folder / "fleet.yml", folder / "inventory"
    spec.write_text(yaml.safe_dump(FLEET))
    given = os.environ.get("GPUFLEET_TEST_SANDBOX")
    cluster = Cluster(given or NAME, inventory)
    if not given:
        cluster.sandbox("down")
    try:
        cluster.sandbox("up", "--spec", str(spec))
        published = cluster.run([sys.executable, "-m", "tests.packages", "publish", "--sandbox", cluster.name, "--versions", ",".join(VERSIONS)])
        _write_inventory(inventory, json.loads(published.output))
        cluster.playbook("site", *_variables(nvidia_driver_branch="580", nvidia_driver_version=OLD, nvidia_driver_reboot_ok=True))
        cluster.apply(CLAIMED, WORKLOAD)
        _wait_for_pods(cluster)
        yield cluster
    finally:
        if not given:
            cluster.sandbox("down")


def _write_inventory(folder: Path, published: dict[str, Any]) -> None:
    """Write an inventory beside the sandbox's own, with its way to the chart and to the packages that were ``published``."""
    folder.mkdir()
    (folder / "00-connection").symlink_to(ROOT / "inventories" / "sandbox" / "00-connection")
    settings = {
        "mig_strategy": "none", "gpu_operator_chart_ref": str(ROOT / "sandbox" / "gpu_operator" / "chart"), "gpu_operator_chart_repo_url": "",
        "gpu_operator_helm_binary": "{{ sandbox_bin_dir }}/helm", "dra_verify_report_dir": "{{ sandbox_report_dir }}",
        "nvidia_driver_mirror_url": published["url"], "nvidia_driver_repository_key_fingerprint": published["fingerprint"],
    }  # fmt: skip
    hosts = dict(zip(NODES, ({}, MIG_NODE), strict=True))
    (folder / "hosts.yml").write_text(yaml.safe_dump({"gpu_nodes": {"hosts": hosts, "vars": settings}}))


def _variables(**variables: Any) -> list[str]:
    return ["-e", json.dumps(variables)]


def upgrade(cluster: Cluster, *arguments: str, check: bool = False, **variables: Any) -> Done:
    """Run upgrade_driver.yml with leave to reboot."""
    return cluster.playbook("upgrade_driver", *_variables(nvidia_driver_reboot_ok=True, **variables), *arguments, check=check)


def _pods(cluster: Cluster) -> list[dict[str, Any]]:
    return [pod for pod in cluster.get("pods", "-l", "app=trainer")["items"] if "deletionTimestamp" not in pod["metadata"]]


def _wait_for_pods(cluster: Cluster) -> None:
    wait_for("the pods on claims", lambda: sum(map(ready, _pods(cluster))) == GPUS_PER_NODE)


def in_service(cluster: Cluster, node: str) -> bool:
    return not cluster.get("node", node)["spec"].get("unschedulable")


def loaded(cluster: Cluster, node: str) -> str:
    """The version of the loaded kernel module."""
    return cluster.ssh(node, "cat", "/proc/driver/nvidia/version").split("  ")[1].split()[0]


def boots(cluster: Cluster) -> dict[str, str]:
    return {node: cluster.get("node", node)["status"]["nodeInfo"]["bootID"] for node in NODES}


def standing(cluster: Cluster) -> dict[str, Any]:
    """What a rollout that was refused must leave alone: boots, cordons, records of a pause, the plugin's pods, and the pods with their claims."""
    nodes = [cluster.get("node", node) for node in NODES]
    return {
        "boots": [node["status"]["nodeInfo"]["bootID"] for node in nodes],
        "cordons": [node["spec"].get("unschedulable", False) for node in nodes],
        "paused": ["gpufleet.dra/paused" in node["metadata"]["annotations"] for node in nodes],
        "labels": [{name: value for name, value in node["metadata"]["labels"].items() if "deploy" in name} for node in nodes],
        "plugins": [(cluster.plugin_pod(node) or {}).get("metadata", {}).get("uid") for node in NODES],
        "pods": sorted(pod["metadata"]["uid"] for pod in _pods(cluster)),
    }  # fmt: skip


def flat(output: str) -> str:
    """Output without the line breaks of Ansible's YAML."""
    return " ".join(output.split())


def published_versions(cluster: Cluster, node: str) -> list[str]:
    """The driver version that each published device of the node has as an attribute."""
    devices = [device for item in cluster.slices(node) for device in item["spec"].get("devices") or []]
    return [device["attributes"]["driverVersion"]["version"] for device in devices]


def published_names(cluster: Cluster, node: str) -> list[str]:
    return sorted(device["name"] for item in cluster.slices(node) for device in item["spec"].get("devices") or [])


def semantic(version: str) -> str:
    """A driver version as the plugin publishes it: without leading zeros."""
    return ".".join(str(int(part)) for part in version.split("."))


def test_site_installs_the_driver_and_the_devices_are_published(fleet: Cluster) -> None:
    for node in NODES:
        assert loaded(fleet, node) == OLD
        assert published_versions(fleet, node) == [semantic(OLD)] * DEVICES[node]


def test_a_node_in_service_is_not_changed_without_a_drain(fleet: Cluster) -> None:
    before = boots(fleet)
    done = fleet.playbook("site", *_variables(nvidia_driver_branch="595", nvidia_driver_reboot_ok=True), check=False)
    assert done.status != 0 and "[DriverNodeInService]" in done.output and "upgrade_driver" in done.output, done.output
    assert boots(fleet) == before and all(loaded(fleet, node) == OLD for node in NODES)


def test_a_version_that_is_not_to_be_had_is_refused_before_any_node_is_cordoned(fleet: Cluster) -> None:
    before = standing(fleet)
    done = upgrade(fleet, nvidia_driver_branch="595", nvidia_driver_version="595.99.99")
    assert done.status != 0 and "[DriverVersionUnavailable]" in done.output, done.output
    assert standing(fleet) == before


def test_a_pod_that_nothing_makes_again_is_refused_before_any_node_is_cordoned(fleet: Cluster) -> None:
    alone = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "namespace": "default"},
        "spec": {"nodeName": NODES[0], "terminationGracePeriodSeconds": 1, "containers": [{**CONTAINER, "resources": {}}]},
    }  # fmt: skip
    with fleet.workload(alone):
        before = standing(fleet)
        done = upgrade(fleet, nvidia_driver_branch="595")
        assert done.status != 0 and "[DriverDrainFailed]" in done.output and "default/alone" in done.output, done.output
        assert "in service again with the driver that it had" in flat(done.output)
        assert standing(fleet) == before and loaded(fleet, NODES[0]) == OLD


def test_a_disruption_budget_that_allows_nothing_leaves_the_node_as_it_was(fleet: Cluster) -> None:
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "trainer", "namespace": "default"},
        "spec": {"minAvailable": GPUS_PER_NODE, "selector": {"matchLabels": {"app": "trainer"}}},
    }  # fmt: skip
    with fleet.workload(budget):
        wait_for("the disruption budget", lambda: "disruptionsAllowed" in fleet.get("poddisruptionbudget", "trainer").get("status", {}))
        before = standing(fleet)
        done = upgrade(fleet, nvidia_driver_branch="595", nvidia_driver_drain_timeout=10)
        assert done.status != 0 and "[DriverDrainFailed]" in done.output and "disruption budget" in done.output, done.output
        assert "in service again with the driver that it had" in flat(done.output)
        assert standing(fleet) == before and loaded(fleet, NODES[0]) == OLD


def test_a_pod_that_does_not_end_keeps_its_node_from_the_reboot(fleet: Cluster) -> None:
    deaf = {**CONTAINER, "command": ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], "resources": {}}
    stubborn = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "stubborn", "namespace": "default"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "stubborn"}},
            "template": {
                "metadata": {"labels": {"app": "stubborn"}},
                "spec": {"terminationGracePeriodSeconds": 45, "nodeSelector": {"kubernetes.io/hostname": NODES[0]}, "containers": [deaf]},
            },
        },
    }  # fmt: skip
    with fleet.workload(stubborn):
        wait_for("the stubborn pod", lambda: any(map(ready, fleet.get("pods", "-l", "app=stubborn")["items"])))
        before = standing(fleet)
        done = upgrade(fleet, nvidia_driver_branch="595", nvidia_driver_drain_timeout=10)
        assert done.status != 0 and "[DriverDrainFailed]" in done.output and "default/stubborn-" in done.output, done.output
        # The other pods have gone; nothing else has changed.
        assert {**standing(fleet), "pods": []} == {**before, "pods": []} and loaded(fleet, NODES[0]) == OLD
    wait_for("the stubborn pod to go", lambda: not fleet.get("pods", "-l", "app=stubborn")["items"])
    _wait_for_pods(fleet)


def test_a_node_that_fails_stops_the_rollout_and_stays_cordoned(fleet: Cluster) -> None:
    """The canary comes up with the new driver, but NVML does not answer, from its boot on."""
    drop_in = "[Service]\nExecStartPost=/usr/local/bin/nvmlctl fault add --symbol nvmlDeviceGetCount --times 0 --code UNKNOWN\n"
    fleet.ssh(NODES[0], f"mkdir -p {DROP_INS} && printf '%s' '{drop_in}' > {DROP_INS}/broken.conf")
    before = boots(fleet)
    done = upgrade(fleet, nvidia_driver_branch="595")
    output = flat(done.output)
    assert done.status != 0 and "[DriverNvmlFailed]" in output and "[DriverRolloutStopped]" in output, done.output
    assert f"{NODES[0]}: the rollout stopped here" in output and "The node stays cordoned." in output and f"Not begun: {NODES[1]}" in output
    assert not in_service(fleet, NODES[0]) and in_service(fleet, NODES[1])
    assert loaded(fleet, NODES[0]) == NEW and boots(fleet)[NODES[0]] != before[NODES[0]]
    assert loaded(fleet, NODES[1]) == OLD and boots(fleet)[NODES[1]] == before[NODES[1]]
    _wait_for_pods(fleet)


def test_a_rerun_resumes_and_the_fleet_is_upgraded_with_its_pods(fleet: Cluster) -> None:
    fleet.ssh(NODES[0], "rm", "-r", DROP_INS)
    fleet.emulator(NODES[0], "fault", "clear")
    before, layout = boots(fleet), published_names(fleet, NODES[1])
    done = upgrade(fleet, nvidia_driver_branch="595")
    assert done.status == 0, done.output
    after = boots(fleet)
    for node in NODES:
        assert loaded(fleet, node) == NEW
        assert in_service(fleet, node)
        assert "gpufleet.dra/paused" not in fleet.get("node", node)["metadata"]["annotations"]
        assert published_versions(fleet, node) == [semantic(NEW)] * DEVICES[node]
    assert published_names(fleet, NODES[1]) == layout, "the MIG layout is back"
    assert after[NODES[0]] == before[NODES[0]] and after[NODES[1]] != before[NODES[1]], "the canary had its reboot"
    _wait_for_pods(fleet)


def test_an_upgraded_fleet_is_left_alone(fleet: Cluster) -> None:
    before = standing(fleet)
    done = upgrade(fleet, nvidia_driver_branch="595")
    assert done.status == 0 and done.changed == 0, done.output
    assert standing(fleet) == before


def test_a_rollback_leads_to_the_version_before(fleet: Cluster) -> None:
    done = upgrade(fleet, nvidia_driver_branch="595", nvidia_driver_rollback=True)
    assert done.status == 0, done.output
    for node in NODES:
        assert loaded(fleet, node) == OLD and in_service(fleet, node)
        assert published_versions(fleet, node) == [semantic(OLD)] * DEVICES[node]
    _wait_for_pods(fleet)
