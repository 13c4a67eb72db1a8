# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NVML session where the emulator cannot stand in: drivers that speak only old structures or miss functions, processes, GPUs without MIG."""
from __future__ import annotations

from ctypes import Structure, c_uint
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml import library, mig_facts
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.calls import optional
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import NvmlError, code_name
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.session import NvmlSession


class FakeError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


def session_over(library: Any = None, **functions: Any) -> NvmlSession:
    """Return an open session over a pynvml that has only these functions, over a library that has only those of ``library``."""
    session = NvmlSession()
    session._pynvml = SimpleNamespace(NVMLError=FakeError, nvmlLib=library, **functions)
    return session


def profile(number: int, name: bytes | None = None) -> SimpleNamespace:
    return SimpleNamespace(
        id=number, name=name, sliceCount=1, instanceCount=7, memorySizeMB=9984, multiprocessorCount=16, copyEngineCount=1, decoderCount=1, encoderCount=0,
        jpegCount=1, ofaCount=0)


def test_profiles_are_walked_beyond_what_pynvml_knows_and_holes_are_skipped() -> None:
    offered = {0: profile(19, b"MIG 1g.10gb"), 7: profile(20, b"MIG 1g.10gb+me"), 19: profile(99, b"MIG 5g.50gb")}

    def info(_handle: Any, enum: int, version: int) -> SimpleNamespace:
        assert version == 2
        if enum > 20:
            raise FakeError(2)
        if enum not in offered:
            raise FakeError(3)
        return offered[enum]

    found = session_over(nvmlDeviceGetGpuInstanceProfileInfo=info).gpu_instance_profiles(None)
    assert [(item.enum, item.id, item.name) for item in found] == [(0, 19, "MIG 1g.10gb"), (7, 20, "MIG 1g.10gb+me"), (19, 99, "MIG 5g.50gb")]


@pytest.mark.parametrize("refusal", [2, 13, 25])
def test_a_driver_that_knows_only_the_first_structure_gives_profiles_without_names(refusal: int) -> None:
    def info(_handle: Any, enum: int, version: int) -> SimpleNamespace:
        if version == 2:
            raise FakeError(refusal)
        if enum > 1:
            raise FakeError(2)
        return profile(19 - enum)

    found = session_over(nvmlDeviceGetGpuInstanceProfileInfo=info).gpu_instance_profiles(None)
    assert [(item.id, item.name) for item in found] == [(19, None), (18, None)]


def test_a_lost_gpu_is_an_error_and_not_an_empty_list() -> None:
    def info(_handle: Any, _enum: int, _version: int) -> None:
        raise FakeError(15)

    with pytest.raises(NvmlError) as caught:
        session_over(nvmlDeviceGetGpuInstanceProfileInfo=info).gpu_instance_profiles(None)
    assert caught.value.name == "GPU_IS_LOST" and caught.value.call == "nvmlDeviceGetGpuInstanceProfileInfo"


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


@pytest.mark.parametrize("refusal", [2, 3])
def test_a_profile_whose_placements_the_driver_does_not_tell_has_none_and_hides_nothing_else(refusal: int) -> None:
    def places(_handle: Any, profile_id: int, rows: Any, count: Any) -> None:
        if profile_id == 20:
            raise FakeError(refusal)
        count._obj.value = 1
        if rows is not None:
            rows[0].start, rows[0].size = 4, 2

    def info(_handle: Any, enum: int, version: int) -> SimpleNamespace:
        if enum > 1:
            raise FakeError(2)
        return profile(19 + enum, b"MIG 1g.10gb" + b"+me" * enum)

    class Place(Structure):
        _fields_ = [("start", c_uint), ("size", c_uint)]

    session = session_over(
        nvmlDeviceGetGpuInstancePossiblePlacements=places, nvmlDeviceGetGpuInstanceProfileInfo=info, c_nvmlGpuInstancePlacement_t=Place,
        nvmlDeviceGetMigMode=lambda _handle: [0, 0],
        nvmlDeviceGetFieldValues=lambda _handle, _fields: [SimpleNamespace(nvmlReturn=3)],
    )
    rows = mig_facts.read_mig(session, None, 80 << 30)["profiles"]
    assert [(row["name"], row["placements"]) for row in rows] == [("1g.10gb", [{"start": 4, "size": 2}]), ("1g.10gb+me", [])]


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
