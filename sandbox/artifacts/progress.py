# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Progress for a person who waits: one line per step, with the time that it took."""
from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Progress:
    """Writes one line per step to ``stream``; ``None`` means silence. Steps must not be nested: each owns its line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    @classmethod
    def to_terminal(cls) -> Progress:
        """Return a progress that writes to stderr, so that results on stdout stay clean."""
        return cls(sys.stderr)

    @contextmanager
    def step(self, title: str, expected: str = "") -> Iterator[None]:
        """Show ``title, about EXPECTED ...`` now and ``done in N s`` (or ``failed after N s``) on the same line at the end."""
        self._write(f"{title}{', ' + expected if expected else ''} ... ")
        started = time.monotonic()
        outcome = "failed after"
        try:
            yield
            outcome = "done in"
        finally:
            self._write(f"{outcome} {time.monotonic() - started:.1f} s\n")

    def note(self, text: str) -> None:
        """Show one line that is not a step."""
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()


QUIET = Progress()
