# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Spec files and command lines: what is wrong is told in one sentence that names the place."""
from __future__ import annotations

import ctypes
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sandbox import cli, inventory, lifecycle, limits, spec
from sandbox.artifacts import Settings
from sandbox.errors import SandboxError
from sandbox.nodes.hosts import Hosts
from sandbox.state import RunState


def test_the_default_spec_is_the_demo_fleet() -> None:
    fleet = spec.load(spec.DEFAULT_SPEC)
    assert fleet.kubernetes
    assert {node.name: sum(group.count for group in node.gpus) for node in fleet.nodes} == {"a100-1": 2, "h100-1": 8, "h200-1": 2, "rtx-1": 2}


def test_a_node_without_gpus_and_a_gpu_without_count() -> None:
    fleet = spec.parse({"kubernetes": False, "nodes": [{"name": "a"}, {"name": "b", "gpus": [{"model": "h200-nvl"}]}]}, "s")
    assert fleet == spec.FleetSpec(False, (spec.NodeSpec("a"), spec.NodeSpec("b", (spec.GpuGroup("h200-nvl", 1),))))
    assert spec.parse_node(fleet.nodes[1].as_dict(), "s") == fleet.nodes[1]


def test_a_node_says_what_of_it_is_not_as_usual() -> None:
    raw = {"name": "a", "gpus": [], "system": "el9", "driver": "none", "nvswitches": 4, "headers": False}
    fleet = spec.parse({"kubernetes": False, "packages": True, "nodes": [raw]}, "s")
    assert fleet.packages
    assert fleet.nodes[0].as_dict() == raw


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (None, "s: expected a mapping with the keys kubernetes, nodes, packages."),
        ({"nodes": []}, "s: nodes must be a list of at least one node."),
        ({"nodes": [{"name": "a"}], "node": 1}, "s: unknown key 'node'; allowed are kubernetes, nodes, packages."),
        ({"kubernetes": "yes", "nodes": [{"name": "a"}]}, "s: kubernetes is 'yes'; give true or false."),
        ({"nodes": [{"name": "Bad_Name"}]}, "s: nodes[0]: name is 'Bad_Name'; give at most 30 lower-case letters, digits and inner hyphens."),
        ({"nodes": [{"name": "a"}, {"name": "a"}]}, "s: two nodes are named a."),
        ({"nodes": [{"name": f"n{number}"} for number in range(61)]}, "s: 61 nodes are more than the 60 that one sandbox has addresses for."),
        ({"nodes": [{"name": "a", "gpus": {}}, {"name": "b", "gpus": "x"}]}, "s: nodes[1]: gpus must be a list of {model: ..., count: ...}."),
        ({"nodes": [{"name": "a", "gpus": [{"count": 1}]}]}, "s: nodes[0].gpus[0]: model is None; give one that `nvmlctl models` lists."),
        ({"nodes": [{"name": "a", "gpus": [{"model": "m", "count": 0}]}]}, "s: nodes[0].gpus[0]: count is 0; give a number of at least 1."),
        ({"nodes": [{"name": "a", "gpus": [{"model": "m", "count": True}]}]}, "s: nodes[0].gpus[0]: count is True; give a number of at least 1."),
        ({"packages": 1, "nodes": [{"name": "a"}]}, "s: packages is 1; give true or false."),
        ({"nodes": [{"name": "a", "system": "el8"}]},
         "s: nodes[0]: system is 'el8'; give one of debian12, debian13, ubuntu2404, el9, el10, sles15."),
        ({"nodes": [{"name": "a", "driver": "absent"}]}, "s: nodes[0]: driver is 'absent'; give one of preinstalled, none."),
        ({"nodes": [{"name": "a", "nvswitches": 19}]}, "s: nodes[0]: nvswitches is 19; give a number from 0 to 18."),
        ({"nodes": [{"name": "a", "nouveau": "no"}]}, "s: nodes[0]: nouveau is 'no'; give true or false."),
        ({"nodes": [{"name": "a", "system": "el9"}]},
         "s: nodes of Kubernetes have the system debian12; other systems need kubernetes: false."),
        ({"nodes": [{"name": "a", "gpus": [{"model": "m", "count": 17}]}]}, "s: nodes[0]: 17 GPUs are more than the 16 that a node can have."),
    ],
)
def test_a_wrong_spec_is_told_in_one_sentence(document: Any, sentence: str) -> None:
    with pytest.raises(SandboxError) as caught:
        spec.parse(document, "s")
    assert str(caught.value) == sentence


def test_a_spec_that_is_not_yaml_or_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yml"
    with pytest.raises(SandboxError, match=f"the spec file {file} cannot be read: No such file or directory."):
        spec.load(file)
    file.write_text("nodes:\n  - name: [\n")
    with pytest.raises(SandboxError, match=f"the spec file {file} line 3 is not YAML: "):
        spec.load(file)


