# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the roles take care of besides the layout: deploy labels, pods that hold devices, foreign objects, an operator that does not come up."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import BIN, NAMESPACE, Cluster, Done, ready, wait_for
from test_claims import claim_objects

pytestmark = pytest.mark.slow

NODE = "rtx-1"
DEPLOY = "nvidia.com/gpu.deploy."
WHOLE_GPU_OPERANDS = ("dra-validator", "dcgm-exporter-dra", "dcgm-dra")
PLAY = """
- hosts: gpu_nodes
  gather_facts: false
  module_defaults:
    group/kubernetes.core.k8s: "{{ dra_k8s_auth }}"
    group/kubernetes.core.helm: "{{ dra_k8s_auth }}"
  roles: [gpufleet.dra.%s]
"""


@pytest.fixture
def play(cluster: Cluster, tmp_path: Path) -> Callable[..., Done]:
    """A function that runs one role on all hosts of the sandbox's inventory: play(role, *arguments, variable=value, ...)."""
    def run(role: str, *arguments: str, **variables: Any) -> Done:
        path = tmp_path / f"{role}.yml"
        path.write_text(PLAY % role, encoding="utf-8")
        return cluster.run([BIN / "ansible-playbook", "-i", "inventories/sandbox", path, "-e", json.dumps(variables), *arguments], check=False)
    return run


def mig(cluster: Cluster, node: str, layouts: list[dict[str, Any]]) -> Done:
    return cluster.playbook("mig", "--limit", node, "-e", json.dumps({"mig_layouts": layouts}), check=False)


def deploy_labels(cluster: Cluster, node: str) -> dict[str, str]:
    labels = cluster.get("node", node)["metadata"]["labels"]
    return {name: labels[DEPLOY + name] for name in WHOLE_GPU_OPERANDS}


# -- mig: deploy labels -------------------------------------------------------------------------------------------------------------------------

def test_operands_come_back_with_the_first_whole_gpu_and_go_with_the_last(relaid: Cluster) -> None:
    assert deploy_labels(relaid, NODE) == dict.fromkeys(WHOLE_GPU_OPERANDS, "false")
    # What an administrator has turned off himself is not ours to turn on.
    relaid.kubectl("annotate", "node", NODE, "--overwrite", f"gpufleet.dra/deploy-labels-off={DEPLOY}dra-validator,{DEPLOY}dcgm-exporter-dra")
    done = mig(relaid, NODE, [{"match": {"index": 1}, "mode": "disabled"}])
    assert done.status == 0, done.output
    assert deploy_labels(relaid, NODE) == {"dra-validator": "true", "dcgm-exporter-dra": "true", "dcgm-dra": "false"}
    wait_for("a validator on the node", lambda: relaid.get(
        "pods", "-n", NAMESPACE, "-l", "app=nvidia-operator-validator", "--field-selector", f"spec.nodeName={NODE}")["items"])
    again = mig(relaid, NODE, [{"match": {"index": 1}, "mode": "disabled"}])
    assert again.changed == 0, again.output
    # With the last whole GPU all three are ours again, also one that has lost its value.
    relaid.kubectl("label", "node", NODE, "--overwrite", f"{DEPLOY}dcgm-dra=true")
    relaid.playbook("mig", "--limit", NODE)
    assert deploy_labels(relaid, NODE) == dict.fromkeys(WHOLE_GPU_OPERANDS, "false")


# -- mig: pods that hold devices ----------------------------------------------------------------------------------------------------------------

def test_only_claims_on_devices_that_go_stop_a_change(relaid: Cluster) -> None:
    keep = [{"match": {"index": [0, 1, 2, 3]}, "mode": "disabled"}]
    balanced = {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}
    with relaid.workload(*claim_objects("holder", "2g.20gb")):
        wait_for("the pod to be ready", lambda: ready(relaid.get("pod", "holder")))
        before = relaid.nvml("h100-1")["gpus"]
        refused = mig(relaid, "h100-1", [*keep, {"match": {"index": [4, 5]}, "instances": {"3g.40gb": 1, "1g.10gb": 4}}])
        assert refused.status != 0
        assert "[ClaimsInUse]" in refused.output and "default/holder" in refused.output and "The GPUs are as before." in refused.output
        assert relaid.nvml("h100-1")["gpus"] == before
        assert not relaid.get("node", "h100-1")["spec"].get("unschedulable")

        done = mig(relaid, "h100-1", [*keep, {"match": {"index": [4, 5]}, "instances": balanced}, {"match": {"index": 6}, "instances": {"3g.40gb": 2}}])
        assert done.status == 0, done.output
        pod = relaid.get("pod", "holder")
        assert ready(pod) and pod["status"]["containerStatuses"][0]["restartCount"] == 0


