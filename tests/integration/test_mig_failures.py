# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Role mig when a change does not come to its end: what is said, what becomes of the node, what the next run does."""
from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cluster import BIN, ROOT, Cluster, Done, ready, wait_for
from test_claims import claim_objects

NODE, AMPERE = "rtx-1", "a100-1"
SECOND_OFF = [{"match": {"index": 1}, "mode": "disabled"}]
ALL_OFF = [{"match": "all", "mode": "disabled"}]


def mig(cluster: Cluster, node: str, *arguments: str, **variables: Any) -> Done:
    return cluster.playbook("mig", "--limit", node, "-e", json.dumps(variables), *arguments, check=False)


def in_service(cluster: Cluster, node: str) -> bool:
    found = cluster.get("node", node)
    return not found["spec"].get("unschedulable") and "gpufleet.dra/paused" not in found["metadata"]["annotations"]


def device_names(cluster: Cluster, node: str) -> set[str]:
    return {device["name"] for item in cluster.slices(node) for device in item["spec"].get("devices") or []}


@contextmanager
def held(cluster: Cluster, node: str, gpu: str) -> Iterator[None]:
    """A client holds the GPU, so nothing on it can be destroyed or reset."""
    cluster.emulator(node, "set", gpu, "held=on")
    try:
        yield
    finally:
        cluster.emulator(node, "set", gpu, "held=off")


def test_what_a_first_run_left_half_changed_is_not_put_back_by_a_second_that_fails_at_once(relaid: Cluster) -> None:
    with held(relaid, NODE, "1"):
        first = mig(relaid, NODE, mig_layouts=ALL_OFF)
        assert "GPU 0 is as wanted; GPU 1 is as before" in " ".join(first.output.split()) and not in_service(relaid, NODE), first.output
        second = mig(relaid, NODE, mig_layouts=ALL_OFF)
    assert second.status != 0
    assert "GPU 1 is as before" in " ".join(second.output.split()) and "the node stays out of service" in second.output, second.output
    assert not in_service(relaid, NODE) and relaid.plugin_pod(NODE) is None
    assert mig(relaid, NODE, mig_layouts=ALL_OFF).status == 0
    assert in_service(relaid, NODE) and device_names(relaid, NODE) == {"gpu-0", "gpu-1"}


def test_a_layout_that_would_stop_the_plugin_is_refused_before_anything_changes(relaid: Cluster) -> None:
    before = device_names(relaid, NODE)
    done = mig(relaid, NODE, mig_layouts=[{"match": "all", "instances": {"1c.2g.48gb": 2}}])
    assert done.status != 0 and "[DividedInstance]" in done.output and "with 1c and 1c" in " ".join(done.output.split()), done.output
    assert in_service(relaid, NODE) and device_names(relaid, NODE) == before


@pytest.mark.slow
def test_an_ampere_that_waits_for_a_reset_does_not_keep_the_node_out_of_service(relaid: Cluster) -> None:
    ours: dict[str, Any] = {"mig_parted_config": None, "mig_parted_selected": None, "mig_allow_reset": False}
    emptied = mig(relaid, AMPERE, **ours, mig_layouts=[{"match": "all", "instances": {}}])
    assert emptied.status == 0 and device_names(relaid, AMPERE) == set(), emptied.output
    with held(relaid, AMPERE, "0"):
        done = mig(relaid, AMPERE, **ours, mig_layouts=ALL_OFF)
    assert done.status != 0
    said = " ".join(done.output.split())
    assert "[ResetRequired] The node was put back as it was." in said and "GPU 1 is as wanted" in said, done.output
    assert in_service(relaid, AMPERE) and ready(relaid.plugin_pod(AMPERE) or {})
    assert device_names(relaid, AMPERE) == {"gpu-1"}


@pytest.mark.slow
def test_a_host_that_is_lost_while_the_layout_is_made(relaid: Cluster) -> None:
    variables = {"mig_layouts": SECOND_OFF, "mig_on_busy": "wait", "mig_timeout": 20}
    command = [BIN / "ansible-playbook", "-i", "inventories/sandbox", "playbooks/mig.yml", "--limit", NODE, "-e", json.dumps(variables)]
    with held(relaid, NODE, "1"), tempfile.TemporaryDirectory(prefix="cp") as sockets:
        relaid.emulator(NODE, "mark")
        environment = {**relaid.environment, "ANSIBLE_SSH_CONTROL_PATH_DIR": sockets}
        play = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        wait_for("the node to be out of service", lambda: relaid.plugin_pod(NODE) is None)
        wait_for("the layout to be tried", lambda: "nvmlGpuInstanceDestroy" in relaid.emulator(NODE, "log", "--since-marker"))
        for socket in Path(sockets).iterdir():
            subprocess.run(["ssh", "-o", f"ControlPath={socket}", "-O", "exit", NODE], check=True, capture_output=True)
        output = play.communicate(timeout=120)[0]
    assert play.returncode != 0
    said = " ".join(output.split())
    assert "the host was lost while its layout was made" in said and "the node stays out of service" in said, output
    assert not in_service(relaid, NODE)


def test_check_mode_shows_the_diff_of_a_node_in_use_and_warns_of_its_pods(relaid: Cluster) -> None:
    with relaid.workload(*claim_objects("holder", "2g.48gb")):
        wait_for("the pod to be ready", lambda: ready(relaid.get("pod", "holder")))
        done = mig(relaid, NODE, "--check", "--diff", mig_layouts=ALL_OFF)
    assert done.status == 0, done.output
    assert "[ClaimsInUse]" in done.output and "-GPU-" in done.output
    assert in_service(relaid, NODE)


@pytest.mark.slow
def test_waiting_for_pods_goes_on_when_they_have_ended(relaid: Cluster) -> None:
    variables = {"mig_layouts": ALL_OFF, "mig_on_busy": "wait", "mig_timeout": 120}
    command = [BIN / "ansible-playbook", "-i", "inventories/sandbox", "playbooks/mig.yml", "--limit", NODE, "-e", json.dumps(variables)]
    with relaid.workload(*claim_objects("holder", "2g.48gb")):
        wait_for("the pod to be ready", lambda: ready(relaid.get("pod", "holder")))
        play = subprocess.Popen(command, cwd=ROOT, env=relaid.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_for("the node to be cordoned", lambda: not in_service(relaid, NODE))
        assert relaid.plugin_pod(NODE) is not None, "the plugin stays while the pod needs it"
    output = play.communicate(timeout=120)[0]
    assert play.returncode == 0, output
    assert device_names(relaid, NODE) == {"gpu-0", "gpu-1"}
