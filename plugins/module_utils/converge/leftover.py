# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a failed change has left the GPUs: as before, as wanted, or exactly how. Compares layouts in the form of :func:`plan.layout_of`."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

BEFORE, WANTED, BETWEEN, UNKNOWN = "before", "wanted", "between", "unknown"


def left_behind(before: Iterable[dict[str, Any]], wanted: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]]) -> tuple[str, dict[str, str]]:
    """Return one sentence about the GPUs that were to change, and by UUID whether each is as ``before``, as ``wanted`` or ``between``.

    A GPU that ``after`` does not have could not be read, and is ``unknown``. MIG UUIDs do not count: an instance that was made again at its place is as before.
    """
    new, now = _by_uuid(wanted), _by_uuid(after)
    clauses, states = [], {}
    for old in before:
        uuid, row = old["uuid"], now.get(old["uuid"])
        if _shape(old) == _shape(new[uuid]):
            continue
        states[uuid] = _state(old, new[uuid], row)
        how = {BEFORE: "is as before", WANTED: "is as wanted", UNKNOWN: "does not answer", BETWEEN: f"has {describe(row)}" if row else ""}[states[uuid]]
        clauses.append(f"GPU {old['index']} {how}")
    return "; ".join(clauses), states


def _state(old: dict[str, Any], new: dict[str, Any], now: Optional[dict[str, Any]]) -> str:
    if now is None:
        return UNKNOWN
    return next((state for state, row in ((BEFORE, old), (WANTED, new)) if _shape(row) == _shape(now)), BETWEEN)


def describe(row: dict[str, Any]) -> str:
    """Return the mode and the instances of one GPU as text."""
    pending = "" if row["mode_current"] == row["mode_pending"] else f" (pending: {_on_off(row['mode_pending'])})"
    instances = ", ".join(_instance(item) for item in row["instances"])
    return f"MIG mode {_on_off(row['mode_current'])}{pending} and {instances or 'no instances'}"


def _instance(item: dict[str, Any]) -> str:
    slices = item["compute_slices"]
    text = f"{item['profile']} at start {item['start']}"
    if not slices:
        return f"{text} without compute instance"
    whole = len(slices) == 1 and item["profile"].startswith(f"{slices[0]}g.")
    return text if whole else f"{text} with {' and '.join(f'{size}c' for size in slices)}"


def _shape(row: dict[str, Any]) -> tuple[Any, ...]:
    instances = [(item["profile_id"], item["start"], tuple(item["compute_slices"])) for item in row["instances"]]
    return row["mode_current"], row["mode_pending"], instances


def _by_uuid(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["uuid"]: row for row in rows}


def _on_off(enabled: bool) -> str:
    return "enabled" if enabled else "disabled"
