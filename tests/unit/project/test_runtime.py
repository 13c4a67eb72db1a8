# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""meta/runtime.yml, galaxy.yml and the roles' argument specs say what the tree really holds."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def test_every_module_stands_in_exactly_one_action_group() -> None:
    groups = load(ROOT / "meta" / "runtime.yml")["action_groups"]
    listed = sorted(name for members in groups.values() for name in members)
    assert listed == sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))


def test_the_group_k8s_is_just_the_modules_with_kubernetes_auth_options() -> None:
    groups = load(ROOT / "meta" / "runtime.yml")["action_groups"]
    with_auth = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py") if "kubernetes.core.k8s_auth_options" in path.read_text(encoding="utf-8")}
    assert set(groups["k8s"]) == with_auth


def test_the_floor_of_kubernetes_core_is_the_same_everywhere() -> None:
    floor = load(ROOT / "galaxy.yml")["dependencies"]["kubernetes.core"]
    assert floor == load(ROOT / "requirements.yml")["collections"][0]["version"]
    assert floor.startswith(">=6.5.0")


def test_the_floor_of_the_kubernetes_library_is_the_same_everywhere() -> None:
    floor = re.search(r"^kubernetes>=(.*)$", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    documented = re.search(r"- kubernetes >= (.*)$", (ROOT / "plugins/doc_fragments/attributes.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert floor and documented and floor[1] == documented[1]


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_argument_specs_and_defaults_hold_the_same_keys_and_values(role: Path) -> None:
    specs = load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = load(role / "defaults" / "main.yml")
    # An option without a default stands in defaults/main.yml as null, so that tasks may name it.
    assert {name: spec.get("default") for name, spec in specs.items() if not spec.get("required")} == defaults
    for name, spec in specs.items():
        assert spec.get("description"), f"{role.name}: {name} has no description"
