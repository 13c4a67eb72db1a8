# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the boot service says when the driver goes away, or when the engine speaks and then hangs."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.boot import engine, service
from ansible_collections.gpufleet.dra.plugins.module_utils.boot.settings import BootSettings
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.layout import parse_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import NvmlError
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.unreadable import UnreadableGpu
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding


class Session:
    """A driver that is there."""

    def __init__(self, _root: str) -> None:
        pass

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def device_count(self) -> int:
        return 0


@pytest.fixture
def settings() -> BootSettings:
    return BootSettings(parse_layouts([]), frozenset(), allow_reset=False, ignore_health=False, phase_timeout_s=5.0, wait_s=5.0, timeout_s=1.0, pause_node=None)


@pytest.mark.parametrize(("error", "reason"), [
    (FleetError(finding("NvmlDriverNotLoaded", "node-1")), "NvmlDriverNotLoaded"),
    (UnreadableGpu(NvmlError(15, "nvmlDeviceGetUUID"), 3, "GPU-3", None), "GpuLost"),
    (NvmlError(4, "nvmlDeviceSetMigMode"), "NvmlNoPermission"),
])
def test_what_goes_wrong_in_the_change_is_told_as_what_it_is(monkeypatch: pytest.MonkeyPatch, settings: BootSettings, error: Exception, reason: str) -> None:
    def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(engine, "NvmlSession", Session)
    monkeypatch.setattr(engine, "_present", lambda _session: settings.gpu_uuids)
    monkeypatch.setattr(engine, "apply_layout", fail)
    assert engine.make_layout(settings, "/nowhere")["reason"] == reason


def test_an_engine_that_spoke_and_then_hangs_is_believed(monkeypatch: pytest.MonkeyPatch, settings: BootSettings, tmp_path: Any) -> None:
    program = tmp_path / "engine.py"
    program.write_text("import sys, time\nsys.stdout.write('{\"reason\": \"PhaseTimeout\"}')\nsys.stdout.flush()\ntime.sleep(60)\n")
    monkeypatch.setattr(service.sys, "argv", [str(program)])
    assert service._engine(settings, "settings", "state") == {"reason": "PhaseTimeout"}
