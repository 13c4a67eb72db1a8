# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the GPU Operator lacks right after an upgrade, when everything still looks as good as before."""
from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.operator import PLUGIN, daemon_set_gap, deployment_gap, gpu_cluster_gap, plugin_pod_gap
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import Finding

WHERE: dict[str, Any] = {"seconds": 5, "namespace": "gpu-operator"}
DEPLOYMENT = {
    "metadata": {"name": "gpu-operator", "generation": 2},
    "spec": {"replicas": 1},
    "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
}
GPU_CLUSTER = {
    "spec": {"draDriver": {"repository": "r.example", "image": "dra", "version": "v2", "featureGates": {"TimeSlicingSettings": True, "Other": False}}},
    "status": {"state": "ready"},
}


def daemon_set(name: str, image: str = "r.example/dra:v2", gates: str | None = "Other=false,TimeSlicingSettings=true") -> dict[str, Any]:
    env = [] if gates is None else [{"name": "FEATURE_GATES", "value": gates}]
    return {
        "metadata": {"name": name, "generation": 3},
        "spec": {"template": {"spec": {"containers": [{"name": "gpus", "image": image, "env": env}]}}},
        "status": {"observedGeneration": 3, "desiredNumberScheduled": 4, "updatedNumberScheduled": 4},
    }


def code(found: Finding | None) -> str:
    return found.code if found else ""


def changed(raw: dict[str, Any], **status: Any) -> dict[str, Any]:
    result = copy.deepcopy(raw)
    result["status"].update(status)
    return result


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ""),
        ({"observedGeneration": 1}, "OperatorNotUpdated"),
        ({"updatedReplicas": 0}, "OperatorNotUpdated"),
        ({"availableReplicas": 0}, "OperatorNotUpdated"),
        ({"replicas": 2, "availableReplicas": 2}, "OperatorNotUpdated"),
    ],
)
def test_deployment(status: dict[str, Any], expected: str) -> None:
    assert code(deployment_gap([changed(DEPLOYMENT, **status)], **WHERE)) == expected


def test_nothing_there() -> None:
    assert code(deployment_gap([], **WHERE)) == "OperatorNotUpdated"
    absent = gpu_cluster_gap([], seconds=5)
    assert absent and absent.code == "GpuClusterNotReady" and "its state is absent" in absent.cause
    assert code(daemon_set_gap([], gpu_clusters=[GPU_CLUSTER], **WHERE)) == "DaemonSetNotUpdated"
    assert code(plugin_pod_gap([], nodes=[], **WHERE)) == ""


def test_gpu_cluster_tells_the_operators_own_message() -> None:
    assert gpu_cluster_gap([GPU_CLUSTER], seconds=5) is None
    error = {"type": "Error", "status": "True", "message": "no such image"}
    found = gpu_cluster_gap([changed(GPU_CLUSTER, state="notReady", conditions=[{"type": "Ready"}, error])], seconds=5)
    assert found and found.cause == "after 5 s its state is notReady: no such image"


@pytest.mark.parametrize(
    ("plugin", "subject"),
    [
        (daemon_set(PLUGIN), ""),
        (daemon_set(PLUGIN, image="r.example/dra:v1"), f"DaemonSet {PLUGIN}"),
        (daemon_set(PLUGIN, gates="TimeSlicingSettings=true"), f"DaemonSet {PLUGIN}"),
        (daemon_set(PLUGIN, gates=None), f"DaemonSet {PLUGIN}"),
        (changed(daemon_set(PLUGIN), observedGeneration=2), f"DaemonSet {PLUGIN}"),
        (changed(daemon_set(PLUGIN), updatedNumberScheduled=3), f"DaemonSet {PLUGIN}"),
    ],
    ids=["right", "old image", "old gates", "no gates", "not seen", "not rolled out"],
)
def test_plugin_of_the_release_before(plugin: dict[str, Any], subject: str) -> None:
    found = daemon_set_gap([plugin, daemon_set("other", image="x", gates=None)], gpu_clusters=[GPU_CLUSTER], **WHERE)
    assert (found.subject if found else "") == subject


def test_image_by_digest_and_image_of_the_operators_own_choice() -> None:
    for asked, image in (({"repository": "r", "image": "dra", "version": "sha256:ab"}, "r/dra@sha256:ab"), ({}, "whatever:1")):
        assert daemon_set_gap([daemon_set(PLUGIN, image=image, gates=None)], gpu_clusters=[{"spec": {"draDriver": asked}}], **WHERE) is None


def test_every_daemon_set_that_is_late_is_named() -> None:
    late = changed(daemon_set("nvidia-dcgm"), updatedNumberScheduled=0)
    found = daemon_set_gap([late], gpu_clusters=[GPU_CLUSTER], **WHERE)
    assert found and found.subject == f"DaemonSet nvidia-dcgm, {PLUGIN}"


def test_nodes_without_a_ready_plugin_pod_are_named() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pods = [{"metadata": {"name": f"p-{node}", "namespace": "n"}, "spec": {"nodeName": node}, "status": ready} for node in ("n1", "n2")]
    assert plugin_pod_gap(pods, nodes=["n1", "n2"], **WHERE) is None
    pods[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = plugin_pod_gap(pods, nodes=["n1", "n2", "n3"], **WHERE)
    assert found and found.subject == "Node n1, n3"
