# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The counter of module executions counts what is executed, by host, and nothing else."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
HOSTS = {"all": {"hosts": dict.fromkeys(["n1", "n2"]), "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}}


def count(tmp_path: Path, *plays: dict[str, Any]) -> dict[str, Any]:
    """Run plays on two local hosts; returns the counter's document."""
    for name, document in (("inventory", HOSTS), ("playbook", list(plays))):
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests" / "callbacks"), "ANSIBLE_CALLBACKS_ENABLED": "module_executions",
        "ANSIBLE_HOME": str(tmp_path / "home"), "MODULE_EXECUTIONS_FILE": str(tmp_path / "count.json"),
    }  # fmt: skip
    command = [Path(sys.executable).with_name("ansible-playbook"), "-i", tmp_path / "inventory.yml", tmp_path / "playbook.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, Any] = json.loads((tmp_path / "count.json").read_text())
    return document


def play(name: str, *tasks: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "hosts": "all", "gather_facts": False, "tasks": list(tasks)}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """One run of tasks of every kind: the executions by task."""
    tasks = [
        {"name": "controller", "ansible.builtin.debug": {"msg": "x"}},
        {"name": "controller", "ansible.builtin.set_fact": {"x": 1}},
        {"name": "controller", "ansible.builtin.assert": {"that": "x == 1"}},
        {"name": "one", "ansible.builtin.ping": {}},
        {"name": "condition", "ansible.builtin.ping": {}, "when": "inventory_hostname == 'n1'"},
        {"name": "loop", "ansible.builtin.ping": {}, "loop": [1, 2, 3]},
        {"name": "copy", "ansible.builtin.copy": {"content": "x", "dest": "{{ playbook_dir }}/{{ inventory_hostname }}", "mode": "0600"}},
        {"name": "failed", "ansible.builtin.command": {"argv": ["false"]}, "changed_when": False, "failed_when": False},
        {"name": "away", "ansible.builtin.ping": {}, "delegate_to": "n2", "when": "inventory_hostname == 'n1'"},
    ]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in count(tmp_path_factory.mktemp("counted"), play("all", *tasks))["executions"]:
        found.setdefault(row["task"], []).append(row)
    return found


def test_what_runs_on_the_controller_alone_is_not_counted(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert "controller" not in counted


@pytest.mark.parametrize(
    ("task", "modules"),
    [
        ("one", ["ansible.builtin.ping"]),
        ("loop", ["ansible.builtin.ping"] * 3),
        # An action plugin that executes two modules counts twice: it looks at what is there, then copies or sets the mode.
        ("copy", ["ansible.legacy.stat", "ansible.legacy.copy"]),
        ("failed", ["ansible.legacy.command"]),
    ],
)
def test_each_execution_counts_for_its_host(counted: dict[str, list[dict[str, Any]]], task: str, modules: list[str]) -> None:
    for host in ("n1", "n2"):
        assert [row["module"] for row in counted[task] if row["host"] == host] == modules


def test_a_host_that_skips_a_task_executes_nothing(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert [row["host"] for row in counted["condition"]] == ["n1"]


def test_a_delegated_execution_counts_for_the_host_that_waits_for_it(counted: dict[str, list[dict[str, Any]]]) -> None:
    assert counted["away"] == [{"host": "n1", "task": "away", "module": "ansible.builtin.ping", "delegated_to": "n2"}]


def test_every_play_has_its_time(tmp_path: Path) -> None:
    found = count(tmp_path, play("short", {"ansible.builtin.debug": {"msg": "x"}}), play("long", {"ansible.builtin.pause": {"seconds": 1}}))["plays"]
    assert [row["name"] for row in found] == ["short", "long"]
    assert found[1]["seconds"] >= 1 > found[0]["seconds"] > 0
