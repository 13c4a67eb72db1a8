# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The journal of a change: the layout before it, and how far each step has come. It is on disk before every act and after it.

So whatever ends a run (an error, kill -9, a power cut), the GPUs hold the layout ``before`` with all steps that are ``done``, and at most one step more: the
one that is ``doing``, which may or may not have taken effect (``undoing``: may or may not have been taken back). A mode change that is ``waiting`` has set the
pending mode. ``failed`` and ``planned`` steps have had no effect, ``undone`` ones have none any more.
"""
from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from ..mig.steps import Step
from ..reasons import FleetError, finding

VERSION = 1
FILE_NAME = "mig-journal.json"
_UNREADABLE_NAME = "mig-journal.unreadable.json"

# The states of a step.
PLANNED, DOING, DONE, WAITING, FAILED, UNDOING, UNDONE = "planned", "doing", "done", "waiting", "failed", "undoing", "undone"
# The status of a run. ``rolled_back``: it failed, and no GPU is left half changed.
RUNNING, FINISHED, RUN_FAILED, ROLLED_BACK = "running", "finished", "failed", "rolled_back"
_STATUSES = (RUNNING, FINISHED, RUN_FAILED, ROLLED_BACK)


@dataclass
class Entry:
    """One step with its state, and the error that it met."""

    step: Step
    state: str = PLANNED
    error: str = ""


class Journal:
    """The journal in a state folder. Every method that writes raises FleetError StateDirUnusable when the file cannot be on disk."""

    def __init__(self, state_dir: str) -> None:
        self.path = Path(state_dir) / FILE_NAME
        self.entries: list[Entry] = []
        self.executed: list[str] = []  # what took effect, in order, as text
        self._document: dict[str, Any] = {}
        self._open = False
        # A run that is given up writes its last word while its worker may come back from a call and write, too.
        self._guard = threading.Lock()

    # -- the run before ----------------------------------------------------------------------------------------------------------------------------

    def read(self) -> dict[str, Any] | None:
        """Return the document that the last run left, None when there is none. Raises ValueError, which says what is wrong with it."""
        try:
            return _checked(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(error.strerror or str(error)) from error

    def set_aside(self) -> str:
        """Move a file that cannot be used out of the way and return where it lies; an earlier one there is replaced."""
        aside = self.path.with_name(_UNREADABLE_NAME)
        try:
            self.path.replace(aside)
        except OSError as error:
            raise _unusable(self.path, error) from error
        return str(aside)

    def conclude(self, document: dict[str, Any]) -> None:
        """Close the journal of an earlier run whose layout turned out to be reached."""
        self._document = {**document, "status": FINISHED}
        self._write()

    # -- this run ----------------------------------------------------------------------------------------------------------------------------------

    def begin(self, before: list[dict[str, Any]], steps: Sequence[Step]) -> None:
        """Open the journal of this run: the layout as it is (:func:`plan.layout_of`) and the plan."""
        self.entries = [Entry(step) for step in steps]
        self._document = {"version": VERSION, "run": {"id": uuid.uuid4().hex, "pid": os.getpid(), "started": _now()}, "status": RUNNING, "error": None,
                          "before": before}
        self._open = True
        self._write()

    def entries_of(self, gpu_uuid: str) -> list[Entry]:
        """Return the entries of one GPU's steps, in order."""
        return [entry for entry in self.entries if entry.step.gpu_uuid == gpu_uuid]

    def mark(self, entry: Entry, state: str, error: str = "") -> None:
        """Note on disk what becomes of a step. Says nothing more once the run has ended."""
        with self._guard:
            if not self._open:
                return
            noted = entry.state, entry.error
            entry.state, entry.error = state, error
            try:
                self._write()
            except FleetError:
                entry.state, entry.error = noted
                raise
            if state in (DONE, UNDONE):
                self.executed.append(entry.step.text if state == DONE else f"undo: {entry.step.text}")

    def finish(self, status: str, error: Optional[str] = None) -> None:
        """Note on disk how the run ended; does nothing for one that has not begun or has ended."""
        with self._guard:
            if not self._open:
                return
            self._open = False
            self._document.update(status=status, error=error)
            self._write()

    @property
    def touched(self) -> bool:
        """Return whether anything was begun."""
        return any(entry.state != PLANNED for entry in self.entries)

    def text(self) -> str:
        """Return how far the steps came, as text for messages."""
        titles = {DONE: "done", DOING: "begun", UNDOING: "begun to undo", WAITING: "waiting for a reset", FAILED: "failed"}
        told = {title: [entry for entry in self.entries if entry.state == state] for state, title in titles.items()}
        parts = [f"{title}: " + "; ".join(entry.step.text + (f" ({entry.error})" if entry.error else "") for entry in found)
                 for title, found in told.items() if found]
        return ", ".join(parts) or "nothing done"

    def _write(self) -> None:
        """Replace the file by rename, and have both the file and its name on disk before returning."""
        rows = [{**entry.step.as_dict(), "state": entry.state, "error": entry.error} for entry in self.entries] or self._document.get("steps", [])
        self._document.update(updated=_now(), steps=rows)
        draft = self.path.with_name(f".{self.path.name}.new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("w", encoding="utf-8") as stream:
                # In one piece and one line: json is many times slower otherwise, and this is done twice for every act.
                stream.write(json.dumps(self._document) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise _unusable(self.path, error) from error


def is_unfinished(document: dict[str, Any] | None) -> bool:
    """Return whether a run left something half done, or did not live to say how it ended."""
    return document is not None and document["status"] in (RUNNING, RUN_FAILED)


def summary(document: dict[str, Any]) -> dict[str, Any]:
    """Return a journal in short: when the run started, its status, and the steps done, begun (or waiting for a reset) as text."""
    def texts(*states: str) -> list[str]:
        return [row["text"] for row in document["steps"] if row["state"] in states]

    return {"started": document["run"]["started"], "status": document["status"], "done": texts(DONE), "doing": texts(DOING, UNDOING, WAITING)}


def _checked(document: Any) -> dict[str, Any]:
    """Return a document that this version understands. Raises ValueError."""
    if not isinstance(document, dict) or document.get("version") != VERSION:
        version = document.get("version") if isinstance(document, dict) else None
        raise ValueError(f"it has version {version}, this engine reads version {VERSION}")
    steps, run = document.get("steps"), document.get("run")
    if document.get("status") not in _STATUSES or not isinstance(run, dict) or not isinstance(run.get("started"), str):
        raise ValueError("it does not say how its run began and ended")
    if not isinstance(steps, list) or not all(isinstance(row, dict) and isinstance(row.get("text"), str) and "state" in row for row in steps):
        raise ValueError("its steps cannot be read")
    return document


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(path: Path, error: OSError) -> FleetError:
    return FleetError(finding("StateDirUnusable", str(path), error=error.strerror or str(error)))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
