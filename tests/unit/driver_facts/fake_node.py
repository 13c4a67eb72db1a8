# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A node below a folder of the test's own, whose commands answer what the test says."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.node import Node, Ran


@dataclass(frozen=True)
class FakeNode(Node):
    """``answers`` holds by the beginning of a command line what it prints, or a whole Ran; a tool that begins none of them is not there."""

    answers: dict[str, str | Ran] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)  # standard inputs

    def which(self, tool: str) -> str | None:
        return f"/usr/bin/{tool}" if any(line.split()[0] == tool for line in self.answers) else None

    def run(self, argv: Sequence[str], seconds: float = 60, text: str = "", **environment: str) -> Ran:
        line = " ".join(argv)
        self.asked.append(line)
        self.questions.extend([text] if text else [])
        for start, answer in self.answers.items():
            if line.startswith(start):
                return answer if isinstance(answer, Ran) else Ran(0, answer, "")
        return Ran(127, "", f"no answer to {line}")


def node(root: Path, files: dict[str, str | bytes] | None = None, **answers: str | Ran) -> FakeNode:
    """Return a node with these files; keyword names are command lines with ``_`` for blanks, or use ``answers`` of the result."""
    for path, content in (files or {}).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return FakeNode(root, name="node-1", answers=dict(answers))
