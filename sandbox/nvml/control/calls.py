# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The call log: lines of JSON in calls.jsonl, the older part in calls.jsonl.1."""
from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


def mark(directory: Path, name: str) -> None:
    """Append a marker to the log."""
    with open(directory / "calls.jsonl", "a") as log:
        log.write(json.dumps({"time": time.time(), "marker": name}) + "\n")


def read(directory: Path, since_marker: bool = False, mutating_only: bool = False) -> list[dict[str, Any]]:
    """The logged calls, oldest first; with ``since_marker`` those after the last marker."""
    entries: list[dict[str, Any]] = []
    for name in ("calls.jsonl.1", "calls.jsonl"):
        path = directory / name
        if path.exists():
            entries += [json.loads(line) for line in path.read_text().splitlines()]
    if since_marker:
        last = max((number for number, entry in enumerate(entries) if "marker" in entry), default=-1)
        entries = entries[last + 1 :]
    return [entry for entry in entries if "symbol" in entry and (entry["mutating"] or not mutating_only)]
