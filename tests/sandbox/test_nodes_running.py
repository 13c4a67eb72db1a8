# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One running sandbox of one GPU node: identities, nodes, pods, and what `up` does to it."""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import H100, RunningSandbox

from sandbox import artifacts
from sandbox.control_plane.plane import COMPONENTS
from sandbox.nodes import record
from sandbox.processes import PidFile
from sandbox.state import RunState

pytestmark = [pytest.mark.sandbox_up, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

NAME = "nodes-test"
ONE_NODE: dict[str, Any] = {"nodes": [{"name": "n1", "gpus": [{"model": H100, "count": 2}]}]}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSandbox]:
    """The running sandbox. Tests leave it running, but for the last one."""
    running = RunningSandbox(NAME, tmp_path_factory.mktemp("spec"))
    running.run("down")
    try:
        running.up(ONE_NODE)
        yield running
    finally:
        running.run("down")


@pytest.fixture
def state() -> RunState:
    return RunState(artifacts.cache_folder(), NAME)


def every_process(state: RunState) -> list[PidFile]:
    """The pid files of all that the sandbox has started on the machine."""
    return [*map(PidFile, state.pids.glob("*.json")), *(record.load(path.parent).pid_file for path in state.nodes.glob("*/node.json"))]


def kubectl_as(sandbox: RunningSandbox, kubeconfig: str, *arguments: str) -> str:
    """Return what kubectl says on stderr as the user of a kubeconfig."""
    return sandbox.command("kubectl", f"--kubeconfig={kubeconfig.strip()}", *arguments).stderr


def test_a_second_up_changes_nothing_and_is_fast(sandbox: RunningSandbox, state: RunState) -> None:
    pids = [pid_file.read() for pid_file in every_process(state)]
    started = time.monotonic()
    assert "is up already" in sandbox.up(ONE_NODE)
    assert time.monotonic() - started < 5
    assert [pid_file.read() for pid_file in every_process(state)] == pids


def test_users_have_only_the_rights_that_they_were_given(sandbox: RunningSandbox) -> None:
    nobody = sandbox.run("kubeconfig", "--user", "jane", "--group", "readers")
    assert 'User "jane" cannot list resource "nodes"' in kubectl_as(sandbox, nobody, "get", "nodes")
    sandbox.run("kubectl", "create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers")
    assert kubectl_as(sandbox, nobody, "get", "pods") == "No resources found in default namespace.\n"


def test_tokens_are_bound_and_expire(sandbox: RunningSandbox) -> None:
    sandbox.run("kubectl", "create", "serviceaccount", "robot")
    valid = sandbox.run("kubeconfig", "--service-account", "default/robot")
    assert 'User "system:serviceaccount:default:robot" cannot list' in kubectl_as(sandbox, valid, "get", "nodes")
    expired = sandbox.run("kubeconfig", "--service-account", "default/robot", "--token-expires", "-60")
    assert "You must be logged in to the server" in kubectl_as(sandbox, expired, "get", "nodes")
    missing = sandbox.command("kubeconfig", "--service-account", "default/nobody")
    assert missing.stderr == "sandbox: there is no service account default/nobody; create it first.\n"
    sandbox.run("kubectl", "delete", "serviceaccount", "robot")
    deadline = time.monotonic() + 30  # the API server remembers a good token for some seconds
    while "You must be logged in to the server" not in kubectl_as(sandbox, valid, "get", "nodes"):
        assert time.monotonic() < deadline, "the token outlives its service account"
        time.sleep(0.5)


def test_a_kubelet_may_touch_its_own_node_only(sandbox: RunningSandbox, state: RunState) -> None:
    kubelet = str(state.nodes / "n1" / "upper" / "etc" / "kubernetes" / "kubelet.conf")
    assert kubectl_as(sandbox, kubelet, "label", "node", "n1", "mine=yes") == ""
    assert "is not allowed to modify labels" in kubectl_as(sandbox, kubelet, "label", "node", "n1", "node-restriction.kubernetes.io/mine=yes")
    assert "only its own Node object" in kubectl_as(sandbox, kubelet, "get", "node", "other")


def test_nobody_reaches_a_kubelet_without_a_certificate(sandbox: RunningSandbox, state: RunState) -> None:
    address = record.load(state.nodes / "n1").address
    request = f"import urllib.request,ssl;urllib.request.urlopen('https://{address}:10250/pods',context=ssl._create_unverified_context())"
    assert "401: Unauthorized" in sandbox.command("ssh", "n1", f'python3 -c "{request}"').stderr


