# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""upgrade_driver.yml on a cluster in service: nodes are drained one after the other, pods on claims move, and the devices are published again.

The nodes have no driver to begin with: site.yml installs it from the sandbox's package server. The tests follow one another on one fleet.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import ROOT, Cluster, Done, ready, wait_for
from tests.packages.inventory import role_variables

from sandbox.artifacts import cache_folder
from sandbox.state import RunState

pytestmark = pytest.mark.slow

NAME = "upgrade"
NODES = ("gpu-1", "gpu-2")
GPUS_PER_NODE = 2
OLD, OLD_NEWEST, NEW = "580.173.02", "580.178.04", "595.91.07"
FLEET = {
    "kubernetes": True, "packages": True,
    "nodes": [{"name": name, "gpus": [{"model": "h100-80gb-hbm3", "count": GPUS_PER_NODE}], "driver": "none"} for name in NODES],
}  # fmt: skip
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
    cluster = Cluster(NAME, inventory)
    cluster.sandbox("down")
    try:
        cluster.sandbox("up", "--spec", str(spec))
        cluster.run([*_python("tests.packages"), "publish", "--sandbox", NAME])
        _write_inventory(inventory, role_variables(RunState(cache_folder(), NAME)))
        cluster.playbook("site", *_variables(nvidia_driver_branch="580", nvidia_driver_version=OLD, nvidia_driver_reboot_ok=True))
        cluster.apply(CLAIMED, WORKLOAD)
        _wait_for_pods(cluster)
        yield cluster
    finally:
        cluster.sandbox("down")


def _python(module: str) -> list[str | Path]:
    return [ROOT / ".build" / "venv" / "bin" / "python", "-m", module]


def _write_inventory(folder: Path, variables: dict[str, Any]) -> None:
    """Write an inventory of whole GPUs beside the sandbox's own, with its way to the chart."""
    folder.mkdir()
    (folder / "00-connection").symlink_to(ROOT / "inventories" / "sandbox" / "00-connection")
    settings = {
        "mig_strategy": "none", "gpu_operator_chart_ref": str(ROOT / "sandbox" / "gpu_operator" / "chart"), "gpu_operator_chart_repo_url": "",
        "gpu_operator_helm_binary": "{{ sandbox_bin_dir }}/helm", "dra_verify_report_dir": "{{ sandbox_report_dir }}", **variables,
    }  # fmt: skip
    (folder / "hosts.yml").write_text(yaml.safe_dump({"gpu_nodes": {"hosts": dict.fromkeys(NODES), "vars": settings}}))


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


def published_versions(cluster: Cluster, node: str) -> list[str]:
    """The driver version that each published device of the node has as an attribute."""
    devices = [device for item in cluster.slices(node) for device in item["spec"].get("devices") or []]
    return [device["attributes"]["driverVersion"]["version"] for device in devices]


def semantic(version: str) -> str:
    """A driver version as the plugin publishes it: without leading zeros."""
    return ".".join(str(int(part)) for part in version.split("."))


def test_site_installs_the_driver_and_the_devices_are_published(fleet: Cluster) -> None:
    for node in NODES:
        assert loaded(fleet, node) == OLD
        assert published_versions(fleet, node) == [semantic(OLD)] * GPUS_PER_NODE


def test_a_node_in_service_is_not_changed_without_a_drain(fleet: Cluster) -> None:
    before = boots(fleet)
    done = fleet.playbook("site", *_variables(nvidia_driver_branch="595", nvidia_driver_reboot_ok=True), check=False)
    assert done.status != 0 and "[DriverNodeInService]" in done.output and "upgrade_driver" in done.output, done.output
    assert boots(fleet) == before and all(loaded(fleet, node) == OLD for node in NODES)


def test_a_version_that_is_not_to_be_had_is_refused_before_any_node_is_cordoned(fleet: Cluster) -> None:
    pods = {pod["metadata"]["uid"] for pod in _pods(fleet)}
    done = upgrade(fleet, nvidia_driver_branch="595", nvidia_driver_version="595.99.99")
    assert done.status != 0 and "[DriverVersionUnavailable]" in done.output, done.output
    assert all(in_service(fleet, node) for node in NODES)
    assert {pod["metadata"]["uid"] for pod in _pods(fleet)} == pods


def test_a_node_that_fails_stops_the_rollout_and_stays_cordoned(fleet: Cluster) -> None:
    """The canary does not come up with the new driver: its GPUs do not answer."""
    fleet.ssh(NODES[0], "mkdir", "-p", "/etc/systemd/system/emulated-nvidia-driver.service.d")
    fleet.ssh(NODES[0], "printf '[Service]\\nExecStartPost=/bin/rm -f /proc/driver/nvidia/version\\nExecStartPost=/bin/false\\n'"
              " > /etc/systemd/system/emulated-nvidia-driver.service.d/broken.conf")
    before = boots(fleet)
    done = upgrade(fleet, nvidia_driver_branch="595")
    assert done.status != 0, done.output
    assert NODES[0] in done.output and "cordoned" in done.output
    assert not in_service(fleet, NODES[0]) and in_service(fleet, NODES[1])
    assert loaded(fleet, NODES[1]) == OLD and boots(fleet)[NODES[1]] == before[NODES[1]]
    _wait_for_pods(fleet)


def test_a_rerun_resumes_and_the_fleet_is_upgraded_with_its_pods(fleet: Cluster) -> None:
    fleet.ssh(NODES[0], "rm", "-r", "/etc/systemd/system/emulated-nvidia-driver.service.d")
    before = boots(fleet)
    done = upgrade(fleet, nvidia_driver_branch="595")
    assert done.status == 0, done.output
    after = boots(fleet)
    for node in NODES:
        assert loaded(fleet, node) == NEW
        assert in_service(fleet, node)
        assert "gpufleet.dra/paused" not in fleet.get("node", node)["metadata"]["annotations"]
        assert published_versions(fleet, node) == [semantic(NEW)] * GPUS_PER_NODE
    assert after[NODES[1]] != before[NODES[1]]
    _wait_for_pods(fleet)


def test_an_upgraded_fleet_is_left_alone(fleet: Cluster) -> None:
    pods, before = {pod["metadata"]["uid"] for pod in _pods(fleet)}, boots(fleet)
    done = upgrade(fleet, nvidia_driver_branch="595")
    assert done.status == 0 and done.changed == 0, done.output
    assert boots(fleet) == before and {pod["metadata"]["uid"] for pod in _pods(fleet)} == pods


def test_a_rollback_leads_to_the_version_before(fleet: Cluster) -> None:
    done = upgrade(fleet, nvidia_driver_branch="595", nvidia_driver_rollback=True)
    assert done.status == 0, done.output
    for node in NODES:
        assert loaded(fleet, node) == OLD and in_service(fleet, node)
        assert published_versions(fleet, node) == [semantic(OLD)] * GPUS_PER_NODE
    _wait_for_pods(fleet)
