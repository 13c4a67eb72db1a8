# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The edge to the Kubernetes API with the real client against a server in a thread: paging, and every failure as one sentence."""
from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.kube import client as client_module
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.client import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, KubeApi
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

SLICES_PATH = "/apis/resource.k8s.io/v1/resourceslices"


def reason(error: pytest.ExceptionInfo[FleetError]) -> str:
    """The reason code; the sentence must be one line and hold no secret."""
    sentence = error.value.finding.sentence()
    assert "\n" not in sentence
    assert "secret-token" not in sentence
    assert "object at 0x" not in sentence
    return error.value.finding.code


def test_pages_are_joined(server: Any, api: KubeApi) -> None:
    pages = {None: ([1, 2], "t1"), "t1": ([3], "t2"), "t2": ([4], "")}

    def answer(_method: str, _path: str, query: dict[str, str], _body: Any) -> tuple[int, dict[str, Any]]:
        items, token = pages[query.get("continue")]
        return 200, {"items": items, "metadata": {"continue": token}}

    server.answer = answer
    assert api.list_all(RESOURCE_SLICES, field_selector="spec.driver=gpu.nvidia.com") == [1, 2, 3, 4]
    assert [path for _method, path, _query, _body in server.requests] == [SLICES_PATH] * 3
    assert {(query["limit"], query["fieldSelector"]) for _m, _p, query, _b in server.requests} == {("500", "spec.driver=gpu.nvidia.com")}


def test_expired_list_starts_again(server: Any, api: KubeApi, failure: Any) -> None:
    asked: list[str | None] = []

    def answer(_method: str, _path: str, query: dict[str, str], _body: Any) -> tuple[int, dict[str, Any]]:
        asked.append(query.get("continue"))
        if asked == [None, "old"]:
            return failure(410, "The provided continue parameter is too old")
        return 200, {"items": [len(asked)], "metadata": {} if asked[-1] else {"continue": "new" if len(asked) > 1 else "old"}}

    server.answer = answer
    assert api.list_all(NODES) == [3, 4]
    assert asked == [None, "old", None, "new"]


def test_list_that_always_expires(server: Any, api: KubeApi, failure: Any) -> None:
    server.answer = lambda *_request: failure(410)
    with pytest.raises(FleetError, match="expired 3 times") as error:
        api.list_all(NODES)
    assert reason(error) == "ApiRequestFailed"


def test_get_and_patch(server: Any, api: KubeApi, failure: Any) -> None:
    server.answer = lambda method, _path, _query, body: (200, body or {"method": method})
    assert api.get(PODS, "p", "ns") == {"method": "GET"}
    assert api.patch(NODES, "n", {"metadata": {"labels": {"a": None}}}) == {"metadata": {"labels": {"a": None}}}
    assert [path for _method, path, _query, _body in server.requests] == ["/api/v1/namespaces/ns/pods/p", "/api/v1/nodes/n"]
    server.answer = lambda *_request: failure(404)
    assert api.get(NODES, "n") is None
    with pytest.raises(FleetError, match="no object n") as error:
        api.patch(NODES, "n", {})
    assert reason(error) == "ApiRequestFailed"


@pytest.mark.parametrize(
    ("resource", "namespace", "words"),
    [
        (RESOURCE_SLICES, None, ["user eve may not list resourceslices in the cluster", "ClusterRole", 'apiGroups: ["resource.k8s.io"]']),
        (RESOURCE_CLAIMS, None, ["resourceclaims in all namespaces", 'verbs: ["list"]']),
        (PODS, "gpu-operator", ["pods in namespace gpu-operator", "a rule of a Role", 'apiGroups: [""]']),
    ],
)
def test_forbidden_names_the_rule(server: Any, api: KubeApi, failure: Any, resource: Any, namespace: str | None, words: list[str]) -> None:
    server.answer = lambda *_request: failure(403, 'x is forbidden: User "eve" cannot list resource "x"')
    with pytest.raises(FleetError) as error:
        api.list_all(resource, namespace)
    assert reason(error) == "ApiForbidden"
    for word in words:
        assert word in error.value.finding.sentence()


