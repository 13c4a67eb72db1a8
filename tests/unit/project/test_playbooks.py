# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the playbooks refuse before they talk to a node or a cluster, and that nothing on the controller runs with raised privileges."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
ANSIBLE_PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
FLEET = {"gpu_nodes": {"hosts": {"n1": None, "n2": None}}, "others": {"hosts": {"o1": None}}}
PREFLIGHT = [{
    "hosts": "gpu_nodes", "gather_facts": False,
    "tasks": [{"name": "Preflight", "ansible.builtin.import_role": {"name": "gpufleet.dra.gpu_operator", "tasks_from": "preflight"}}],
}]  # fmt: skip
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a playbook: run(path, *arguments, inventory=FLEET, variable=value, ...) gives exit status and output."""
    def run(playbook: Path, *arguments: str, inventory: dict[str, Any] = FLEET, **variables: Any) -> tuple[int, str]:
        path = tmp_path / "inventory.yml"
        path.write_text(yaml.safe_dump(inventory))
        environment = dict(os.environ, ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".build" / "collections"), NO_COLOR="1")
        environment.pop("ANSIBLE_CONFIG", None)
        command = [str(ANSIBLE_PLAYBOOK), "-i", str(path), str(playbook), "-e", json.dumps(variables), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
        output = done.stdout + done.stderr
        assert "Traceback" not in output
        return done.returncode, " ".join(output.split())
    return run


@pytest.mark.parametrize(
    ("arguments", "inventory", "variables", "reason"),
    [
        ([], FLEET, {}, ""),
        ([], FLEET, {"dra_hosts": "others"}, ""),
        (["--limit", "n1"], FLEET, {}, ""),
        ([], {}, {}, "InventoryWithoutHosts"),
        ([], {"others": FLEET["others"]}, {}, "InventoryWithoutHosts"),
        ([], FLEET, {"dra_hosts": "misspelt"}, "InventoryWithoutHosts"),
        (["--limit", "o1"], FLEET, {}, "InventoryWithoutHosts"),
        ([], {**FLEET, "all": {"vars": {"dra_hosts": "others"}}}, {}, "HostPatternIgnored"),
        ([], {"others": FLEET["others"], "all": {"vars": {"dra_hosts": "others"}}}, {}, "HostPatternIgnored"),
        (["--limit", "o1"], {**FLEET, "all": {"vars": {"dra_hosts": "others"}}}, {}, "HostPatternIgnored"),
    ],
)
def test_a_run_without_hosts_does_not_end_well(run: Run, arguments: list[str], inventory: dict[str, Any], variables: dict[str, Any], reason: str) -> None:
    code, output = run(ROOT / "playbooks" / "hosts.yml", *arguments, inventory=inventory, **variables)
    assert (code != 0) == bool(reason), output
    assert not reason or f"[{reason}]" in output, output
    assert "changed=1" not in output


@pytest.mark.parametrize("name", ["site", "mig", "verify", "upgrade_driver", "uninstall_driver", "artifact_manifest"])
def test_every_playbook_begins_by_looking_for_hosts(name: str) -> None:
    first = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text(encoding="utf-8"))[0]
    assert first["ansible.builtin.import_playbook"] == "hosts.yml"


@pytest.mark.parametrize(
    ("auth", "keys"),
    [
        ({"client_cert": "/c", "client_key": "/k"}, "client_cert, client_key"),
        ({"username": "u", "password": "p"}, "password, username"),
        ({"context": "c", "verify_ssl": False}, "verify_ssl"),
    ],
)
def test_site_refuses_credentials_that_helm_would_drop(run: Run, auth: dict[str, Any], keys: str) -> None:
    code, output = run(ROOT / "playbooks" / "site.yml", dra_k8s_auth={"host": "https://127.0.0.1:1", **auth})
    assert code != 0
    assert "[HelmCredentialsUnsupported]" in output, output
    assert all(key in output for key in keys.split(", "))


@pytest.fixture
def helm(tmp_path: Path) -> Callable[[str, str], str]:
    """Make a helm that tells these versions of itself and of every chart; returns its path."""
    def make(own: str, chart: str) -> str:
        path = tmp_path / "helm"
        shown = f"appVersion: v1\\ndependencies:\\n- version: 9\\nversion: {chart}\\n"
        path.write_text(f"#!/bin/sh\ncase $1 in version) echo v{own}+g123;; *) printf '{shown}';; esac\n")
        path.chmod(0o755)
        return str(path)
    return make


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"nvidia_driver_owner": "operator"}, "OperatorDriverUnsupported"),
        ({"gpu_operator_values": {"driver": {"enabled": True}}}, "OperatorDriverUnsupported"),
        ({"gpu_operator_values": {"clusterPolicy": {"deployCR": True}}}, "ValuesWithoutGpuCluster"),
        ({"gpu_operator_feature_gates": {"DynamicMIG": True}}, "FeatureGateUnsupported"),
        ({"gpu_operator_values": {"draDriver": {"featureGates": {"PassthroughSupport": True}}}}, "FeatureGateUnsupported"),
        ({"gpu_operator_values": {"draDriver": {
            "featureGates": {"ConsumableShares": True}, "gpus": {"kubeletPlugin": {"env": [{"name": "CONSUMABLE_SHARES", "value": "4"}]}},
        }}}, "FeatureGateUnsupported"),
        ({"gpu_operator_helm_binary": "/no/such/helm"}, "HelmUnusable"),
        ({"helm": ("3.16.4", "v26.7.2")}, "HelmUnusable"),
        ({"helm": ("4.3.1", "v26.7.1")}, "ChartTooOld"),
        ({"helm": ("4.3.1", "")}, "ChartUnreadable"),
    ],
)  # fmt: skip
def test_the_operator_role_refuses_before_it_asks_the_cluster(
    run: Run, tmp_path: Path, helm: Callable[[str, str], str], variables: dict[str, Any], reason: str
) -> None:
    playbook = tmp_path / "preflight.yml"
    playbook.write_text(yaml.safe_dump(PREFLIGHT))
    settings = {"gpu_operator_helm_binary": helm(*variables.get("helm", ("4.3.1", "26.7.2"))), "gpu_operator_chart_repo_url": ""}
    settings.update({name: value for name, value in variables.items() if name != "helm"})
    code, output = run(playbook, **settings)
    assert code != 0
    assert f"[{reason}]" in output, output


@pytest.mark.parametrize("arguments", [[], ["--limit", "n1"]])
def test_hosts_must_agree_about_the_cluster_also_outside_the_limit(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    playbook = tmp_path / "preflight.yml"
    hosts = {"gpu_operator_hosts": "{{ groups.gpu_nodes }}", "device_classes_hosts": "{{ groups.gpu_nodes }}"}
    inventory = {"gpu_nodes": {"vars": hosts, "hosts": {"n1": {"gpu_operator_values": {"a": 1}, "device_classes_own": []}, "n2": {}}}}
    for role, variable in (("gpu_operator", "gpu_operator_values"), ("device_classes", "device_classes_own")):
        tasks = [{"name": "Run", "ansible.builtin.import_role": {"name": f"gpufleet.dra.{role}"}}]
        playbook.write_text(yaml.safe_dump([dict(PREFLIGHT[0], tasks=tasks)]))
        code, output = run(playbook, *arguments, inventory=inventory)
        assert code != 0
        assert f"{variable}: there is one of it for the whole cluster, but n1 and n2" in output and "[ClusterSettingsDiffer]" in output, output


def delegated(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every task and block that is delegated, at any depth."""
    if isinstance(node, list):
        for item in node:
            yield from delegated(item)
    elif isinstance(node, dict):
        if "delegate_to" in node:
            yield node
        for value in node.values():
            yield from delegated(value)


@pytest.mark.parametrize("path", sorted([*ROOT.glob("playbooks/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_becomes_another_user_on_the_controller(path: Path) -> None:
    """With -b or the privilege escalation of AWX, a task on the controller would otherwise go through sudo there."""
    for task in delegated(yaml.safe_load(path.read_text(encoding="utf-8"))):
        assert task.get("become") is False, task.get("name")
