# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""User values in messages: never too long, never a failure of their own."""
from __future__ import annotations

from typing import Any

_LONGEST = 120


def shown(value: Any) -> str:
    """Return ``repr(value)``, shortened; Python refuses to print integers of more than 4300 digits."""
    try:
        text = repr(value)
    except ValueError:
        text = "a huge number"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
