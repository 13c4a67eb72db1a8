# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Wrong input on a real fleet: one sentence with the object, the cause, the remedy and a reason code; nothing is touched."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster

NODE = "rtx-1"


@pytest.fixture(autouse=True)
def untouched(cluster: Cluster) -> Iterator[None]:
    """Whatever a test does, the GPUs stay as they are and no call tries to change them."""
    before = cluster.nvml(NODE)["gpus"]
    cluster.emulator(NODE, "mark", "bad input")
    yield
    assert cluster.emulator(NODE, "log", "--since-marker", "--mutating").strip() == ""
    assert cluster.nvml(NODE)["gpus"] == before
    node = cluster.get("node", NODE)
    assert not node["spec"].get("unschedulable")


def refused(cluster: Cluster, reason: str, *words: str, **variables: Any) -> str:
    """Run mig.yml with the variables on NODE; return its output after checking the sentence."""
    done = cluster.playbook("mig", "--limit", NODE, "-e", json.dumps(variables), check=False)
    assert done.status != 0, done.output
    assert "Traceback" not in done.output
    assert f"[{reason}]" in done.output, done.output
    for word in words:
        assert word in done.output, done.output
    return done.output


def test_an_unknown_profile_names_the_offered_ones(cluster: Cluster) -> None:
    refused(cluster, "UnknownProfile", "3g.41gb", "1g.24gb+me.all", "4g.96gb", mig_layouts=[{"match": "all", "instances": {"3g.41gb": 1}}])


def test_an_impossible_layout(cluster: Cluster) -> None:
    refused(cluster, "ImpossibleLayout", "2g.48gb", mig_layouts=[{"match": "all", "instances": {"2g.48gb": 3}}])


def test_a_layout_file_that_is_not_yaml(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "layout.yaml"
    path.write_text("version: v1\nmig-configs: [unclosed\n", encoding="utf-8")
    refused(cluster, "LayoutFileUnreadable", str(path), mig_layouts=[], mig_parted_config=str(path), mig_parted_selected="x")


def test_no_nvml_library(cluster: Cluster) -> None:
    result = cluster.module(NODE, "gpufleet.dra.nvml_info", {"driver_root": "/run/nvidia/driver"}, become=True)
    assert result["reason"] == "NvmlLibraryMissing" and "/run/nvidia/driver" in result["msg"]


def test_an_unknown_model_in_nvmlctl(cluster: Cluster) -> None:
    output = cluster.emulator(NODE, "--dir", "/tmp/no-such-machine", "create", "--gpu", "h1000", check=False)
    assert "h1000" in output and "h100-80gb-hbm3" in output and "Traceback" not in output
    assert "No such file" in cluster.ssh(NODE, "ls", "/tmp/no-such-machine", check=False)


def slice_info(cluster: Cluster, **auth: Any) -> dict[str, Any]:
    result = cluster.module("localhost", "gpufleet.dra.resource_slice_info", auth)
    assert "Traceback" not in json.dumps(result)
    return result


def test_an_api_server_that_is_down(cluster: Cluster, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    text = Path(cluster.kubeconfig).read_text(encoding="utf-8")
    kubeconfig.write_text(text.replace(":6443", ":1"), encoding="utf-8")
    assert text != kubeconfig.read_text(encoding="utf-8")
    result = slice_info(cluster, kubeconfig=str(kubeconfig))
    assert result["reason"] == "ApiUnreachable" and ":1" in result["msg"]
    refused(cluster, "ApiUnreachable", dra_k8s_auth={"kubeconfig": str(kubeconfig)})


def test_an_expired_token(cluster: Cluster) -> None:
    kubeconfig = cluster.sandbox("kubeconfig", "--service-account", "default/default", "--token-expires", "-60").strip()
    token = json.loads(Path(kubeconfig).read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    result = slice_info(cluster, kubeconfig=kubeconfig)
    assert result["reason"] == "ApiUnauthorized" and token not in json.dumps(result)


def test_a_missing_right_is_named(cluster: Cluster) -> None:
    kubeconfig = cluster.sandbox("kubeconfig", "--user", "nobody").strip()
    result = slice_info(cluster, kubeconfig=kubeconfig)
    assert result["reason"] == "ApiForbidden"
    assert "list" in result["msg"] and "resourceslices" in result["msg"]
    refused(cluster, "ApiForbidden", "nodes", dra_k8s_auth={"kubeconfig": kubeconfig})


def test_a_host_whose_node_does_not_exist(cluster: Cluster) -> None:
    refused(cluster, "NodeMissing", "no-such-node", dra_node_name="no-such-node")
    done = cluster.playbook("verify", "--limit", NODE, "-e", "dra_node_name=no-such-node", check=False)
    assert done.status != 0 and "[NodeMissing]" in done.output and "Traceback" not in done.output
