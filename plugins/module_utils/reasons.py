# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The registry of every reason code that a user of this collection can meet.

A failure, a verification finding and a preflight check all speak this one language: a stable ``reason`` code in CamelCase (as Kubernetes
conditions have them), one sentence with the object's name and the cause, and the remedy. docs/troubleshooting.md is generated from here.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .reason_rows import cluster, dra, driver, driver_view, mig, nvml, runtime
from .reason_rows.row import ERROR, WARNING, Reason

__all__ = ["ERROR", "REASONS", "WARNING", "Finding", "FleetError", "Reason", "finding"]

_LONGEST_PART = 3000  # characters; lists of all GPUs of a node have to fit in


@dataclass(frozen=True)
class Finding:
    """One judgement about one object.

    ``subject`` names the object (node, GPU, device, file); ``details`` holds what is useful to a program, usually ``expected`` and ``found``.
    """

    code: str
    severity: str
    subject: str
    cause: str
    remedy: str
    details: dict[str, Any] = field(default_factory=dict)

    def sentence(self) -> str:
        """Return the text for a person: object, cause, remedy and reason code in one line."""
        return f"{self.subject}: {self.cause}. {self.remedy} [{self.code}]"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for results, JSON reports and fail_json."""
        return {
            "reason": self.code,
            "severity": self.severity,
            "object": self.subject,
            "cause": self.cause,
            "remedy": self.remedy,
            "details": self.details,
        }


class FleetError(Exception):
    """A failure that a user can understand: carries its :class:`Finding`, and modules turn it into fail_json."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.sentence())
        self.finding = found

    def as_failure(self) -> dict[str, Any]:
        """Return the keyword arguments of ``fail_json``: msg, reason, remedy, object, cause, severity, details."""
        return dict(self.finding.as_dict(), msg=self.finding.sentence())


def _rows(*rows: Reason) -> dict[str, Reason]:
    table: dict[str, Reason] = {}
    for row in rows:
        if row.code in table:
            raise ValueError(f"reason {row.code} is registered twice")
        table[row.code] = row
    return table


def finding(code: str, subject: str, details: dict[str, Any] | None = None, **fields: Any) -> Finding:
    """Make the Finding for a registered ``code``. Raises KeyError for an unknown code or a template field that was not given."""
    reason = REASONS[code]
    texts = {name: _in_line(value) if isinstance(value, str) else value for name, value in fields.items()}
    return Finding(
        code=reason.code,
        severity=reason.severity,
        subject=_in_line(subject),
        cause=reason.cause.format(**texts),
        remedy=reason.remedy.format(**texts),
        details=dict(details or {}),
    )


def _in_line(text: str) -> str:
    """Return a part of a sentence without line ends and what else does not print, and not without end: it may hold what a user or a tool wrote."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text[: 2 * _LONGEST_PART].split()))
    return line if len(line) <= _LONGEST_PART else line[: _LONGEST_PART - 3] + "..."


REASONS = _rows(*nvml.ROWS, *mig.ROWS, *dra.ROWS, *cluster.ROWS, *driver.ROWS, *driver_view.ROWS, *runtime.ROWS)
