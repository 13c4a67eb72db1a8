# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tests of both layouts look at: the emulator's own view of the GPUs, not that of the modules under test."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from testinfra.host import Host

Placement = tuple[str, int]


@pytest.fixture
def gpus(host: Host) -> list[dict[str, Any]]:
    """The GPUs of the host as the emulator has them."""
    return json.loads(host.check_output("nvmlctl show --json"))["gpus"]


@pytest.fixture
def layouts(gpus: list[dict[str, Any]]) -> list[list[Placement] | None]:
    """Per GPU its GPU instances as (profile, start), sorted by start; None where MIG mode is off."""
    return [
        sorted(((item["profile"], item["start"]) for item in gpu["instances"]), key=lambda item: item[1]) if gpu["mig_current"] else None
        for gpu in gpus
    ]


@pytest.fixture
def calls(host: Host) -> Callable[[str], list[dict[str, Any]]]:
    """A function that returns the successful calls of one NVML function since the layout began to change."""
    logged = [json.loads(line) for line in host.check_output("nvmlctl log --since-marker").splitlines()]
    return lambda symbol: [call for call in logged if call.get("symbol") == symbol and call["rc"] == 0]
