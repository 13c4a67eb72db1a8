# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the few things that are needed from a go.mod file: versions and replacements."""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import ArtifactError

_BLOCK = re.compile(r"^(\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^(require|replace) ([^(\n]+)$", re.MULTILINE)


@dataclass(frozen=True)
class GoMod:
    """``requires``: module path to version (``v1.2.3``); ``replaces``: module path to what stands on the right of its arrow."""

    path: Path
    requires: dict[str, str]
    replaces: dict[str, str]

    def version(self, module: str) -> str:
        """Return the required version of ``module``, with its leading v. Raises ArtifactError when it is not required."""
        try:
            return self.requires[module]
        except KeyError:
            raise ArtifactError(f"{self.path} does not require {module}.") from None


def read(path: Path) -> GoMod:
    """Return what ``path`` requires and replaces. Raises ArtifactError when it cannot be read."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}.") from error
    entries = [(verb, line) for verb, block in _BLOCK.findall(text) for line in block.splitlines()]
    entries += _LINE.findall(text)
    requires: dict[str, str] = {}
    replaces: dict[str, str] = {}
    for verb, line in entries:
        words = line.split("//")[0].split()
        if verb == "require" and len(words) == 2:
            requires[words[0]] = words[1]
        elif verb == "replace" and "=>" in words:
            replaces[words[0]] = " ".join(words[words.index("=>") + 1 :])
    return GoMod(path, requires, replaces)
