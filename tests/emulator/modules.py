# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the collection's node modules, and its engine, as processes that see an emulated machine."""
from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / ".build" / "collections"
_PACKAGE = "ansible_collections.gpufleet.dra.plugins"

ENGINE = f"""
import json, os, sys
from {_PACKAGE}.module_utils.converge import run as converge
from {_PACKAGE}.module_utils.mig.layout import parse_layouts
from {_PACKAGE}.module_utils.nvml.session import NvmlSession
from {_PACKAGE}.module_utils.reasons import FleetError

def apply(instances, session):
    result = {{}}
    policy = converge.Policy(state_dir=os.environ["GPUFLEET_STATE_DIR"])
    converge.apply_layout(session, parse_layouts([{{"match": "all", "instances": instances}}]), policy, result)
    return result

result = None
"""


def state_dir(machine: Any) -> str:
    """Return the folder of the machine's lock and journal."""
    return str(machine.directory.parent / "gpufleet")


def run_module(machine: Any, module: str, check: bool = False, env: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    """Run a module as Ansible starts it on a node, without the action plugin, and return its result."""
    options.setdefault("pynvml_path", None)
    if module == "mig_layout":
        options.setdefault("state_dir", state_dir(machine))
    arguments = {"ANSIBLE_MODULE_ARGS": {**options, "_ansible_check_mode": check, "_ansible_diff": True}}
    given = machine.directory.parent / "arguments.json"
    given.write_text(json.dumps(arguments))
    done = machine.run([sys.executable, "-m", f"{_PACKAGE}.modules.{module}", str(given)], PYTHONPATH=str(COLLECTIONS), **(env or {}))
    assert "Traceback" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


def run_engine(machine: Any, code: str) -> Any:
    """Run a snippet over the engine; returns what it leaves in ``result``."""
    text = ENGINE + textwrap.dedent(code) + "\nprint(json.dumps(result))\n"
    done = machine.run([sys.executable, "-c", text], PYTHONPATH=str(COLLECTIONS), GPUFLEET_STATE_DIR=state_dir(machine))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
