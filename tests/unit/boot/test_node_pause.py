# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plugin kept off a node from the node itself: requests over TLS, what is written on the Node, and that the role understands it."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.boot import node_api, node_pause
from ansible_collections.gpufleet.dra.plugins.module_utils.boot.node_api import NodeApi, NodeApiError
from ansible_collections.gpufleet.dra.plugins.module_utils.boot.node_pause import PLUGIN_LABEL, pause_patch, resume_patch
from ansible_collections.gpufleet.dra.plugins.module_utils.kube import pause_record
from api_server import ApiServer

from sandbox.control_plane.pki import Authority

VALIDATOR = "nvidia.com/gpu.deploy.dra-validator"
MANAGED = {PLUGIN_LABEL: "true", VALIDATOR: "false", "other": "x"}
Start = Callable[..., ApiServer]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_api, "_POLL_S", 0.05)


def test_the_words_on_the_node_are_those_of_the_role() -> None:
    ours = (node_pause.ANNOTATION, node_pause.PAUSED, node_pause.PLUGIN_LABEL, set(node_pause.LABELS))
    assert ours == (pause_record.ANNOTATION, pause_record.PAUSED, pause_record.PLUGIN_LABEL, {*pause_record.OPERANDS, pause_record.PLUGIN_LABEL})


def test_the_plugin_is_kept_off_and_let_back_by_the_kubelets_certificate(api_server: Start) -> None:
    server = api_server(MANAGED, {"kept": "1"})
    assert NodeApi(server.access, 5).change(pause_patch)
    assert server.labels == {**MANAGED, PLUGIN_LABEL: pause_record.PAUSED}
    assert not NodeApi(server.access, 5).change(pause_patch), "a second failed boot has nothing to do"
    assert NodeApi(server.access, 5).change(resume_patch)
    assert server.labels == MANAGED and server.annotations == {"kept": "1"}
    assert not NodeApi(server.access, 5).change(resume_patch)
    assert {user for _method, user in server.requests} == {"system:node:n1"}


def test_the_role_takes_it_for_a_pause_of_its_own(api_server: Start) -> None:
    server = api_server(MANAGED)
    NodeApi(server.access, 5).change(pause_patch)
    record = pause_record.read_record(server.node)
    assert record is not None and record.plugin_comes_back and not record.cordoned
    assert record.labels[PLUGIN_LABEL] == "true" and record.labels[VALIDATOR] == "false"
    assert pause_record.view(server.node)["paused"]


def test_a_label_that_is_absent_is_absent_again_afterwards(api_server: Start) -> None:
    server = api_server({"other": "x"})
    NodeApi(server.access, 5).change(pause_patch)
    assert server.labels[PLUGIN_LABEL] == pause_record.PAUSED
    NodeApi(server.access, 5).change(resume_patch)
    assert server.labels == {"other": "x"}


@pytest.mark.parametrize("value", ["false", pause_record.PAUSED, "paused-for-driver-upgrade"])
def test_a_plugin_that_is_kept_off_already_stays_somebody_elses(api_server: Start, value: str) -> None:
    server = api_server({PLUGIN_LABEL: value})
    assert not NodeApi(server.access, 5).change(pause_patch)
    assert not NodeApi(server.access, 5).change(resume_patch)
    assert server.labels == {PLUGIN_LABEL: value} and server.annotations == {}


def test_the_record_of_the_role_is_kept_and_not_taken_back(api_server: Start) -> None:
    theirs = pause_record.PauseRecord(dict.fromkeys(node_pause.LABELS, "true"), True, True).annotation()
    server = api_server({PLUGIN_LABEL: "true"}, {node_pause.ANNOTATION: theirs})
    assert NodeApi(server.access, 5).change(pause_patch)
    assert server.annotations == {node_pause.ANNOTATION: theirs} and server.labels[PLUGIN_LABEL] == pause_record.PAUSED
    assert not NodeApi(server.access, 5).change(resume_patch)


@pytest.mark.parametrize("annotation", ["", "null", "[]", "{", '{"by": "gpufleet-mig.service"}'])
def test_a_record_that_cannot_be_read_is_left_to_the_role(api_server: Start, annotation: str) -> None:
    server = api_server(MANAGED, {node_pause.ANNOTATION: annotation})
    assert not NodeApi(server.access, 5).change(resume_patch)
    assert server.annotations == {node_pause.ANNOTATION: annotation}


def test_a_change_in_between_is_seen(api_server: Start) -> None:
    server = api_server(MANAGED)

    def late(node: dict) -> dict | None:
        if server.labels["other"] == "x":
            server.change_behind(other="y")
        return pause_patch(node)

    assert NodeApi(server.access, 5).change(late)
    assert server.labels == {**MANAGED, "other": "y", PLUGIN_LABEL: pause_record.PAUSED}
    assert [method for method, _user in server.requests] == ["GET", "PATCH", "GET", "PATCH"]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_api_server_that_is_not_ready_is_asked_again(api_server: Start, status: int) -> None:
    server = api_server(MANAGED)
    server.answers = [status, status]
    assert NodeApi(server.access, 5).change(pause_patch)
    assert server.labels[PLUGIN_LABEL] == pause_record.PAUSED


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_final_and_quoted(api_server: Start, status: int) -> None:
    server = api_server(MANAGED)
    server.answers = [status]
    with pytest.raises(NodeApiError, match=f"GET was answered with {status}: to order"):
        NodeApi(server.access, 60).change(pause_patch)
    assert len(server.requests) == 1


def test_nobody_there_is_told_after_the_time_given(api_server: Start) -> None:
    server = api_server(MANAGED)
    access = server.access
    server.close()
    begin = time.monotonic()
    with pytest.raises(NodeApiError, match=r"https://127\.0\.0\.1:\d+: .*Connection refused"):
        NodeApi(access, 0.3).change(pause_patch)
    assert time.monotonic() - begin < 3


def test_a_server_of_another_authority_gets_nothing(api_server: Start, tmp_path: Path) -> None:
    server = api_server(MANAGED)
    other = Authority(tmp_path / "other")
    other.ensure("other")
    with pytest.raises(NodeApiError, match="certificate verify failed"):
        NodeApi(replace(server.access, ca_pem=other.certificate.read_text()), 0.1).change(pause_patch)
    with pytest.raises(NodeApiError, match="certificate verify failed"):
        NodeApi(replace(server.access, server=server.access.server.replace("127.0.0.1", "localhost")), 0.1).change(pause_patch)
    assert server.requests == []


def test_a_missing_client_certificate_is_told(api_server: Start) -> None:
    server = api_server(MANAGED)
    with pytest.raises(NodeApiError, match="No such file"):
        NodeApi(replace(server.access, key="/nothing.pem"), 0.1).change(pause_patch)
