# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about the container runtime and CDI."""
from __future__ import annotations

from .row import Reason

ROWS: tuple[Reason, ...] = ()
