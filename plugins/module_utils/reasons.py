# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The registry of every reason code that a user of this collection can meet.

A failure, a verification finding and a preflight check all speak this one language: a stable ``reason`` code in CamelCase (as Kubernetes
conditions have them), one sentence with the object's name and the cause, and the remedy. docs/troubleshooting.md is generated from here.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ERROR = "error"
WARNING = "warning"
INFO = "info"


@dataclass(frozen=True)
class Reason:
    """One row of the registry. ``cause`` and ``remedy`` are str.format templates over the fields given to :func:`finding`."""

    code: str
    severity: str
    cause: str
    remedy: str


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
    return Finding(
        code=reason.code,
        severity=reason.severity,
        subject=subject,
        cause=reason.cause.format(**fields),
        remedy=reason.remedy.format(**fields),
        details=dict(details or {}),
    )


REASONS = _rows(
    # -- NVML on the node ------------------------------------------------------------------------------------------------------------------
    Reason(
        "NvmlLibraryMissing", ERROR,
        "libnvidia-ml.so.1 was not found under driver root {driver_root}",
        "Install the NVIDIA driver on the node, or set driver_root to where it is installed "
        "(/run/nvidia/driver for a driver container).",
    ),
    Reason(
        "NvmlDriverNotLoaded", ERROR,
        "the NVIDIA kernel driver is not loaded",
        "Load it (modprobe nvidia) or reboot the node after the driver installation.",
    ),
    Reason(
        "NvmlCallFailed", ERROR,
        "{call} failed: {error}",
        "Run nvidia-smi on the node; if it shows the same error, look at the kernel log for NVRM lines.",
    ),
    Reason(
        "PythonTooOld", ERROR,
        "Python {found} is older than 3.9",
        "Point ansible_python_interpreter to Python 3.9 or newer on this host.",
    ),
    # -- MIG layouts -----------------------------------------------------------------------------------------------------------------------
    # -- DRA: slices and verification ------------------------------------------------------------------------------------------------------
    # -- Kubernetes API --------------------------------------------------------------------------------------------------------------------
)
