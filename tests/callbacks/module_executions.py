# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Counts how often a run executed a module for each host, and how long each play took."""
from __future__ import annotations

DOCUMENTATION = r"""
name: module_executions
type: aggregate
short_description: Count module executions by host
description:
  - Writes down every execution of a module, where it happens, also those that action plugins such as C(copy) and C(template) make by the way.
    What runs on the controller alone (C(assert), C(debug), C(set_fact), C(include_role)) is none.
  - An execution that is delegated counts for the host that delegates it, for that host waits for it.
options:
  file:
    description: Where the JSON document goes. Without it nothing is counted.
    type: path
    env:
      - name: MODULE_EXECUTIONS_FILE
"""

import functools
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """Writes ``{"executions": [{"host", "task", "module", "delegated_to"}], "plays": [{"name", "seconds"}]}`` at the end of a run.

    Tasks run in processes forked from this one, so the method that executes modules is wrapped before they are forked, and each notes its
    executions as one line in a file of their own; lines this short are appended in one piece.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "module_executions"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._target: Path | None = None
        self._plays: list[dict[str, Any]] = []
        self._began = 0.0

    def set_options(self, task_keys: Any = None, var_options: Any = None, direct: Any = None) -> None:
        """Begin to count when there is a file to write to."""
        super().set_options(task_keys=task_keys, var_options=var_options, direct=direct)
        target = self.get_option("file")
        if target and self._target is None:
            self._target = Path(target)
            descriptor, notes = tempfile.mkstemp(prefix="module-executions-")
            os.close(descriptor)
            self._notes = Path(notes)
            _wrap_execute_module(self._notes)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """End the time of the last play, begin that of this one."""
        self._end_play()
        self._plays.append({"name": play.get_name(), "seconds": 0.0})

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Write the document."""
        self._end_play()
        if self._target is not None:
            executions = [json.loads(line) for line in self._notes.read_text(encoding="utf-8").splitlines()]
            self._target.write_text(json.dumps({"executions": executions, "plays": self._plays}, indent=1), encoding="utf-8")
            self._notes.unlink()

    def _end_play(self) -> None:
        if self._plays:
            self._plays[-1]["seconds"] = time.monotonic() - self._began
        self._began = time.monotonic()


def _wrap_execute_module(notes: Path) -> None:
    """Let every action plugin of this process, and of those forked from it, append a line to ``notes`` for each module that it executes."""
    execute = ActionBase._execute_module

    @functools.wraps(execute)
    def noting(self: Any, module_name: str | None = None, module_args: Any = None, tmp: Any = None, task_vars: Any = None, **options: Any) -> Any:
        note = {
            "host": (task_vars or {}).get("inventory_hostname", ""),
            "task": self._task.get_name(),
            "module": module_name or self._task.action,
            "delegated_to": self._task.delegate_to,
        }
        with notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        return execute(self, module_name=module_name, module_args=module_args, tmp=tmp, task_vars=task_vars, **options)

    ActionBase._execute_module = noting
