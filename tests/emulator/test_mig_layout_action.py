# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The action plugins, through the real ansible-playbook: nvidia-ml-py travels to a bare Python, mig-parted files are read on the controller."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.modules import COLLECTIONS

PARTED = """
version: v1
mig-configs:
  all-disabled:
    - {devices: all, mig-enabled: false}
  mixed:
    - device-filter: "0x233010DE"
      devices: all
      mig-enabled: true
      mig-devices: {"3g.40gb": 1, "1g.10gb": 4}
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without any package, as a node has it."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


def play(machine: Any, python: str, module: str, options: dict[str, Any], *flags: str) -> dict[str, Any]:
    """Run one task and return its result. ``options`` are the module's."""
    folder = machine.directory.parent
    remote = folder / "remote"
    tasks = [{f"gpufleet.dra.{module}": options, "register": "done", "ignore_errors": True},
             {"ansible.builtin.copy": {"dest": str(folder / "result.json"), "content": "{{ done | to_json }}"}, "check_mode": False, "diff": False}]
    playbook = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks,
                 "vars": {"ansible_python_interpreter": python, "ansible_remote_tmp": str(remote)}}]
    (folder / "play.yml").write_text(json.dumps(playbook))
    (folder / "ansible.cfg").write_text("")
    done = machine.run([str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(folder / "play.yml"), *flags],
                       ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS), ANSIBLE_LOCALHOST_WARNING="false", ANSIBLE_CONFIG=str(folder / "ansible.cfg"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(remote.iterdir()), "the task leaves nothing on the node"
    return {**json.loads((folder / "result.json").read_text()), "stdout": done.stdout}


def test_nvml_info_works_with_a_python_that_has_nothing(nvml_machine: Any, bare_python: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    assert machine.run([bare_python, "-c", "import pynvml"]).returncode != 0
    result = play(machine, bare_python, "nvml_info", {})
    assert [gpu["product"] for gpu in result["nvml"]["gpus"]] == ["NVIDIA H100 80GB HBM3"]


def test_a_mig_parted_file_is_read_on_the_controller_and_shown_as_a_diff(nvml_machine: Any, bare_python: str, tmp_path: Path) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    (tmp_path / "mig-parted.yaml").write_text(PARTED)
    options = {"mig_parted_config": str(tmp_path / "mig-parted.yaml"), "mig_parted_selected": "mixed", "state_dir": str(tmp_path / "state")}
    checked = play(machine, bare_python, "mig_layout", options, "--check", "--diff")
    assert checked["changed"] and machine.layout() == []
    assert "+GPU-" in checked["stdout"] and "3g.40gb at start 4 (profile id 9) new" in checked["stdout"]
    assert play(machine, bare_python, "mig_layout", options)["changed"]
    assert machine.layout() == [("1g.10gb", 0), ("1g.10gb", 1), ("1g.10gb", 2), ("1g.10gb", 3), ("3g.40gb", 4)]
    assert not play(machine, bare_python, "mig_layout", options)["changed"]


@pytest.mark.parametrize(("content", "text"), [
    ("version: v1\nmig-configs: {a: [\n", "it is not YAML at line 3"),
    ("", "it is empty"),
    (b"\xff\xfe\x00", "it is not"),
    ("- version: v1\n", "it is not a mapping"),
    (None, "cannot be read"),
])
def test_a_layout_file_that_is_none_is_named(nvml_machine: Any, bare_python: str, tmp_path: Path, content: Any, text: str) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    path = tmp_path / "layout.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    machine.mark()
    refused = play(machine, bare_python, "mig_layout", {"mig_parted_config": str(path), "state_dir": str(tmp_path / "state")})
    assert refused["failed"] and refused["reason"] == "LayoutFileUnreadable"
    assert str(path) in refused["msg"] and text in refused["msg"] and "\n" not in refused["msg"]
    assert machine.calls() == []
