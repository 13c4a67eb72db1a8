# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The operator stand-in on a real cluster behaves as the operator does where our roles depend on it."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import NAMESPACE, Cluster, wait_for

GPU_CLUSTER = "gpuclusters.nvidia.com/gpu-cluster"
DEPLOY_VALIDATOR = "nvidia.com/gpu.deploy.dra-validator"
#: Managed objects are re-applied at least this often.
RESYNC_S = 65


def _status(cluster: Cluster) -> tuple[str, str, str]:
    """Return the GPUCluster's state and the reason and message of its condition Error."""
    status = cluster.get(GPU_CLUSTER).get("status", {})
    errors = [one for one in status.get("conditions", []) if one["type"] == "Error"]
    return status.get("state", ""), errors[0]["reason"] if errors else "", errors[0]["message"] if errors else ""


def _wait_ready(cluster: Cluster) -> None:
    wait_for("the GPUCluster to be ready", lambda: _status(cluster)[0] == "ready", timeout_s=120)


def _label(cluster: Cluster, node: str, key: str) -> str | None:
    return cluster.get("node", node)["metadata"]["labels"].get(key)


def _pods(cluster: Cluster, node: str, selector: str) -> list[dict[str, Any]]:
    return cluster.get("pods", "-n", NAMESPACE, "-l", selector, "--field-selector", f"spec.nodeName={node}")["items"]


def _nodes(cluster: Cluster, whole_gpus: bool) -> list[str]:
    """Return the nodes whose slices have (or have not) a GPU that is not in MIG mode."""
    found: dict[str, bool] = {}
    for one in cluster.slices():
        types = {device["attributes"]["type"]["string"] for device in one["spec"]["devices"]}
        found[one["spec"]["nodeName"]] = found.get(one["spec"]["nodeName"], False) or "gpu" in types
    return sorted(name for name, has_one in found.items() if has_one is whole_gpus)


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> str:
    """A node with at least one GPU that is not in MIG mode."""
    return _nodes(cluster, whole_gpus=True)[0]


@pytest.fixture
def validator_label(cluster: Cluster, node: str) -> Iterator[str]:
    """The validator's label on that node, put back afterwards."""
    before = _label(cluster, node, DEPLOY_VALIDATOR)
    yield DEPLOY_VALIDATOR
    cluster.kubectl("label", "node", node, f"{DEPLOY_VALIDATOR}={before}", "--overwrite")
    _wait_ready(cluster)


def test_ready_with_the_operators_conditions(cluster: Cluster) -> None:
    _wait_ready(cluster)
    status = cluster.get(GPU_CLUSTER)["status"]
    found = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert found == {"Ready": ("True", "Reconciled"), "Error": ("False", "Ready")}
    assert status["namespace"] == NAMESPACE
    assert "observedGeneration" not in status


def test_plugin_pod_looks_like_the_operators(cluster: Cluster, node: str) -> None:
    pod = cluster.plugin_pod(node)
    assert pod is not None
    labels = pod["metadata"]["labels"]
    assert labels["app"] == labels["app.kubernetes.io/component"] == "nvidia-dra-driver-kubelet-plugin"
    assert labels["app.kubernetes.io/name"] == "nvidia-dra-driver"
    assert [one["name"] for one in pod["spec"]["initContainers"]] == ["driver-validation"]
    assert [one["name"] for one in pod["spec"]["containers"]] == ["gpus"]
    ready_file = cluster.ssh(node, "cat", "/run/nvidia/validations/driver-ready")
    assert "IS_HOST_DRIVER=true" in ready_file


def test_validator_lists_the_gpu_that_it_claims(cluster: Cluster, node: str) -> None:
    (pod,) = _pods(cluster, node, "app=nvidia-operator-validator")
    log = cluster.kubectl("logs", "-n", NAMESPACE, pod["metadata"]["name"], "-c", "gpu-validation")
    (status,) = pod["status"]["resourceClaimStatuses"]
    claim = cluster.get("resourceclaim", "-n", NAMESPACE, status["resourceClaimName"])
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result["adminAccess"] is True
    devices = {device["name"]: device for one in cluster.slices(node) for device in one["spec"]["devices"]}
    assert devices[result["device"]]["attributes"]["uuid"]["string"] in log


def test_edited_device_class_is_put_right_within_a_minute(cluster: Cluster) -> None:
    before = cluster.get("deviceclass", "gpu.nvidia.com")
    cluster.kubectl("patch", "deviceclass", "gpu.nvidia.com", "--type=merge", "-p", '{"spec": {"extendedResourceName": "nvidia.com/gpu"}}')
    wait_for("the DeviceClass to be put right", lambda: cluster.get("deviceclass", "gpu.nvidia.com")["spec"] == before["spec"], RESYNC_S)


def test_false_on_a_deploy_label_keeps_the_operand_away(cluster: Cluster, node: str, validator_label: str) -> None:
    cluster.kubectl("label", "node", node, f"{validator_label}=false", "--overwrite")
    wait_for("the validator to leave", lambda: not _pods(cluster, node, "app=nvidia-operator-validator"))
    _wait_ready(cluster)
    assert _label(cluster, node, validator_label) == "false"