def test_forbidden_patch_names_the_verb(server: Any, api: KubeApi, failure: Any) -> None:
    server.answer = lambda *_request: failure(403, "forbidden")
    with pytest.raises(FleetError, match=r'this user may not patch nodes.*verbs: \["patch"\]'):
        api.patch(NODES, "n", {})


def test_api_that_is_not_served(api: KubeApi) -> None:
    with pytest.raises(FleetError, match=r"does not serve resourceslices of resource\.k8s\.io/v1") as error:
        api.list_all(RESOURCE_SLICES)
    assert reason(error) == "ApiNotServed"


@pytest.mark.parametrize("early", [True, False])
def test_expired_token(server: Any, failure: Any, early: bool) -> None:
    """The server may say so when it is asked for its version, which connecting does, or at the first request."""
    if early:
        server.version = failure(401, "Unauthorized")
    server.answer = lambda *_request: failure(401, "Unauthorized")
    with pytest.raises(FleetError) as error:
        KubeApi.connect(server.auth).list_all(NODES)
    assert reason(error) == "ApiUnauthorized"


def test_server_error_is_told_in_its_words(server: Any, api: KubeApi, failure: Any) -> None:
    server.answer = lambda *_request: failure(500, "etcd is\nnot well")
    with pytest.raises(FleetError, match="500 etcd is not well") as error:
        api.list_all(NODES)
    assert reason(error) == "ApiRequestFailed"


def test_answer_that_is_not_from_an_api_server(server: Any, failure: Any) -> None:
    server.version = failure(404, "no such page")
    with pytest.raises(FleetError) as error:
        KubeApi.connect(server.auth)
    assert reason(error) == "ApiRequestFailed"


@pytest.mark.parametrize("connected", [True, False])
def test_server_down(server: Any, connected: bool) -> None:
    api = KubeApi.connect(server.auth) if connected else None
    server.close()
    with pytest.raises(FleetError, match="Connection refused") as error:
        (api or KubeApi.connect(server.auth)).list_all(NODES)
    assert reason(error) == "ApiUnreachable"


@pytest.mark.parametrize("silent", ["at the handshake", "at the first packet"])
def test_server_that_never_answers(monkeypatch: pytest.MonkeyPatch, silent: str) -> None:
    """A firewall that swallows packets, and a proxy that takes the connection and says nothing: both are given up soon."""
    monkeypatch.setattr(client_module, "_CONNECT_TIMEOUT_S", 0.3)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0 if silent == "at the first packet" else 8)
        if silent == "at the first packet":
            # A full queue: the kernel drops every further SYN.
            stack.enter_context(socket.create_connection(listener.getsockname()))
        began = time.monotonic()
        with pytest.raises(FleetError, match="timed out") as error:
            KubeApi.connect({"host": f"https://127.0.0.1:{listener.getsockname()[1]}", "api_key": "secret-token"})
    assert reason(error) == "ApiUnreachable"
    assert time.monotonic() - began < 3


def test_connecting_leaves_no_discovery_cache(server: Any, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    KubeApi.connect(server.auth)
    assert set(tmp_path.iterdir()) == before


def test_untrusted_certificate(server: Any) -> None:
    del server.auth["ca_cert"]
    with pytest.raises(FleetError) as error:
        KubeApi.connect(server.auth)
    assert reason(error) == "ApiTlsUntrusted"


@pytest.mark.parametrize(
    "content",
    [None, "", "}{", "apiVersion: v1\nkind: Config\ncontexts: []\n", "just text"],
    ids=["no file", "empty", "not YAML", "no context", "no mapping"],
)
def test_unusable_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(FleetError) as error:
        KubeApi.connect({"kubeconfig": str(path)})
    assert reason(error) == "KubeconfigUnusable"


def test_missing_client_certificate(server: Any, tmp_path: Path) -> None:
    auth = {"host": server.auth["host"], "client_cert": str(tmp_path / "none.crt"), "client_key": str(tmp_path / "none.key")}
    with pytest.raises(FleetError, match="No such file") as error:
        KubeApi.connect(auth)
    assert reason(error) == "KubeconfigUnusable"


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MISSING_LIBRARY", "kubernetes")
    with pytest.raises(FleetError, match="Python library kubernetes") as error:
        KubeApi.connect({})
    assert reason(error) == "LibraryMissing"
