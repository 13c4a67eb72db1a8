# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An API server in this process."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from api_server import ApiServer


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[Callable[..., ApiServer]]:
    """Starts an API server: ``api_server(labels, annotations)``."""
    started: list[ApiServer] = []

    def start(labels: dict[str, str], annotations: dict[str, str] | None = None) -> ApiServer:
        started.append(ApiServer(tmp_path, dict(labels), dict(annotations or {})))
        return started[-1]

    yield start
    for server in started:
        server.close()
