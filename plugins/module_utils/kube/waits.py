# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting on the cluster: look, judge, look again a little later, until it is right or the time is over."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 5.0


def poll(
    look: Callable[[], Seen],
    enough: Callable[[Seen], bool],
    timeout_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Seen:
    """Return what ``look`` saw last: something ``enough`` accepts, or what was there when ``timeout_s`` was over.

    Looks at least once, and once more exactly at the end of the time. Pauses grow from 0.5 to 5 seconds.
    """
    end = clock() + timeout_s
    pause = _FIRST_PAUSE_S
    while True:
        seen = look()
        left = end - clock()
        if enough(seen) or left <= 0:
            return seen
        sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
