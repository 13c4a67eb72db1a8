# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The GPU models that a node layer's emulator knows."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..errors import SandboxError
from ..spec import NodeSpec


def check(nodes: Iterable[NodeSpec], layer: Path) -> None:
    """Raise SandboxError, naming the known models, when a node has a GPU of a model that is none of them."""
    known = _known(layer)
    for node in nodes:
        for group in node.gpus:
            if group.model not in known:
                raise SandboxError(f"{node.name}: there is no GPU model {group.model}; known are {', '.join(known)}.")


def _known(layer: Path) -> list[str]:
    library = layer / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    command = [str(layer / "usr/local/bin/nvmlctl"), "--library", str(library), "models", "--json"]
    return [row["model"] for row in json.loads(subprocess.run(command, check=True, capture_output=True).stdout)]
