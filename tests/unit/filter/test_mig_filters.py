# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The MIG filters as a template uses them."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import COLLECTIONS


def render(tmp_path: Path, expression: str) -> tuple[int, str]:
    """Run one template on the controller; returns the exit status and what was said."""
    ansible = Path(sys.executable).with_name("ansible")
    (tmp_path / "ansible.cfg").touch()
    env = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"), "ANSIBLE_LOCALHOST_WARNING": "false",
           "ANSIBLE_HOME": str(tmp_path), "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false", "ANSIBLE_DEPRECATION_WARNINGS": "false"}
    done = subprocess.run([ansible, "localhost", "-c", "local", "-m", "debug", "-a", f"msg={{{{ {expression} }}}}"], env=env, capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_mig_plan_in_a_template(tmp_path: Path) -> None:
    status, said = render(tmp_path, "'h100-80gb-hbm3' | gpufleet.dra.mig_plan({'3g.40gb': 1}, current=[{'profile': '3g.40gb', 'start': 4}])")
    assert status == 0, said
    found = json.loads(said.partition("=> ")[2])["msg"]
    assert found["device_names"] == ["gpu-0-mig-3g40gb-9-4"]
    assert found["mutating_calls"] == 0


def test_mig_layouts_for_in_a_template(tmp_path: Path) -> None:
    status, said = render(tmp_path, "'h100-80gb-hbm3' | gpufleet.dra.mig_layouts_for('3g')")
    assert status == 0, said
    assert json.loads(said.partition("=> ")[2])["msg"] == [{"3g.40gb": 2}, {"3g.40gb": 1}]


def test_a_refusal_is_one_sentence_said_once(tmp_path: Path) -> None:
    status, said = render(tmp_path, "'a30' | gpufleet.dra.mig_plan({'3g': 1})")
    assert status != 0
    assert "Traceback" not in said
    assert said.rpartition('"msg": ')[2].count("[UnknownProfile]") == 1, said


def test_layouts_of_a_whole_node_are_refused_with_a_hint(tmp_path: Path) -> None:
    status, said = render(tmp_path, "{'gpus': []} | gpufleet.dra.mig_layouts_for")
    assert status != 0 and "give an element of their gpus" in said
