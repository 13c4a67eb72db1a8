# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NVML session where the emulator cannot stand in: drivers that speak only old structures or miss functions, processes, GPUs without MIG."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml import library
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.calls import optional
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import NvmlError, code_name

from tests.unit.nvml.fake_nvml import FakeError, session_over


def test_processes_name_their_instance_and_kinds_that_do_not_exist_are_left_out() -> None:
    def none(_handle: Any) -> None:
        raise FakeError(3)

    whole = SimpleNamespace(pid=1, gpuInstanceId=0xFFFFFFFF, computeInstanceId=0xFFFFFFFF, usedGpuMemory=None)
    inside = SimpleNamespace(pid=2, gpuInstanceId=7, computeInstanceId=0, usedGpuMemory=3 << 20)
    found = session_over(
        nvmlDeviceGetComputeRunningProcesses_v3=lambda _handle: [whole, inside], nvmlDeviceGetGraphicsRunningProcesses_v3=none,
        nvmlDeviceGetMPSComputeRunningProcesses_v3=none,
    ).processes(None)
    assert [vars(item) for item in found] == [
        {"pid": 1, "kind": "compute", "gpu_instance_id": None, "compute_instance_id": None, "used_memory_mib": None},
        {"pid": 2, "kind": "compute", "gpu_instance_id": 7, "compute_instance_id": 0, "used_memory_mib": 3},
    ]


def test_a_gpu_without_mig_has_no_mode_and_one_without_memory_no_size() -> None:
    def unsupported(_handle: Any) -> None:
        raise FakeError(3)

    session = session_over(nvmlDeviceGetMigMode=unsupported, nvmlDeviceGetMemoryInfo=unsupported)
    assert session.mig_mode(None) is None and session.memory_bytes(None) is None


def test_the_activation_status_is_handed_on() -> None:
    assert session_over(nvmlDeviceSetMigMode=lambda _handle, mode: 19 if mode == 1 else 0).set_mig_mode(None, True) == 19


def test_optional_swallows_only_the_named_codes() -> None:
    def fail() -> None:
        raise NvmlError(13, "nvmlX")

    assert optional(fail, 3, 13) is None
    with pytest.raises(NvmlError):
        optional(fail, 3)
    assert code_name(19) == "IN_USE" and code_name(77) == "code 77"


def test_the_library_is_looked_for_where_distributions_put_it() -> None:
    folders = [str(path.parent) for path in library.library_candidates("/run/nvidia/driver")]
    assert folders[0] == "/run/nvidia/driver/usr/lib64"
    assert any(folder.endswith("-linux-gnu") for folder in folders)
    assert all(folder.startswith("/run/nvidia/driver/") for folder in folders)
