# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""User values in messages: never too long, never a failure of their own."""
from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

_LONGEST = 120
_SHORT = reprlib.Repr()  # looks at a few items of a few levels: a small file can unfold to more than memory holds
_SHORT.maxlevel = 4
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _LONGEST


def shown(value: Any) -> str:
    """Return ``repr(value)``, shortened; Python refuses to print integers of more than 4300 digits."""
    try:
        return clipped(_SHORT.repr(value))
    except ValueError:
        return "a huge number"


def clipped(text: str) -> str:
    """Return a name that a user gave, shortened."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def listed(items: Iterable[str], separator: str = ", ", most: int = 12) -> str:
    """Return names in one text: the first ``most``, and how many more there are."""
    names = [clipped(item) for item in items]
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return separator.join(names[:most] + more)
