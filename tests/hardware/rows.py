# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rows of the check's table, and how two values are compared."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OK, DIFFERS, UNCHECKED = "ok", "differs", "not checkable"


@dataclass(frozen=True)
class Row:
    """One thing that was looked at. ``note`` says what differs, or why it could not be checked."""

    what: str
    verdict: str
    note: str = ""


def compared(what: str, ours: Any, theirs: Any, other: str) -> Row:
    """Return the row for a value of ours beside that of ``other``."""
    return Row(what, OK) if ours == theirs else Row(what, DIFFERS, f"ours {ours}, {other} {theirs}")


def compared_fields(what: str, ours: dict[str, Any], theirs: dict[str, Any], other: str) -> Row:
    """Return one row for several values; ``theirs`` says which count."""
    differing = [f"{name}: ours {ours.get(name)}, {other} {value}" for name, value in theirs.items() if ours.get(name) != value]
    return Row(what, DIFFERS, "; ".join(differing)) if differing else Row(what, OK)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text, and how many there are of each verdict."""
    width = max((len(row.what) for row in rows), default=0)
    lines = [f"{row.what:{width}}  {row.verdict:13}  {row.note}".rstrip() for row in rows]
    counts = ", ".join(f"{sum(row.verdict == verdict for row in rows)} {verdict}" for verdict in (OK, DIFFERS, UNCHECKED))
    return "\n".join([*lines, "", counts])
