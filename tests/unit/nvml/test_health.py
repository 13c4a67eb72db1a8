# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The health part of the facts: what is read, and that a query without an answer is None and stops nothing."""
from __future__ import annotations

from ctypes import Structure, c_uint
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.codes import NOT_TOLD, NvmlError
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.health import read_health
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.links import read_links

from tests.unit.nvml.fake_nvml import FakeError, failing, session_over

NOTHING_TOLD = {
    "ecc": {"enabled": None, "pending": None, "uncorrected_volatile": None, "uncorrected_aggregate": None, "sram_threshold_exceeded": None},
    "row_remap": None, "recovery_action": None, "fabric": None, "clock_event_reasons": [], "repair": None,
}


class Sram(Structure):
    _fields_ = [("version", c_uint), ("bThresholdExceeded", c_uint)]


class FabricV2(Structure):
    _fields_ = [("status", c_uint), ("state", c_uint), ("healthMask", c_uint)]


class FabricV3(Structure):
    _fields_ = [*FabricV2._fields_, ("healthSummary", c_uint)]


STRUCTURES = {"c_nvmlEccSramErrorStatus_v1_t": Sram, "c_nvmlGpuFabricInfo_v3_t": FabricV3, "c_nvmlGpuFabricInfo_v2_t": FabricV2}
QUERIES = (
    "nvmlDeviceGetEccMode", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetSramEccErrorStatus", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetRepairStatus", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetCurrentClocksEventReasons",
)


def sram(_handle: Any, reference: Any) -> None:
    reference._obj.bThresholdExceeded = 1


def fabric(_handle: Any, reference: Any) -> None:
    info = reference._obj
    info.state, info.status, info.healthMask = 3, 0, 0x2A
    if isinstance(info, FabricV3):
        info.healthSummary = 1


def field(value: int, value_type: int = 1, code: int = 0) -> Any:
    value_of = {1: "uiVal", 3: "ullVal"}[value_type]
    return lambda _handle, _fields: [SimpleNamespace(nvmlReturn=code, valueType=value_type, value=SimpleNamespace(**{value_of: value}))]


def answers() -> dict[str, Any]:
    return {
        "nvmlDeviceGetEccMode": lambda _handle: [1, 0], "nvmlDeviceGetTotalEccErrors": lambda _handle, kind, counter: 10 * kind + counter,
        "nvmlDeviceGetSramEccErrorStatus": sram, "nvmlDeviceGetRemappedRows": lambda _handle: (4, 1, 1, 0), "nvmlDeviceGetFieldValues": field(4),
        "nvmlDeviceGetRepairStatus": lambda _handle: [0, 1], "nvmlDeviceGetGpuFabricInfoV": fabric,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda _handle: 0x241, **STRUCTURES,
    }


def test_every_value_stands_where_the_facts_document_has_it() -> None:
    assert read_health(session_over(**answers()), None) == {
        "ecc": {"enabled": True, "pending": False, "uncorrected_volatile": 10, "uncorrected_aggregate": 11, "sram_threshold_exceeded": True},
        "row_remap": {"correctable": 4, "uncorrectable": 1, "pending": True, "failed": False},
        "recovery_action": "drain_and_reset",
        "fabric": {"state": "completed", "status": 0, "health_mask": 0x2A, "summary": "healthy"},
        "clock_event_reasons": ["gpu_idle", "hw_thermal_slowdown", "unknown-9"],
        "repair": {"channel_pending": False, "tpc_pending": True},
    }


def test_a_driver_that_has_none_of_the_functions_tells_nothing() -> None:
    assert read_health(session_over(**STRUCTURES), None) == NOTHING_TOLD


@pytest.mark.parametrize("code", NOT_TOLD)
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_without_an_answer_takes_nothing_else_away(query: str, code: int) -> None:
    told = read_health(session_over(**answers()), None)
    found = read_health(session_over(**{**answers(), query: failing(code)}), None)
    missing = {key for key, value in found.items() if value != told[key]}
    assert len(missing) == 1 and all(found[key] == NOTHING_TOLD[key] for key in missing - {"ecc"})


@pytest.mark.parametrize("query", QUERIES)
def test_a_lost_gpu_is_not_taken_for_a_driver_that_does_not_tell(query: str) -> None:
    with pytest.raises(NvmlError) as caught:
        read_health(session_over(**{**answers(), query: failing(15)}), None)
    assert caught.value.name == "GPU_IS_LOST"


def test_field_values_are_taken_by_their_type_and_a_field_without_value_is_none() -> None:
    def action(values: Any) -> str | None:
        return read_health(session_over(**{**answers(), "nvmlDeviceGetFieldValues": values}), None)["recovery_action"]

    assert action(field(0)) == "none" and action(field(2, 3)) == "node_reboot" and action(field(77)) == "unknown-77" and action(field(0, 1, 3)) is None
    with pytest.raises(NvmlError):
        action(field(0, 1, 16))


@pytest.mark.parametrize("refusal", [2, 25])
def test_the_fabric_of_a_driver_without_the_third_structure_has_no_summary(refusal: int) -> None:
    def old(handle: Any, reference: Any) -> None:
        if isinstance(reference._obj, FabricV3):
            raise FakeError(refusal)
        fabric(handle, reference)

    found = read_health(session_over(**{**answers(), "nvmlDeviceGetGpuFabricInfoV": old}), None)["fabric"]
    assert found == {"state": "completed", "status": 0, "health_mask": 0x2A, "summary": None}


# -- NVLink ------------------------------------------------------------------------------------------------------------------------------------------

def nvlink(ends: dict[int, tuple[int | None, str | None]], count: int) -> Any:
    """Return a session whose GPU has ``count`` link numbers; ``ends`` has kind and bus id of those that exist, None for what NVML does not tell."""
    def state(_handle: Any, link: int) -> int:
        if link >= count:
            raise FakeError(2)
        if link not in ends:
            raise FakeError(3)
        return 1

    def told(value: Any) -> Any:
        if value is None:
            raise FakeError(3)
        return value

    return session_over(
        nvmlDeviceGetNvLinkState=state, nvmlDeviceGetNvLinkRemoteDeviceType=lambda _handle, link: told(ends[link][0]),
        nvmlDeviceGetNvLinkRemotePciInfo=lambda _handle, link: SimpleNamespace(busId=told(ends[link][1])))


@pytest.mark.parametrize(("ends", "count", "expected"), [
    ({0: (0, "00000000:4B:00.0"), 1: (0, "00000000:4B:00.0"), 3: (0, "00000000:0A:00.0")}, 12, (["00000000:0a:00.0", "00000000:4b:00.0"], False)),
    ({0: (2, "00000000:C1:00.0"), 1: (2, "00000000:C2:00.0")}, 18, ([], True)),
    ({0: (None, None), 1: (0, None), 2: (0, "00000000:4B:00.0")}, 3, (["00000000:4b:00.0"], False)),
    ({}, 18, ([], False)),
])
def test_links_lead_to_gpus_or_to_a_switch(ends: Any, count: int, expected: Any) -> None:
    assert tuple(read_links(nvlink(ends, count), None)) == expected


def test_a_lost_gpu_is_not_taken_for_one_without_nvlink() -> None:
    with pytest.raises(NvmlError):
        read_links(session_over(nvmlDeviceGetNvLinkState=failing(15)), None)
