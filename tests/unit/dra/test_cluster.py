# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Raw Kubernetes objects reduced to what is judged."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.claims import held_claims
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.cluster import parse_node, parse_plugin_pod, pod_problem


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": "n"}, "status": status}


READY = [{"type": "Ready", "status": "True"}]
CRASHED = [{"name": "gpus", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
INIT = [{"name": "driver-validation", "ready": False, "state": {"running": {}}}]
PENDING_MAIN = [{"name": "gpus", "ready": False, "state": {"waiting": {"reason": "PodInitializing"}}}]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (pod(conditions=READY, phase="Running"), ""),
        (pod(phase="Pending"), "Pending"),
        (pod(phase="Running", containerStatuses=CRASHED), "gpus: CrashLoopBackOff"),
        (pod(phase="Pending", initContainerStatuses=INIT, containerStatuses=PENDING_MAIN), "Init:0/1 (driver-validation has not finished)"),
        (pod(phase="Running", conditions=[{"type": "Ready", "status": "False"}]), "Running"),
    ],
)
def test_pod_problem(raw: dict[str, Any], problem: str) -> None:
    assert pod_problem(raw) == problem
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert pod_problem(raw) == "Terminating"


def test_plugin_pod() -> None:
    found = parse_plugin_pod(pod(conditions=READY))
    assert found == ("p", "ns", "n", "")


def test_node() -> None:
    raw = {
        "metadata": {"name": "n", "labels": {"nvidia.com/gpu.deploy.dra-driver": "true"}},
        "status": {"nodeInfo": {"machineID": "m"}, "conditions": READY},
    }
    assert parse_node(raw) == ("n", "m", True, "true")
    assert parse_node({"metadata": {"name": "n"}}) == ("n", "", False, None)


def claim(name: str, *devices: str, admin: bool = False, pods: tuple[str, ...] = (), pool: str = "n") -> dict[str, Any]:
    results = [{"driver": "gpu.nvidia.com", "pool": pool, "device": device, "request": "r"} for device in devices]
    if admin:
        results = [dict(result, adminAccess=True) for result in results]
    users = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users},
    }


def test_held_claims() -> None:
    claims = [
        claim("monitoring", "gpu-0", "gpu-1", admin=True),
        claim("elsewhere", "gpu-0", pool="other"),
        {"metadata": {"name": "pending", "namespace": "ns"}},
        claim("work", "gpu-1", "gpu-0", pods=("trainer",)),
        claim("left-over", "gpu-2"),
    ]
    found = held_claims(claims, "gpu.nvidia.com", "n")
    assert [item.text() for item in found] == ["ns/left-over (gpu-2; no pod)", "ns/work (gpu-0, gpu-1; pod trainer)"]
    assert [item.name for item in held_claims(claims, "gpu.nvidia.com", "n", ["gpu-1"])] == ["work"]
    assert held_claims(claims, "gpu.nvidia.com", "n", []) == []
    assert held_claims(claims, "another.driver", "n") == []