def test_a_pod_sees_the_host_and_not_the_machine(sandbox: RunningSandbox) -> None:
    script = "cat /proc/sys/kernel/random/boot_id; grep -c nvidia /proc/devices; echo 1 2>/dev/null > /proc/sys/vm/swappiness || echo refused"
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "view"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "c", "image": "sandbox.local/busybox:1", "imagePullPolicy": "Never",
                "command": ["sh", "-c", script], "securityContext": {"privileged": True},
            }],
        },
    }
    wait_for_service_account(sandbox)
    sandbox.run("kubectl", "create", "--filename", write(sandbox, pod))
    sandbox.run("kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/view", "--timeout=60s")
    boot_id = sandbox.kubectl("get", "node", "n1")["status"]["nodeInfo"]["bootID"]
    assert sandbox.run("kubectl", "logs", "view").split() == [boot_id, "3", "refused"]
    assert boot_id != Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    sandbox.run("kubectl", "delete", "pod", "view", "--now")


def test_nodes_come_and_go(sandbox: RunningSandbox, state: RunState) -> None:
    sandbox.run("node", "add", "n2", "--gpus", "h200-nvl:1")
    assert {item["metadata"]["name"] for item in sandbox.kubectl("get", "nodes")["items"]} == {"n1", "n2"}
    assert "H200" in sandbox.run("emulator", "n2", "show")
    assert sandbox.command("node", "add", "n2").stderr.endswith("sandbox: the sandbox nodes-test has a node n2 already.\n")
    sandbox.run("node", "remove", "n2")
    assert {item["metadata"]["name"] for item in sandbox.kubectl("get", "nodes")["items"]} == {"n1"}
    assert not (state.nodes / "n2").exists()
    assert "n2" not in (state.ssh / "known_hosts").read_text()


def test_a_reboot_loses_what_hopper_loses_and_a_power_cut_too(sandbox: RunningSandbox) -> None:
    for interruption in (["node", "reboot", "n1"], ["node", "kill", "n1"]):
        sandbox.run("emulator", "n1", "mode", "0", "on")
        sandbox.run("emulator", "n1", "repartition", "0", "1g.10gb@0")
        sandbox.run("ssh", "n1", "touch /run/volatile /var/lib/lasting")
        assert "1g.10gb" in sandbox.run("emulator", "n1", "show")
        sandbox.run(*interruption)
        if interruption[1] == "kill":
            assert [node["running"] for node in sandbox.status()["nodes"]] == [False]
            sandbox.run("node", "start", "n1")
        shown = sandbox.run("emulator", "n1", "show")
        assert "1g.10gb" not in shown and "MIG on" not in shown
        assert sandbox.run("ssh", "n1", "ls /run/volatile /var/lib/lasting 2>/dev/null || true").split() == ["/var/lib/lasting"]
        assert sandbox.run("ssh", "n1", "systemctl --failed --no-legend") == ""


def test_a_component_that_dies_is_named_with_the_end_of_its_log(sandbox: RunningSandbox, state: RunState) -> None:
    etcd = state.root / "etcd"
    sandbox.run("node", "kill", "n1")
    for name in reversed(COMPONENTS):
        PidFile(state.pids / f"{name}.json").stop(grace_s=0)
    for snapshot in (etcd / "member" / "wal").iterdir():
        snapshot.write_bytes(b"not a write-ahead log")
    done = sandbox.command("up", "--spec", str(sandbox.folder / "fleet.yml"))
    assert done.returncode == 1
    assert "sandbox: etcd has ended. Its log ends with:\n" in done.stderr
    shown = done.stderr.partition("Its log ends with:\n")[2].rstrip().splitlines()
    assert shown == (state.logs / "etcd.log").read_text().rstrip().splitlines()[-20:]


def write(sandbox: RunningSandbox, document: dict[str, Any]) -> str:
    path = sandbox.folder / "object.json"
    path.write_text(json.dumps(document))
    return str(path)


def wait_for_service_account(sandbox: RunningSandbox) -> None:
    """The controller manager makes it some moments after the namespace."""
    deadline = time.monotonic() + 30
    while sandbox.command("kubectl", "get", "serviceaccount", "default").returncode:
        assert time.monotonic() < deadline
        time.sleep(0.2)
