# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Snapshot, waiting and queries."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.kube import query as query_module
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.client import KubeApi
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.query import search, unmet
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.snapshot import take_snapshot
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.waits import poll
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

SLICE = Path(__file__).resolve().parents[2] / "fixtures" / "slices" / "a100-node.json"


def test_snapshot_is_three_lists(server: Any, api: KubeApi) -> None:
    import json

    objects = {
        "/apis/resource.k8s.io/v1/resourceslices": [json.loads(SLICE.read_text())],
        "/api/v1/namespaces/gpu-operator/pods": [
            {"metadata": {"name": "plugin", "namespace": "gpu-operator", "uid": "u"}, "spec": {"nodeName": "a100-1"}, "status": {"phase": "Pending"}}
        ],
        "/api/v1/nodes": [{"metadata": {"name": "a100-1"}, "status": {"nodeInfo": {"machineID": "m"}}}],
    }
    server.answer = lambda _method, path, _query, _body: (200, {"items": objects[path], "metadata": {}})
    found = take_snapshot(api, "gpu.nvidia.com", "app=plugin", "gpu-operator")
    assert [path for _method, path, _query, _body in server.requests] == list(objects)
    selectors = [(query.get("fieldSelector"), query.get("labelSelector")) for _method, _path, query, _body in server.requests]
    assert selectors == [("spec.driver=gpu.nvidia.com", None), (None, "app=plugin"), (None, None)]
    assert found.nodes["a100-1"].machine_id == "m"
    assert len(found.pools_of("a100-1")[0].devices) == 3
    assert [pod.problem for pod in found.plugin_pods_of("a100-1")] == ["Pending"]


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


def wait(clock: Clock, right_at: float, timeout_s: float) -> float:
    """Poll for the time ``right_at``; return the time seen last."""
    return poll(lambda: clock.now, lambda seen: seen >= right_at, timeout_s, clock=lambda: clock.now, sleep=clock.sleep)


def test_poll_stops_when_it_is_right() -> None:
    clock = Clock()
    assert wait(clock, 101, 60) >= 101
    assert clock.now < 102
    assert clock.pauses == sorted(clock.pauses)


def test_poll_looks_once_more_at_the_end_of_the_time() -> None:
    clock = Clock()
    assert wait(clock, 1000, 20) == pytest.approx(120)
    assert max(clock.pauses) <= 5


def test_poll_without_time_looks_once() -> None:
    clock = Clock()
    assert wait(clock, 1000, 0) == 100
    assert clock.pauses == []


def test_expectations() -> None:
    document = {"gpus": [{"layout": "MIG off"}, {"layout": "7x 1g.10gb"}]}
    met = {"name": "one whole GPU", "query": "length(gpus[?layout=='MIG off'])", "equals": 1}
    assert unmet([met], document) == []
    (found,) = unmet([met, dict(met, name="two", equals=2)], document)
    assert (found.code, found.subject, found.details["found"]) == ("ExpectationFailed", "two", 1)


def test_expression_that_is_not_valid() -> None:
    with pytest.raises(FleetError, match=r"^mine: the JMESPath expression gpus\[ is not valid") as error:
        search("gpus[", {}, "mine")
    assert error.value.finding.code == "InvalidQuery"
    assert "\n" not in str(error.value)


def test_query_without_jmespath(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "HAS_JMESPATH", False)
    with pytest.raises(FleetError, match=f"jmespath is missing in {sys.executable}"):
        search("a", {}, "query")
