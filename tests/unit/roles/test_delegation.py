# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tasks of roles and playbooks that run on the controller never ask for root there, also under `ansible-playbook --become`."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml")])


def on_the_controller(tasks: list[dict[str, Any]], outer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (name, become) of every task that runs on localhost; blocks and plays hand both keywords on."""
    for task in tasks:
        known = {key: task.get(key, outer.get(key)) for key in ("delegate_to", "become")}
        inner = [task[part] for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks") if part in task]
        for part in inner:
            yield from on_the_controller(part, {**known, "delegate_to": known["delegate_to"] or ("localhost" if task.get("hosts") == "localhost" else None)})
        if not inner and known["delegate_to"] == "localhost":
            yield task.get("name", "?"), known["become"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_becomes_root_on_the_controller(path: Path) -> None:
    found = list(on_the_controller(yaml.safe_load(path.read_text(encoding="utf-8")) or [], {}))
    assert [name for name, become in found if become is not False] == []
