# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the GPU Operator still lacks after an installation or upgrade, from the raw objects that the API server lists.

``ready`` of a GPUCluster is not enough: it has no observedGeneration, so right after an upgrade it is still that of the old release; it says
ready with no GPU node at all; and it knows nothing of single nodes. Hence four looks, in this order: the operator's own Deployment, the
GPUCluster, the DaemonSets that it makes, the plugin's pods. Each function returns the first thing that lacks, or None.
"""
from __future__ import annotations

from typing import Any

from ..reasons import Finding, finding
from .cluster import parse_plugin_pod

PLUGIN = "nvidia-dra-driver-kubelet-plugin"
_GPUS_CONTAINER = "gpus"


def deployment_gap(deployments: list[dict[str, Any]], seconds: int, namespace: str) -> Finding | None:
    """Return OperatorNotUpdated unless the operator's Deployment runs its newest template, and nothing older."""
    for raw in deployments:
        wanted = raw["spec"].get("replicas", 1)
        counts = {raw.get("status", {}).get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
        if _observed(raw) and counts == {wanted}:
            return None
    name = deployments[0]["metadata"]["name"] if deployments else "gpu-operator"
    return finding("OperatorNotUpdated", f"Deployment {name}", seconds=seconds, namespace=namespace)


def gpu_cluster_gap(gpu_clusters: list[dict[str, Any]], seconds: int) -> Finding | None:
    """Return GpuClusterNotReady with the operator's own message unless the GPUCluster is ready."""
    status = gpu_clusters[0].get("status", {}) if gpu_clusters else {}
    state = status.get("state") or "absent"
    if state == "ready":
        return None
    said = [item.get("message") for item in status.get("conditions", ()) if item.get("type") == "Error" and item.get("message")]
    return finding("GpuClusterNotReady", "GPUCluster gpu-cluster", seconds=seconds, found=state, message=said[0] if said else "it says no more")


def daemon_set_gap(
    daemon_sets: list[dict[str, Any]], gpu_clusters: list[dict[str, Any]], seconds: int, namespace: str
) -> Finding | None:
    """Return DaemonSetNotUpdated with the names of those that are not rolled out, or PLUGIN if that is not what the GPUCluster asks for."""
    late = {raw["metadata"]["name"] for raw in daemon_sets if not _rolled_out(raw)}
    plugins = [raw for raw in daemon_sets if raw["metadata"]["name"] == PLUGIN]
    asked = gpu_clusters[0]["spec"]["draDriver"] if gpu_clusters else {}
    if not plugins or not _is_as_asked(plugins[0], asked):
        late.add(PLUGIN)
    return finding("DaemonSetNotUpdated", f"DaemonSet {', '.join(sorted(late))}", seconds=seconds, namespace=namespace) if late else None


def plugin_pod_gap(pods: list[dict[str, Any]], nodes: list[str], seconds: int, namespace: str) -> Finding | None:
    """Return PluginPodNotReady with those of ``nodes`` on which no Ready pod of the plugin runs."""
    ready = {pod.node for pod in map(parse_plugin_pod, pods) if not pod.problem}
    without = sorted(set(nodes) - ready)
    return finding("PluginPodNotReady", f"Node {', '.join(without)}", seconds=seconds, namespace=namespace) if without else None


def _observed(raw: dict[str, Any]) -> bool:
    return raw.get("status", {}).get("observedGeneration") == raw["metadata"]["generation"]


def _rolled_out(raw: dict[str, Any]) -> bool:
    status = raw.get("status", {})
    return _observed(raw) and status.get("updatedNumberScheduled", 0) == status.get("desiredNumberScheduled")


def _is_as_asked(plugin: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether image and feature gates of the plugin are those of the GPUCluster's draDriver."""
    containers = [item for item in plugin["spec"]["template"]["spec"]["containers"] if item["name"] == _GPUS_CONTAINER]
    if not containers:
        return False
    image = _image(asked)
    gates = [item.get("value", "") for item in containers[0].get("env", ()) if item["name"] == "FEATURE_GATES"]
    found = set(gates[-1].split(",")) - {""} if gates else set()
    wanted = {f"{name}={str(value).lower()}" for name, value in (asked.get("featureGates") or {}).items()}
    return image in ("", containers[0]["image"]) and wanted == found


def _image(asked: dict[str, Any]) -> str:
    """Return the image by the operator's rule; empty when the GPUCluster leaves it to the operator's environment."""
    repository, image, version = (asked.get(name) or "" for name in ("repository", "image", "version"))
    if not image or not (repository and version):
        return str(image)
    return f"{repository}/{image}{'@' if version.startswith('sha256:') else ':'}{version}"
