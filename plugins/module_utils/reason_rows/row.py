# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The form of a row of the registry of reasons."""
from __future__ import annotations

from dataclasses import dataclass

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True)
class Reason:
    """One row of the registry. ``cause`` and ``remedy`` are str.format templates over the fields given to :func:`finding`."""

    code: str
    severity: str
    cause: str
    remedy: str