# -- gpu_operator -------------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("variables", "reason"), [
    ({"gpu_operator_helm_binary": "/no/such/helm"}, "HelmUnusable"),
    ({"gpu_operator_values": {"clusterPolicy": {"deployCR": True}}}, "ValuesWithoutGpuCluster"),
    ({"gpu_operator_values": {"gpuCluster": {"deployCR": False}}}, "ValuesWithoutGpuCluster"),
    ({"gpu_operator_feature_gates": {"DynamicMIG": True}}, "FeatureGateUnsupported"),
])
def test_the_operator_role_refuses_what_cannot_work(cluster: Cluster, play: Callable[..., Done], variables: dict[str, Any], reason: str) -> None:
    before = cluster.helm("history", "gpu-operator", "-n", NAMESPACE)
    done = play("gpu_operator", **variables)
    assert done.status != 0 and f"[{reason}]" in done.output, done.output
    assert cluster.helm("history", "gpu-operator", "-n", NAMESPACE) == before


def test_the_operator_role_refuses_a_cluster_with_a_cluster_policy(cluster: Cluster, play: Callable[..., Done]) -> None:
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": {}}
    with cluster.workload(policy):
        done = play("gpu_operator")
    assert done.status != 0 and "[ClusterPolicyExists]" in done.output and "cluster-policy" in done.output, done.output


def test_ready_without_a_plugin_on_every_node_is_not_enough(cluster: Cluster, play: Callable[..., Done]) -> None:
    """The GPUCluster goes on saying ready when a node has no plugin at all."""
    cluster.kubectl("label", "node", NODE, "--overwrite", f"{DEPLOY}dra-driver=false")
    try:
        wait_for("the plugin pod to go", lambda: cluster.plugin_pod(NODE) is None)
        done = play("gpu_operator", gpu_operator_timeout=10)
    finally:
        cluster.kubectl("label", "node", NODE, "--overwrite", f"{DEPLOY}dra-driver=true")
        wait_for("the plugin pod to come back", lambda: (pod := cluster.plugin_pod(NODE)) is not None and ready(pod))
    assert done.status != 0 and f"Node {NODE}: " in done.output and "[PluginPodNotReady]" in done.output, done.output


# -- device_classes -----------------------------------------------------------------------------------------------------------------------------

def own_classes(cluster: Cluster) -> dict[str, dict[str, Any]]:
    items = cluster.get("deviceclasses", "-l", "app.kubernetes.io/managed-by=gpufleet.dra")["items"]
    return {item["metadata"]["name"]: item["spec"] for item in items}


@pytest.fixture
def classes(cluster: Cluster, play: Callable[..., Done]) -> Iterator[Cluster]:
    """The cluster for a test that changes our DeviceClasses."""
    yield cluster
    assert play("device_classes").status == 0


def test_own_classes_follow_the_inventory_and_managed_ones_are_left_alone(classes: Cluster, play: Callable[..., Done]) -> None:
    selector = "device.driver == 'gpu.nvidia.com'"
    managed = classes.get("deviceclass", "gpu.nvidia.com")["spec"]
    assert own_classes(classes)["whole-gpu"]["extendedResourceName"] == "nvidia.com/gpu"

    done = play("device_classes", device_classes_own=[{"name": "whole-gpu", "selectors": [selector, "true"]}])
    assert done.changed == 2, done.output
    assert own_classes(classes) == {"whole-gpu": {"selectors": [{"cel": {"expression": selector}}, {"cel": {"expression": "true"}}]}}
    assert play("device_classes", device_classes_own=[{"name": "whole-gpu", "selectors": [selector, "true"]}]).changed == 0

    refused = play("device_classes", device_classes_own=[{"name": "gpu.nvidia.com", "selectors": ["true"]}])
    assert refused.status != 0 and "[ManagedDeviceClass]" in refused.output, refused.output
    assert classes.get("deviceclass", "gpu.nvidia.com")["spec"] == managed

    kept = play("device_classes", device_classes_own=[], device_classes_prune=False)
    assert kept.status == 0 and set(own_classes(classes)) == {"whole-gpu"}
    assert play("device_classes", device_classes_own=[]).status == 0 and own_classes(classes) == {}
