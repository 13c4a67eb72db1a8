# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sentences on stderr; with their priority where systemd reads them (sd-daemon(3): a line that begins with <N>)."""
from __future__ import annotations

import os
import sys

_ERROR, _WARNING, _INFO = 3, 4, 6


def inform(text: str) -> None:
    """Say what happens."""
    _say(_INFO, text)


def warn(text: str) -> None:
    """Say what somebody should look at."""
    _say(_WARNING, text)


def complain(text: str) -> None:
    """Say what failed."""
    _say(_ERROR, text)


def _say(priority: int, text: str) -> None:
    # systemd sets JOURNAL_STREAM for services whose output goes to the journal.
    prefix = f"<{priority}>" if "JOURNAL_STREAM" in os.environ else ""
    sys.stderr.write(f"{prefix}{' '.join(text.split())}\n")
    sys.stderr.flush()
