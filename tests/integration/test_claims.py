# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A claimed MIG device on the real scheduler, kubelet and plugin: the pod has exactly that instance, by its device nodes and by NVML."""
from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest
from cluster import Cluster, ready, wait_for


class Instance(NamedTuple):
    """What identifies a MIG device from inside a container."""

    parent_minor: int
    parent_uuid: str
    uuid: str
    cap_minors: frozenset[int]


def claim_objects(name: str, profile: str) -> list[dict[str, Any]]:
    selector = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
    request = {"name": "mig", "exactly": {"deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": selector}}]}}
    claim = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    container = {
        "name": "main", "image": "sandbox.local/busybox:1", "imagePullPolicy": "Never",
        "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"], "resources": {"claims": [{"name": "gpu"}]},
    }
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]},
    }
    return [claim, pod]


def allocated(cluster: Cluster, name: str) -> tuple[str, str]:
    """Return the node and device that the scheduler gave to the claim."""
    result = cluster.get("resourceclaim", name)["status"]["allocation"]["devices"]["results"][0]
    return result["pool"], result["device"]


def instance_of(cluster: Cluster, node: str, device: str) -> Instance:
    """Return what NVML and the kernel module on the node say about a device, found by its name."""
    minor, profile_id, start = map(int, re.fullmatch(r"gpu-(\d+)-mig-.*-(\d+)-(\d+)", device).groups())
    gpu = next(gpu for gpu in cluster.nvml(node)["gpus"] if gpu["minor"] == minor)
    found = next(item for item in gpu["mig"]["instances"] if (item["profile_id"], item["start"]) == (profile_id, start))
    compute, = found["compute_instances"]
    folder = f"/proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{found['gpu_instance_id']}"
    access = cluster.ssh(node, "cat", f"{folder}/access", f"{folder}/ci{compute['compute_instance_id']}/access")
    return Instance(minor, gpu["uuid"], compute["uuid"], frozenset(map(int, re.findall(r"DeviceFileMinor: (\d+)", access))))


def seen_from_inside(cluster: Cluster, pod: str) -> Instance:
    """Return the one MIG device that the pod sees; fails when it sees more, less, or another GPU's node."""
    nodes = cluster.kubectl("exec", pod, "--", "sh", "-c", "ls /dev /dev/nvidia-caps").split()
    whole = [int(name.removeprefix("nvidia")) for name in nodes if re.fullmatch(r"nvidia\d+", name)]
    caps = frozenset(int(name.removeprefix("nvidia-cap")) for name in nodes if re.fullmatch(r"nvidia-cap\d+", name))
    answer = json.loads(cluster.kubectl("exec", pod, "--", "nvml-probe"))
    gpu, = answer["gpus"]
    device, = gpu["mig_devices"]
    minor, = whole
    return Instance(minor, gpu["uuid"], device["uuid"], caps)


@pytest.mark.parametrize("profile", ["3g.40gb", "1g.10gb", "2g.48gb"])
def test_a_pod_sees_its_mig_device_and_nothing_else(cluster: Cluster, profile: str) -> None:
    name = f"claim-{profile.replace('.', '')}"
    with cluster.workload(*claim_objects(name, profile)):
        wait_for(f"pod {name} to be ready", lambda: ready(cluster.get("pod", name)))
        node, device = allocated(cluster, name)
        assert seen_from_inside(cluster, name) == instance_of(cluster, node, device)


def test_the_check_above_tells_two_devices_apart(cluster: Cluster) -> None:
    """Two pods of one profile: each must match its own device and not the other's."""
    first, second = "twin-1", "twin-2"
    with cluster.workload(*claim_objects(first, "1g.10gb"), *claim_objects(second, "1g.10gb")):
        for name in (first, second):
            wait_for(f"pod {name} to be ready", lambda name=name: ready(cluster.get("pod", name)))
        mine, other = allocated(cluster, first), allocated(cluster, second)
        assert mine != other
        assert seen_from_inside(cluster, first) == instance_of(cluster, *mine)
        assert seen_from_inside(cluster, first) != instance_of(cluster, *other)
        assert seen_from_inside(cluster, second) == instance_of(cluster, *other)


def test_an_unchanged_deployment_gets_a_whole_gpu_by_extended_resource(cluster: Cluster) -> None:
    pod = claim_objects("whole", "unused")[1]
    del pod["spec"]["resourceClaims"]
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    with cluster.workload(pod):
        wait_for("pod whole to be ready", lambda: ready(cluster.get("pod", "whole")))
        answer = json.loads(cluster.kubectl("exec", "whole", "--", "nvml-probe"))
        gpu, = answer["gpus"]
        assert gpu["mig"] is False and gpu["mig_devices"] == []
        assert gpu["uuid"] in {item["uuid"] for item in cluster.nvml("h100-1")["gpus"] + cluster.nvml("a100-1")["gpus"]}
