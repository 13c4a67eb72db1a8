# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The verdict as table, sentence, JSON and JUnit XML."""
from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.report import document, junit, summary, table
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.verdict import Host, Verdict, judge
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import finding

NOW = "2026-01-02T03:04:05Z"


@pytest.fixture
def verdict(fleet: Any) -> Verdict:
    """One node right, one GPU of another wrong, one host not judged."""
    fleet.devices("h100-1").remove(fleet.device("h100-1", "gpu-0"))
    hosts = [Host(name, name, nvml=nvml) for name, nvml in fleet.nvml.items()]
    return judge([*hosts, Host("h100-2", "h100-2", not_judged="it cannot be reached")], fleet.cluster(), "gpu.nvidia.com")


def test_table_is_aligned(verdict: Verdict) -> None:
    lines = table(verdict.rows)
    assert lines[0].split() == ["node", "gpu", "layout", "devices", "published", "verdict"]
    columns = {line.index(word) for line, word in zip(lines, ["verdict", "wrong", "right", "right", "not judged"], strict=True)}
    assert len(columns) == 1


def test_summary_counts(verdict: Verdict) -> None:
    text = "2 of 3 GPUs on 2 nodes published exactly as NVML reports, 1 error, 1 host not judged"
    assert summary(verdict) == text


def test_document(verdict: Verdict) -> None:
    data = document(verdict, "gpu.nvidia.com", NOW)
    assert json.loads(json.dumps(data)) == data
    assert (data["verdict"], data["judged_at"], data["driver"]) == ("wrong", NOW, "gpu.nvidia.com")
    assert data["counts"] == {"nodes": 2, "gpus": 3, "gpus_right": 2, "not_judged": 1, "errors": 1, "warnings": 1}
    assert [row["verdict"] for row in data["gpus"]] == ["wrong", "right", "right", "not judged"]
    assert data["findings"][0]["reason"] == "DeviceMissing"
    assert {device["name"] for device in data["expected"]["a100-1"]} == {
        "gpu-3-mig-3g40gb-9-0", "gpu-3-mig-1g10gb-me-20-4", "gpu-3-mig-1g20gb-15-6",
    }  # fmt: skip


def test_warnings_alone_leave_it_right(fleet: Any) -> None:
    hosts = [Host("h100-1", "h100-1", nvml=fleet.nvml["h100-1"])]
    data = document(judge(hosts, fleet.cluster(), "gpu.nvidia.com"), "gpu.nvidia.com", NOW)
    assert (data["verdict"], data["counts"]["warnings"]) == ("right", 1)


def test_junit(verdict: Verdict) -> None:
    expectation = finding("ExpectationFailed", "16 whole GPUs", query="length(gpus)", expected=16, found=3)
    root = ElementTree.fromstring(junit(verdict._replace(findings=[*verdict.findings, expectation])))
    suites = {suite.get("name"): suite for suite in root}
    counts = {name: (suite.get("tests"), suite.get("failures"), suite.get("skipped")) for name, suite in suites.items()}
    assert counts == {"h100-1": ("3", "1", "0"), "a100-1": ("2", "0", "0"), "h100-2": ("1", "0", "1"), "fleet": ("1", "1", "0")}
    failures = [(case.get("name"), case.find("failure").get("type")) for case in suites["h100-1"] if case.find("failure") is not None]
    assert failures == [("GPU 0 GPU-11111111-0000-4000-8000-000000000000", "DeviceMissing")]
    assert suites["h100-2"][0].find("skipped") is not None
