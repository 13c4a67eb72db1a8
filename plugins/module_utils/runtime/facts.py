# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The facts document of a node's container runtime: what it is, what is in effect, what has to change, and what runs under it."""
from __future__ import annotations

from typing import Any

from .containerd import Containerd
from .crio import Crio
from .detect import detect
from .document import Cdi, Plan, Runtime
from .node import Node
from .running import newer_files, pods, running_cdi


def runtime_facts(node: Node, subject: str, asked: str, spec_dirs: tuple[str, ...], present: bool) -> dict[str, Any]:
    """Return the document that module cdi_runtime_info documents. Raises FleetError for what keeps the runtime from being read at all."""
    runtime = detect(node, subject, asked)
    if runtime.name == "crio":
        crio = Crio(node, subject, runtime)
        plan, running = crio.plan(spec_dirs, present), crio.running()
    else:
        plan, running = Containerd(node, subject, runtime).plan(spec_dirs, present), running_cdi(node, runtime)
    newer = newer_files(node, runtime, [*plan.read_files, runtime.binary])
    return {
        "runtime": {
            "name": runtime.name, "version": runtime.version_text, "unit": runtime.unit, "active": runtime.active, "binary": runtime.binary,
            "config_file": runtime.config_file,
        },
        "effective": plan.effective.as_dict(),
        "running": running.as_dict() if running is not None else None,
        "newer_files": newer,
        "right": runtime.active and plan.effective.serves(spec_dirs) and not _stale(runtime, running, newer, spec_dirs),
        "files": [file.as_dict() for file in plan.files],
        "restart": _restart(runtime, plan, running, newer, spec_dirs, present),
        "pods": pods(node, runtime),
        "findings": [found.as_dict() for found in plan.findings],
    }


def _stale(runtime: Runtime, running: Cdi | None, newer: list[str], wanted: tuple[str, ...]) -> bool:
    """Return whether the running daemon does not serve the folders, or may not: where it does not tell, because files are newer than it."""
    if not runtime.active:
        return False
    return not running.serves(wanted) if running is not None else bool(newer)


def _restart(runtime: Runtime, plan: Plan, running: Cdi | None, newer: list[str], wanted: tuple[str, ...], present: bool) -> dict[str, Any]:
    """Return whether the daemon has to be restarted, and why: a sentence each."""
    why = []
    if runtime.active and present:
        if not plan.effective.serves(wanted):
            why.append(f"{runtime.name} does not read the CDI folders {', '.join(wanted)}")
        elif running is not None and not running.serves(wanted):
            why.append(f"the configuration is right, but {runtime.unit} was started before that")
        elif running is None and newer:
            why.append(f"{runtime.unit} was started before {', '.join(newer)} changed")
    elif runtime.active and plan.files and (running is None or not running.same(plan.effective)):
        why.append(f"{runtime.unit} was started with the files that go")
    return {"needed": bool(why), "reasons": why}
