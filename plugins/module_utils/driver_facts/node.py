# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The edge to the node: its files below one root, and the commands that it has. Everything else in this room reads through it.

Commands run with LC_ALL=C, with a time limit, and never through a shell.
"""
from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..reasons import FleetError, finding

_QUERY_SECONDS = 60
_TAIL = 1500  # characters of a command's output that an error quotes
_SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Ran(NamedTuple):
    """What a command left behind."""

    rc: int
    out: str
    err: str

    def tail(self) -> str:
        """Return the end of what it said, errors last."""
        return (self.out + self.err).strip()[-_TAIL:]


@dataclass(frozen=True)
class Node:
    """The node that this process runs on; ``root`` is another folder in tests, and paths stay as the node itself names them."""

    root: Path = Path("/")
    environment: dict[str, str] = field(default_factory=dict)
    name: str = field(default_factory=platform.node)

    def at(self, path: str) -> Path:
        """Return where the node's ``path`` lies."""
        return self.root / path.lstrip("/")

    def exists(self, path: str) -> bool:
        """Return whether ``path`` is there; a link to nowhere is not."""
        return self.at(path).exists()

    def text(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none to read. Bytes that are not UTF-8 become question marks."""
        try:
            return self.at(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none where there is no such folder."""
        try:
            return sorted(os.listdir(self.at(path)))
        except OSError:
            return []

    def real(self, path: str) -> str:
        """Return the node's own name of the file that ``path`` leads to."""
        resolved = os.path.realpath(self.at(path))
        return resolved if self.root == Path("/") else "/" + os.path.relpath(resolved, os.path.realpath(self.root))

    def which(self, tool: str) -> str | None:
        """Return the path of a command, or None. Folders of the administrator's commands count also where PATH lacks them."""
        return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:{_SBIN}")

    def run(self, argv: Sequence[str], seconds: float = _QUERY_SECONDS, text: str = "", **environment: str) -> Ran:
        """Run a command, with ``text`` as its standard input, and return what it did, whatever its exit status.

        Raises FleetError DriverCommandFailed when it cannot be started or takes longer than ``seconds``.
        """
        command = [self.which(argv[0]) or argv[0], *argv[1:]]
        surroundings = {**os.environ, **self.environment, **environment, "LC_ALL": "C", "LANGUAGE": "C", "PATH": f"{os.environ.get('PATH', '')}:{_SBIN}"}
        try:
            # run_command knows no time limit.
            # pylint: disable-next=ansible-bad-function
            done = subprocess.run(
                command, input=text, capture_output=True, timeout=seconds, env=surroundings, check=False, encoding="utf-8", errors="replace",
            )
        except subprocess.TimeoutExpired as error:
            raise self.failed(argv, f"no answer in {seconds:g} s") from error
        except OSError as error:
            raise self.failed(argv, str(error)) from error
        return Ran(done.returncode, done.stdout, done.stderr)

    def query(self, argv: Sequence[str], seconds: float = _QUERY_SECONDS, good: Sequence[int] = (0,), **environment: str) -> str:
        """Return a command's output. Raises FleetError DriverCommandFailed for an exit status that is not in ``good``."""
        ran = self.run(argv, seconds, **environment)
        if ran.rc not in good:
            raise self.failed(argv, f"exit status {ran.rc}: {ran.tail()}")
        return ran.out

    def failed(self, argv: Sequence[str], error: str) -> FleetError:
        """Return the error about a command."""
        return FleetError(finding("DriverCommandFailed", self.name, {"argv": list(argv)}, command=" ".join(argv[:6]), error=error))