def test_removed_deploy_label_comes_back_as_true(cluster: Cluster, node: str, validator_label: str) -> None:
    cluster.kubectl("label", "node", node, f"{validator_label}-")
    wait_for("the label to come back", lambda: _label(cluster, node, validator_label) == "true")
    wait_for("the validator to be there", lambda: _pods(cluster, node, "app=nvidia-operator-validator"))


def test_label_of_the_clusterpolicy_path_is_deleted(cluster: Cluster, node: str) -> None:
    cluster.kubectl("label", "node", node, "nvidia.com/gpu.deploy.device-plugin=true")
    wait_for("the label to be deleted", lambda: _label(cluster, node, "nvidia.com/gpu.deploy.device-plugin") is None)


def test_validator_on_a_node_with_mig_devices_only_holds_up_the_cluster(cluster: Cluster) -> None:
    """The static-MIG trap: without the label `false` that the mig role sets, one such node makes the GPUCluster notReady."""
    trapped = _nodes(cluster, whole_gpus=False)[0]
    assert _label(cluster, trapped, DEPLOY_VALIDATOR) == "false"
    try:
        cluster.kubectl("label", "node", trapped, f"{DEPLOY_VALIDATOR}-")
        wait_for("the GPUCluster to be notReady", lambda: _status(cluster)[:2] == ("notReady", "OperandNotReady"))
        assert "nvidia-dra-validator" in _status(cluster)[2]
        pods = cluster.get("pods", "-n", NAMESPACE, "-l", "app=nvidia-operator-validator")["items"]
        assert [pod for pod in pods if pod["status"]["phase"] == "Pending"]
    finally:
        cluster.kubectl("label", "node", trapped, f"{DEPLOY_VALIDATOR}=false", "--overwrite")
    _wait_ready(cluster)


def test_plugin_may_not_write_the_slice_of_another_node(cluster: Cluster, tmp_path: Path) -> None:
    here, there = (_nodes(cluster, whole_gpus=True) + _nodes(cluster, whole_gpus=False))[:2]
    pod = cluster.plugin_pod(here)
    assert pod is not None
    bound = ("--bound-object-kind", "Pod", "--bound-object-name", pod["metadata"]["name"], "--bound-object-uid", pod["metadata"]["uid"])
    token = cluster.kubectl("create", "token", "nvidia-dra-driver-kubeletplugin", "-n", NAMESPACE, *bound)
    config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token.strip()}} for user in config["users"]]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))

    def delete(node: str) -> str:
        (name,) = [one["metadata"]["name"] for one in cluster.slices(node)]
        return cluster.kubectl("--kubeconfig", str(kubeconfig), "delete", "resourceslice", name, "--dry-run=server", check=False)

    assert f"the plugin on node {here} may not write a slice of node {there}" in delete(there)
    assert "deleted" in delete(here)


def test_clusterpolicy_beside_the_gpucluster_is_refused(cluster: Cluster) -> None:
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": {}}
    plugins = [pod["metadata"]["uid"] for pod in cluster.get("pods", "-n", NAMESPACE, "-l", "app=nvidia-dra-driver-kubelet-plugin")["items"]]
    cluster.apply(policy)
    # only DaemonSets are watched: an edit of the GPUCluster spares the wait for the next resync
    cluster.kubectl("annotate", GPU_CLUSTER, "gpufleet.dra/look-again=now")
    try:
        wait_for("the conflict to be seen", lambda: _status(cluster)[:2] == ("notReady", "PrerequisiteNotMet"), RESYNC_S)
        wait_for(
            "the ClusterPolicy to be refused",
            lambda: cluster.get("clusterpolicies.nvidia.com/cluster-policy").get("status", {}).get("state") == "notReady",
        )
    finally:
        cluster.kubectl("delete", "clusterpolicies.nvidia.com/cluster-policy")
        cluster.kubectl("annotate", GPU_CLUSTER, "gpufleet.dra/look-again-")
    wait_for("the GPUCluster to be ready again", lambda: _status(cluster)[0] == "ready", RESYNC_S)
    after = [pod["metadata"]["uid"] for pod in cluster.get("pods", "-n", NAMESPACE, "-l", "app=nvidia-dra-driver-kubelet-plugin")["items"]]
    assert after == plugins


def test_crd_admits_one_name_and_prunes_unknown_fields(cluster: Cluster) -> None:
    other = {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "metadata": {"name": "other"}, "spec": {"draDriver": {}}}
    assert "must be 'gpu-cluster'" in cluster.kubectl("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump(other), check=False)
    patch = '{"spec": {"draDriver": {"noSuchField": 1}, "migManager": {"enabled": true}}}'
    pruned = cluster.kubectl("patch", GPU_CLUSTER, "--type=merge", "--dry-run=server", "-o", "yaml", "-p", patch)
    assert "noSuchField" not in pruned
    assert "migManager" not in pruned


def test_uninstall_drains_the_claim_holders_and_removes_the_plugin(restored: Cluster) -> None:
    restored.helm("uninstall", "gpu-operator", "-n", NAMESPACE, "--timeout", "5m")
    assert restored.get("gpuclusters.nvidia.com")["items"] == []
    wait_for("the operands to be gone", lambda: not restored.get("daemonsets", "-n", NAMESPACE)["items"])
    wait_for("the claims to be gone", lambda: not restored.get("resourceclaims", "-n", NAMESPACE)["items"])
    assert restored.get("deviceclasses", "-l", "nvidia.com/gpu-operator.state")["items"] == []
