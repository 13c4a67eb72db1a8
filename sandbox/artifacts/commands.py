# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the programs that make artifacts and turns their failures into one exception."""
from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import ArtifactError

TAIL_LINES = 20


def run(purpose: str, command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run ``command`` without input and return its stdout. Raises ArtifactError with ``purpose`` and the end of its output when it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ArtifactError(f"{purpose}: {words[0]} cannot be run: {error.strerror}.") from error
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-TAIL_LINES:])
        raise ArtifactError(f"{purpose}: {words[0]} ended with status {done.returncode}. The end of its output:\n{tail}")
    return done.stdout
