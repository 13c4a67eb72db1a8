# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Real sandboxes of one host: what they leave on the machine, and what they survive."""
from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import H100, RunningSandbox, lasting_differences

from sandbox import artifacts, machine_state, package_server
from sandbox.control_plane.plane import COMPONENTS
from sandbox.nodes import record
from sandbox.processes import PidFile
from sandbox.state import RunState

pytestmark = [pytest.mark.sandbox_up, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

ONE_NODE: dict[str, Any] = {"nodes": [{"name": "n1", "gpus": [{"model": H100, "count": 2}]}]}
PLAIN_HOST: dict[str, Any] = {"kubernetes": False, "packages": True, "nodes": [{"name": "p1", "gpus": [{"model": H100}]}, {"name": "p2"}]}


@pytest.fixture
def before() -> machine_state.MachineState:
    """The machine before a test's sandbox."""
    return machine_state.take()


@pytest.fixture
def sandbox(before: machine_state.MachineState, tmp_path: Path) -> Iterator[RunningSandbox]:
    """A sandbox that is not up yet; taken down afterwards whatever happened."""
    running = RunningSandbox("cleanup-test", tmp_path)
    running.run("down")
    yield running
    running.run("down")


def run_state() -> RunState:
    return RunState(artifacts.cache_folder(), "cleanup-test")


def every_process(state: RunState) -> list[PidFile]:
    """The pid files of all that the sandbox has started on the machine."""
    return [*map(PidFile, state.pids.glob("*.json")), *(record.load(path.parent).pid_file for path in state.nodes.glob("*/node.json"))]


def test_up_and_down_leave_the_machine_as_it_was(before: machine_state.MachineState, sandbox: RunningSandbox) -> None:
    sandbox.up(ONE_NODE)
    while_up = machine_state.differences(before, machine_state.take())
    assert any(line.startswith("links: gfsbx") for line in while_up)
    assert any(line.startswith("cgroups:") for line in while_up)
    assert not [line for line in while_up if line.startswith(("sysctls: vm/", "sysctls: kernel/", "places:", "mounts:", "packet_filter:"))]
    sandbox.run("down")
    assert lasting_differences(before) == []
    assert not run_state().root.exists()


def test_up_recovers_from_the_death_of_everything(before: machine_state.MachineState, sandbox: RunningSandbox) -> None:
    sandbox.up(ONE_NODE)
    sandbox.run("kubectl", "create", "configmap", "kept", "--from-literal=a=b")
    old_boot = sandbox.kubectl("get", "node", "n1")["status"]["nodeInfo"]["bootID"]
    processes = [pid_file.running() for pid_file in every_process(run_state())]
    assert len(processes) == len(COMPONENTS) + 1 and all(processes)
    for process in processes:
        assert process is not None
        process.signal(signal.SIGKILL)
    for process in processes:
        assert process is not None and process.wait_gone(10)
    assert sandbox.status()["running"] is False

    sandbox.up(ONE_NODE)
    assert sandbox.kubectl("get", "configmap", "kept")["data"] == {"a": "b"}
    assert sandbox.kubectl("get", "node", "n1")["status"]["nodeInfo"]["bootID"] != old_boot
    sandbox.run("down")
    assert lasting_differences(before) == []


def test_plain_hosts_have_no_kubernetes_and_run_beside_another_sandbox(
    before: machine_state.MachineState, sandbox: RunningSandbox, tmp_path: Path
) -> None:
    other = RunningSandbox("cleanup-test-2", tmp_path)
    try:
        sandbox.up(PLAIN_HOST)
        other.up(PLAIN_HOST)
        assert sandbox.status()["index"] != other.status()["index"]
        for running in (sandbox, other):
            assert "H100" in running.run("ssh", "p1", "nvidia-smi -L")
            assert running.run("ssh", "p2", "hostname; systemctl is-active kubelet containerd || true").split() == ["p2", "inactive", "inactive"]
        identities = {running.run("ssh", name, "cat /etc/machine-id") for running in (sandbox, other) for name in ("p1", "p2")}
        assert len(identities) == 4
        assert other.command("kubectl", "get", "nodes").stderr == "sandbox: the sandbox cleanup-test-2 has no Kubernetes.\n"
    finally:
        other.run("down")
    sandbox.run("down")
    assert lasting_differences(before) == []


def test_a_package_server_that_died_comes_back_with_up_and_ends_with_down(sandbox: RunningSandbox) -> None:
    sandbox.up(PLAIN_HOST)
    server = package_server.pid_file(run_state())
    first = server.running()
    assert first is not None
    server.stop(grace_s=0)
    assert [row["running"] for row in sandbox.status()["components"] if row["name"] == package_server.NAME] == [False]
    sandbox.up(PLAIN_HOST)
    second = server.running()
    assert second is not None and second != first
    sandbox.run("down")
    assert not second.alive()


def test_hosts_cannot_change_the_machine(before: machine_state.MachineState, sandbox: RunningSandbox) -> None:
    sandbox.up(PLAIN_HOST)
    swappiness = Path("/proc/sys/vm/swappiness").read_text().strip()
    # the values that hold now: should a host be able to set them, nothing happens to the machine
    for refused in ('date --set="@$(date +%s)"', f"sysctl --write vm.swappiness={swappiness}", "ip route get 192.0.2.1"):
        done = sandbox.command("ssh", "p1", refused)
        assert done.returncode != 0, f"{refused}: {done.stdout}"
    sandbox.run("ssh", "p1", "sysctl --write kernel.panic=77")  # kubelet writes this one: the host has a copy of its own
    assert sandbox.run("ssh", "p1", "cat /proc/sys/kernel/panic") == "77\n"
    changed = machine_state.differences(before, machine_state.take())
    assert [line for line in changed if line.startswith(("sysctls: kernel", "sysctls: vm", "the clock"))] == []
