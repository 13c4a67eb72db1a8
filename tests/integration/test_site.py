# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""site.yml on the demo's fleet: converged, proven, and a second run changes nothing."""
from __future__ import annotations

import json
import shlex

from cluster import Cluster, Done

NODES = ("a100-1", "h100-1", "h200-1", "rtx-1")
LAYOUTS_H100 = ["MIG off"] * 4 + ["1g.10gb + 1g.10gb + 2g.20gb + 3g.40gb"] * 2 + ["7x 1g.10gb"] * 2


def mark(cluster: Cluster) -> None:
    for node in NODES:
        cluster.emulator(node, "mark", "test")


def mutating_calls(cluster: Cluster) -> dict[str, list[dict]]:
    """Return, per node, what changed the emulated GPUs since mark()."""
    calls = {}
    for node in NODES:
        lines = cluster.emulator(node, "log", "--since-marker", "--mutating").splitlines()
        calls[node] = [json.loads(line) for line in lines if line]
    return calls


def verdict(cluster: Cluster) -> dict:
    return json.loads((cluster.report_dir / "verdict.json").read_text(encoding="utf-8"))


def test_the_first_run_proves_every_gpu(cluster: Cluster, first_run: Done) -> None:
    document = verdict(cluster)
    assert document["verdict"] == "right"
    assert {row["node"] for row in document["gpus"]} == set(NODES)
    assert len(document["gpus"]) == 2 + 8 + 2 + 2
    assert all(row["verdict"] == "right" and row["devices_published"] > 0 for row in document["gpus"])
    h100 = [row for row in document["gpus"] if row["node"] == "h100-1"]
    assert [row["devices_published"] for row in sorted(h100, key=lambda row: row["gpu"]["index"])] == [1, 1, 1, 1, 4, 4, 7, 7]
    for node in NODES:
        assert node in first_run.output
    assert str(cluster.report_dir / "verdict.json") in first_run.output
    assert (cluster.report_dir / "junit.xml").exists()


def test_the_second_run_changes_nothing(cluster: Cluster) -> None:
    mark(cluster)
    again = cluster.playbook("site")
    assert again.changed == 0, again.output
    assert mutating_calls(cluster) == {node: [] for node in NODES}


def test_the_call_log_would_show_a_change(cluster: Cluster) -> None:
    """The proof above counts only if the log sees what changes a GPU, even a call that changes nothing in the end."""
    script = "; ".join((
        "from ctypes import *", "nvml = CDLL('libnvidia-ml.so.1')", "nvml.nvmlInit_v2()", "gpu, status = c_void_p(), c_int()",
        "nvml.nvmlDeviceGetHandleByIndex_v2(1, byref(gpu))", "raise SystemExit(nvml.nvmlDeviceSetMigMode(gpu, 1, byref(status)))",
    ))
    mark(cluster)
    cluster.ssh("rtx-1", "python3", "-c", shlex.quote(script))
    call, = mutating_calls(cluster)["rtx-1"]
    assert call["symbol"] == "nvmlDeviceSetMigMode"


def test_check_and_diff_show_what_would_go_and_come_and_change_nothing(cluster: Cluster) -> None:
    before = cluster.nvml("h200-1")
    mark(cluster)
    edited = {"mig_layouts": [{"match": {"index": [0]}, "instances": {"3g.71gb": 1, "1g.18gb": 3}}]}
    done = cluster.playbook("site", "--check", "--diff", "--limit", "h200-1", "-e", json.dumps(edited), check=False)
    uuid = before["gpus"][0]["uuid"]
    gone = [line for line in done.output.splitlines() if line.startswith("-") and uuid in line]
    come = [line for line in done.output.splitlines() if line.startswith("+") and uuid in line]
    assert len(gone) == 1 and "3g.71gb" in gone[0], done.output
    assert len(come) == 3 and all("1g.18gb" in line for line in come), done.output
    assert mutating_calls(cluster)["h200-1"] == []
    assert cluster.nvml("h200-1")["gpus"] == before["gpus"]


def test_a_changed_layout_keeps_what_is_right_and_leaves_the_node_in_service(restored: Cluster) -> None:
    before = restored.nvml("h200-1")["gpus"][0]
    plugin = restored.plugin_pod("h200-1")
    edited = {"mig_layouts": [{"match": {"index": [0]}, "instances": {"3g.71gb": 1, "1g.18gb": 3}}, {"match": {"index": [1]}, "instances": "balanced"}]}
    restored.playbook("site", "--limit", "h200-1", "-e", json.dumps(edited))
    after = restored.nvml("h200-1")["gpus"][0]

    def uuids(gpu: dict) -> set[str]:
        return {compute["uuid"] for instance in gpu["mig"]["instances"] for compute in instance["compute_instances"]}

    assert len(uuids(before) & uuids(after)) == 1 and len(uuids(after)) == 4
    assert restored.plugin_pod("h200-1")["metadata"]["uid"] != plugin["metadata"]["uid"]
    node = restored.get("node", "h200-1")
    assert not node["spec"].get("unschedulable")
    assert not [name for name in node["metadata"].get("annotations", {}) if name.startswith("gpufleet.dra/paused")]
    assert restored.kubectl("get", "gpucluster", "gpu-cluster", "-o", "jsonpath={.status.state}") == "ready"


def test_the_static_mig_trap_is_taken_care_of(cluster: Cluster) -> None:
    """The operator's validator asks for a whole GPU: on nodes without one it would hang and keep the GPUCluster from being ready."""
    labels = {node: cluster.get("node", node)["metadata"]["labels"] for node in NODES}
    assert labels["h100-1"]["nvidia.com/gpu.deploy.dra-validator"] == "true"
    for node in ("h200-1", "rtx-1"):
        assert labels[node]["nvidia.com/gpu.deploy.dra-validator"] == "false"
        assert labels[node]["nvidia.com/gpu.deploy.dra-driver"] == "true"
    validators = cluster.get("pods", "-n", "gpu-operator", "-l", "app=nvidia-operator-validator")["items"]
    assert "h100-1" in {pod["spec"]["nodeName"] for pod in validators}


def test_memory_is_what_nvml_gives_on_real_cards(cluster: Cluster) -> None:
    totals = {gpu["product"]: gpu["memory_mib"] for node in NODES for gpu in cluster.nvml(node)["gpus"]}
    assert totals == {
        "NVIDIA A100 80GB PCIe": 81920, "NVIDIA H100 80GB HBM3": 81559, "NVIDIA H200 NVL": 143771, "NVIDIA RTX PRO 6000 Blackwell Server Edition": 97887,
    }


def test_the_sandbox_stays_below_four_gib(cluster: Cluster) -> None:
    status = json.loads(cluster.sandbox("status", "--json"))
    assert 0 < status["memory_mib"] <= 4096
