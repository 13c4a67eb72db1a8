# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which MIG profiles are found on drivers that know other enums and structures than the emulator's."""
from __future__ import annotations

from ctypes import Structure, c_uint, sizeof
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml import mig_facts
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import NvmlError

from tests.unit.nvml.fake_nvml import FakeError, failing, session_over


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


@pytest.mark.parametrize("refusal", [2, 25])
def test_a_driver_that_knows_only_the_third_structure_is_asked_in_that_one(refusal: int) -> None:
    def info_v(_handle: Any, enum: int, reference: Any) -> int:
        info = reference._obj
        assert (sizeof(info), info.version) == (152, 0x03000098)  # nvml.h: nvmlGpuInstanceProfileInfo_v3
        if enum > 2:
            return refusal
        if enum == 1:
            return 3
        info.id, info.sliceCount, info.instanceCount, info.memorySizeMB, info.name = 19 - enum, 1 + enum, 7, 9984, b"MIG 1g.10gb"
        return 0

    session = session_over(SimpleNamespace(nvmlDeviceGetGpuInstanceProfileInfoV=info_v), nvmlDeviceGetGpuInstanceProfileInfo=failing(refusal))
    found = session.gpu_instance_profiles(None)
    assert [(item.enum, item.id, item.name, item.compute_slices, item.memory_mib) for item in found] == [
        (0, 19, "MIG 1g.10gb", 1, 9984), (2, 17, "MIG 1g.10gb", 3, 9984)]


def test_a_driver_that_lists_nothing_while_mig_is_off_gives_an_empty_list() -> None:
    assert session_over(nvmlDeviceGetGpuInstanceProfileInfo=failing(3)).gpu_instance_profiles(None) == []


@pytest.mark.parametrize("refusal", [2, 25])
def test_a_driver_that_knows_no_structure_at_all_is_an_error_and_not_an_empty_list(refusal: int) -> None:
    with pytest.raises(NvmlError) as caught:
        session_over(nvmlDeviceGetGpuInstanceProfileInfo=failing(refusal)).gpu_instance_profiles(None)
    assert caught.value.code == refusal


def test_compute_profiles_are_asked_in_the_second_structure_when_the_first_is_unknown() -> None:
    def info(_instance: Any, enum: int, _engines: int, version: int) -> SimpleNamespace:
        if version == 1:
            raise FakeError(2)
        if enum > 7:
            raise FakeError(2)
        if enum not in (0, 7):
            raise FakeError(3)
        return SimpleNamespace(id=enum, sliceCount=1, multiprocessorCount=26 if enum else 16)

    found = session_over(nvmlGpuInstanceGetComputeInstanceProfileInfo=info).compute_profiles(None)
    assert [(item.id, item.slices, item.multiprocessors) for item in found] == [(0, 1, 16), (7, 1, 26)]


def test_a_lost_gpu_is_an_error_and_not_an_empty_list() -> None:
    def info(_handle: Any, _enum: int, _version: int) -> None:
        raise FakeError(15)

    with pytest.raises(NvmlError) as caught:
        session_over(nvmlDeviceGetGpuInstanceProfileInfo=info).gpu_instance_profiles(None)
    assert caught.value.name == "GPU_IS_LOST" and caught.value.call == "nvmlDeviceGetGpuInstanceProfileInfo"


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
