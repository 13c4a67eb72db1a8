# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting for something to become true: by asking, with a deadline, and never longer than it can still happen."""
from __future__ import annotations

import time
from collections.abc import Callable

from .errors import SandboxError

INTERVAL_S = 0.1


class NotYet(Exception):
    """Raised by a probe: not ready, and why. The last reason is shown when the deadline passes."""


def wait_for(
    what: str,
    probe: Callable[[], None],
    timeout_s: float,
    possible: Callable[[], None] = lambda: None,
    evidence: Callable[[], str] = lambda: "",
) -> float:
    """Call ``probe`` until it returns without raising NotYet or OSError. Returns the seconds it took.

    ``possible`` is called before each probe and raises SandboxError when waiting has become pointless (a process that died).
    Raises SandboxError after ``timeout_s`` with the last reason and the ``evidence`` (usually the end of a log).
    """
    started = time.monotonic()
    while True:
        possible()
        try:
            probe()
            return time.monotonic() - started
        except (NotYet, OSError) as error:
            reason = str(error)
        if time.monotonic() - started > timeout_s:
            raise SandboxError(with_evidence(f"{what} was not ready after {timeout_s:.0f} s: {reason}.", evidence()))
        time.sleep(INTERVAL_S)


def with_evidence(sentence: str, log_tail: str) -> str:
    """Return the sentence, followed by the end of a log where there is one."""
    return f"{sentence} Its log ends with:\n{log_tail}" if log_tail else sentence
