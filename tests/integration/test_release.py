# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A new release of the GPU Operator: the role ends when the fleet runs it, and not before. DeviceClasses that were edited by hand come back."""
from __future__ import annotations

import json
from typing import Any

import pytest
from cluster import BIN, NAMESPACE, PLUGIN, Cluster, Done, ready

pytestmark = pytest.mark.slow

PLAY = """
- hosts: gpu_nodes
  gather_facts: false
  module_defaults:
    group/kubernetes.core.k8s: "{{ dra_k8s_auth }}"
    group/kubernetes.core.helm: "{{ dra_k8s_auth }}"
  roles: [gpufleet.dra.gpu_operator, gpufleet.dra.device_classes]
"""


def play(cluster: Cluster, tmp_path: Any, **variables: Any) -> Done:
    path = tmp_path / "release.yml"
    path.write_text(PLAY, encoding="utf-8")
    return cluster.run([BIN / "ansible-playbook", "-i", "inventories/sandbox", path, "-e", json.dumps(variables)], check=False)


def gates(pod: dict[str, Any]) -> list[str]:
    container = next(item for item in pod["spec"]["containers"] if item["name"] == "gpus")
    return [item["value"] for item in container["env"] if item["name"] == "FEATURE_GATES"]


def test_the_role_ends_when_every_plugin_runs_the_new_release(restored: Cluster, tmp_path: Any) -> None:
    """Right after the upgrade the GPUCluster and the DaemonSets still say ready, for the release before."""
    for variables, expected in (({"gpu_operator_feature_gates": {"TimeSlicingSettings": True}}, ["TimeSlicingSettings=true"]), ({}, [])):
        done = play(restored, tmp_path, **variables)
        assert done.status == 0, done.output
        pods = restored.get("pods", "-n", NAMESPACE, "-l", PLUGIN)["items"]
        assert len(pods) == 4
        assert [gates(pod) for pod in pods] == [expected] * 4
        assert all(ready(pod) for pod in pods)
    assert play(restored, tmp_path).changed == 0


def test_a_class_that_was_edited_by_hand_is_put_right(restored: Cluster, tmp_path: Any) -> None:
    before = restored.get("deviceclass", "whole-gpu")["spec"]
    restored.kubectl("patch", "deviceclass", "whole-gpu", "--type=merge", "-p", json.dumps({"spec": {"selectors": [{"cel": {"expression": "true"}}]}}))
    done = play(restored, tmp_path)
    assert done.status == 0, done.output
    assert restored.get("deviceclass", "whole-gpu")["spec"] == before