def test_gpus_of_the_command_line() -> None:
    assert spec.parse_gpus("h200-nvl:2,a100-80gb-pcie") == [{"model": "h200-nvl", "count": 2}, {"model": "a100-80gb-pcie", "count": 1}]
    assert spec.parse_gpus("") == []
    with pytest.raises(SandboxError, match=r"--gpus h200-nvl:two: the count 'two' is not a number\."):
        spec.parse_gpus("h200-nvl:two")


@pytest.mark.skipif(os.geteuid() != 0, reason="the command line wants root")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--name", "No Good", "status"], "the sandbox name 'No Good' cannot be used; give at most 20 lower-case letters, digits and inner hyphens."),
        (["--name", "absent", "kubectl", "get", "nodes"], "there is no sandbox absent; start it with `python -m sandbox --name absent up`."),
        (["--name", "absent", "node", "kill", "n1"], "there is no sandbox absent; start it with `python -m sandbox --name absent up`."),
    ],
)
def test_wrong_commands(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUFLEET_SANDBOX_CACHE", str(tmp_path))
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err == f"sandbox: {sentence}\n"


@pytest.mark.parametrize(
    ("arguments", "passed_on"),
    [
        (["kubectl", "--kubeconfig=x", "get", "nodes", "-o", "json"], ["--kubeconfig=x", "get", "nodes", "-o", "json"]),
        (["--name", "a", "ssh", "n1", "-v", "ls", "--name"], ["-v", "ls", "--name"]),
        (["--name=a", "emulator", "n1", "show", "--json"], ["show", "--json"]),
        (["--name", "ssh", "status", "--json"], []),
        (["node", "kill", "n1"], []),
        (["ssh"], []),
        ([], []),
    ],
)
def test_arguments_for_another_program_are_passed_on_as_they_are(arguments: list[str], passed_on: list[str]) -> None:
    own, rest = cli._split(arguments)
    assert rest == passed_on and own + rest == arguments


def test_without_root_everything_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(["up"]) == 1
    assert capsys.readouterr().err == "sandbox: it makes namespaces, cgroups and network links: run it as root.\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="the command line wants root")
def test_status_and_down_of_a_sandbox_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GPUFLEET_SANDBOX_CACHE", str(tmp_path))
    assert cli.main(["--name", "absent", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "absent", "exists": False, "running": False}
    assert cli.main(["--name", "absent", "down"]) == 0


def test_a_cache_on_an_overlay_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lifecycle.cache_problems(tmp_path / "plain") == []
    told = subprocess.CompletedProcess([], 0, "overlay\n", "")
    monkeypatch.setattr(lifecycle.subprocess, "run", lambda *_, **__: told)
    (problem,) = lifecycle.cache_problems(tmp_path)
    assert problem.startswith(f"{tmp_path} lies on an overlay file system")


def test_a_machine_without_inotify_instances_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    monkeypatch.setattr(limits, "_LIMIT", limit)
    monkeypatch.setattr(limits, "in_use", lambda: 70)
    limits.check_for(3, kubernetes=True, control_plane_runs=False)
    limits.check_for(7, kubernetes=False, control_plane_runs=False)
    limits.check_for(0, kubernetes=True, control_plane_runs=True)
    with pytest.raises(SandboxError) as caught:
        limits.check_for(5, kubernetes=True, control_plane_runs=True)
    assert "have 128 inotify instances; 70 are in use and about 65 more are needed" in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="counts those of root")
def test_inotify_instances_are_counted() -> None:
    before = limits.in_use()
    libc = ctypes.CDLL(None)
    descriptors = [libc.inotify_init() for _ in range(3)]
    try:
        assert limits.in_use() >= before + 2  # another program may have closed one meanwhile
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def test_the_inventory_holds_connection_variables_only(tmp_path: Path) -> None:
    state = RunState(tmp_path, "inv")
    state.create({"kubernetes": False})
    hosts = Hosts(state, None)
    (made,) = hosts.create([spec.NodeSpec("n1")], {"debian12": Path("/rootfs")}, Path("/layer"))
    document = inventory.document(hosts, Settings(cache=tmp_path, kubernetes_version="1.37.2"))
    variables = document["sandbox_hosts"]["vars"]
    assert document["_meta"] == {"hostvars": {"n1": {"ansible_host": made.address}}}
    assert document["sandbox_hosts"]["hosts"] == ["n1"]
    assert sorted(variables) == ["ansible_python_interpreter", "ansible_ssh_common_args", "ansible_ssh_private_key_file", "ansible_user"]
    assert f"UserKnownHostsFile={tmp_path}/run/inv/ssh/known_hosts" in variables["ansible_ssh_common_args"]
    assert "StrictHostKeyChecking=yes" in variables["ansible_ssh_common_args"]
