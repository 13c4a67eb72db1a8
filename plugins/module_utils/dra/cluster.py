# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster as a verification sees it: raw Kubernetes objects reduced to the few fields that are judged."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .slices import Pool

DEPLOY_LABEL = "nvidia.com/gpu.deploy.dra-driver"


class NodeRecord(NamedTuple):
    """One Node. ``ready`` is its condition Ready; ``deploy_label`` is the value of nvidia.com/gpu.deploy.dra-driver, or None."""

    name: str
    machine_id: str
    ready: bool
    deploy_label: str | None


class PluginPod(NamedTuple):
    """One pod of the DRA plugin. ``problem`` is empty when it is ready, else what it waits for."""

    name: str
    namespace: str
    node: str
    problem: str


class Cluster(NamedTuple):
    """One snapshot. ``pools`` are those of the driver that was asked for."""

    nodes: dict[str, NodeRecord]
    pools: list[Pool]
    plugin_pods: list[PluginPod]

    def pools_of(self, node: str) -> list[Pool]:
        """Return the pools whose slices belong to ``node``."""
        return [pool for pool in self.pools if pool.node_name == node]

    def plugin_pods_of(self, node: str) -> list[PluginPod]:
        """Return the plugin pods bound to ``node``."""
        return [pod for pod in self.plugin_pods if pod.node == node]


def parse_node(raw: dict[str, Any]) -> NodeRecord:
    """Return the record of one Node."""
    status = raw.get("status") or {}
    info = status.get("nodeInfo") or {}
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
    return NodeRecord(
        name=raw["metadata"]["name"],
        machine_id=info.get("machineID", ""),
        ready=conditions.get("Ready") == "True",
        deploy_label=(raw["metadata"].get("labels") or {}).get(DEPLOY_LABEL),
    )


def parse_plugin_pod(raw: dict[str, Any]) -> PluginPod:
    """Return the record of one plugin pod."""
    metadata = raw["metadata"]
    return PluginPod(
        name=metadata["name"],
        namespace=metadata["namespace"],
        node=(raw.get("spec") or {}).get("nodeName") or "",
        problem=pod_problem(raw),
    )


def pod_problem(raw: dict[str, Any]) -> str:
    """Return why a pod is not ready, as kubectl would show it (Terminating, Init:0/1, gpus: CrashLoopBackOff, Pending); empty when it is."""
    status = raw.get("status") or {}
    if raw["metadata"].get("deletionTimestamp"):
        return "Terminating"
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
    if conditions.get("Ready") == "True":
        return ""
    unfinished_init = [item for item in status.get("initContainerStatuses") or () if not item.get("ready")]
    waiting = _waiting_reasons([*unfinished_init, *(status.get("containerStatuses") or ())])
    if waiting:
        return ", ".join(waiting)
    if unfinished_init:
        total = len(status["initContainerStatuses"])
        return f"Init:{total - len(unfinished_init)}/{total} ({unfinished_init[0]['name']} has not finished)"
    return status.get("phase") or "Pending"


def _waiting_reasons(statuses: Iterable[dict[str, Any]]) -> list[str]:
    ordinary = {"PodInitializing", "ContainerCreating"}
    found = []
    for status in statuses:
        state = status.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        if reason and reason not in ordinary and not status.get("ready"):
            found.append(f"{status['name']}: {reason}")
    return found
