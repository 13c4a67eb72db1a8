# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The order of search: user's folder, earlier find, official release, build; with a builder that compiles nothing."""
from __future__ import annotations

import dataclasses
import hashlib
import io
from pathlib import Path

import pytest

from sandbox.artifacts import ArtifactError, Progress, Settings, ensure, lookup, releases
from sandbox.artifacts.binaries import BINARIES
from sandbox.artifacts.golang import Toolchain
from sandbox.artifacts.lookup import build_flags, version_of

VERSION = "1.99.1"


class Builder:
    """Takes the place of the Go toolchain: counts and writes a file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.built: list[str] = []
        self.fails = False
        monkeypatch.setattr(lookup, "toolchain", lambda settings, progress: Toolchain(Path("/bin/false"), "go1.26.0"))
        monkeypatch.setattr(lookup, "graph_of", lambda binary, settings, go, progress: binary.graph)
        monkeypatch.setattr(Toolchain, "run", self._run)

    def _run(self, purpose: str, arguments: list[str], *_rest: object) -> str:
        target = Path(arguments[arguments.index("-o") + 1])
        target.write_text("built")
        if self.fails:
            raise ArtifactError(f"{purpose} failed")
        self.built.append(target.name)
        return ""


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    return Builder(monkeypatch)


@pytest.fixture(autouse=True)
def forget_sites() -> None:
    releases.reachable.cache_clear()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose release servers are all off."""
    urls = {field.name: "" for field in dataclasses.fields(Settings) if field.name.endswith("_release_url")}
    return Settings(cache=tmp_path / "cache", kubernetes_version=VERSION, **urls)  # type: ignore[arg-type]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Files of a pretended release server by path below its address; every access is noted under the key ``asked``."""
    files: dict[str, bytes] = {"asked": b""}

    def read(url: str) -> bytes | None:
        path = url.removeprefix("http://releases.example/")
        files["asked"] += path.encode() + b"\n"
        return files.get(path)

    def read_text(url: str) -> str | None:
        content = read(url)
        return None if content is None else content.decode()

    def download(url: str, target: Path) -> None:
        target.write_bytes(read(url) or b"")

    monkeypatch.setattr(releases, "reachable", lambda site, timeout_s: True)
    monkeypatch.setattr(releases, "_read_text", read_text)
    monkeypatch.setattr(releases, "_exists", lambda url: read(url) is not None)
    monkeypatch.setattr(releases, "_download", download)
    return files


def serve_kubelet(files: dict[str, bytes], content: bytes = b"released") -> None:
    path = f"release/v{VERSION}/bin/linux/amd64/kubelet"
    files[path] = content
    files[path + ".sha256"] = hashlib.sha256(b"released").hexdigest().encode()


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


def test_a_build_is_the_last_resort_and_is_kept(settings: Settings, builder: Builder) -> None:
    first = ensure(["kubelet"], settings)["kubelet"]
    assert first.read_text() == "built"
    assert first.parent.parent == settings.cache / "artifacts"
    assert ensure(["kubelet"], settings)["kubelet"] == first
    assert builder.built == ["kubelet"]


def test_a_release_comes_before_a_build(settings: Settings, builder: Builder, served: dict[str, bytes]) -> None:
    serve_kubelet(served)
    settings = dataclasses.replace(settings, kubernetes_release_url="http://releases.example")
    assert ensure(["kubelet"], settings)["kubelet"].read_bytes() == b"released"
    asked = served["asked"]
    assert ensure(["kubelet"], settings)["kubelet"].read_bytes() == b"released"
    assert served["asked"] == asked, "a release that was fetched is asked for again"
    assert builder.built == []


def test_the_users_folder_comes_first_and_each_program_is_looked_for_alone(
    settings: Settings, builder: Builder, served: dict[str, bytes], tmp_path: Path
) -> None:
    serve_kubelet(served)
    given = program(tmp_path / "assets", "kube-scheduler", f"Kubernetes v{VERSION}")
    settings = dataclasses.replace(settings, kubernetes_release_url="http://releases.example", assets=(tmp_path / "none", tmp_path / "assets"))
    found = ensure(["kubelet", "kube-scheduler", "etcd"], settings)
    assert found["kube-scheduler"] == given
    assert found["kubelet"].read_bytes() == b"released"
    assert found["etcd"].read_text() == "built"
    assert builder.built == ["etcd"]


def test_a_given_program_of_another_version_is_refused(settings: Settings, builder: Builder, tmp_path: Path) -> None:
    program(tmp_path / "assets", "kube-apiserver", "Kubernetes v1.28.0")
    settings = dataclasses.replace(settings, assets=(tmp_path / "assets",))
    with pytest.raises(ArtifactError, match=f"v1.28.0.*Kubernetes {VERSION} is wanted"):
        ensure(["kube-apiserver"], settings)
    assert builder.built == []


def test_a_given_file_that_is_no_program_is_passed_over(settings: Settings, builder: Builder, tmp_path: Path) -> None:
    program(tmp_path / "assets", "etcd", "etcd").chmod(0o644)
    settings = dataclasses.replace(settings, assets=(tmp_path / "assets",))
    assert ensure(["etcd"], settings)["etcd"].read_text() == "built"


def test_a_damaged_release_is_refused_and_not_built_around(settings: Settings, builder: Builder, served: dict[str, bytes]) -> None:
    serve_kubelet(served, b"damaged")
    settings = dataclasses.replace(settings, kubernetes_release_url="http://releases.example")
    with pytest.raises(ArtifactError, match="is published for it"):
        ensure(["kubelet"], settings)
    assert builder.built == []
    assert not list((settings.cache / "artifacts").glob("*kubelet*"))


def test_a_version_that_is_not_released_there_is_built_and_said(settings: Settings, builder: Builder, served: dict[str, bytes]) -> None:
    said = io.StringIO()
    settings = dataclasses.replace(settings, kubernetes_release_url="http://releases.example")
    assert ensure(["kubelet"], settings, Progress(said))["kubelet"].read_text() == "built"
    assert "is not there: kubelet is built from source" in said.getvalue()


def test_a_server_out_of_reach_is_said_once(settings: Settings, builder: Builder) -> None:
    said = io.StringIO()
    # port 1 of the loopback address: refused at once
    settings = dataclasses.replace(settings, kubernetes_release_url="http://127.0.0.1:1/base")
    ensure(["kubelet", "kubectl"], settings, Progress(said))
    assert said.getvalue().count("http://127.0.0.1:1 cannot be reached") == 1
    assert builder.built == ["kubectl", "kubelet"]


def test_what_was_built_is_used_before_the_network_is_asked(settings: Settings, builder: Builder, served: dict[str, bytes]) -> None:
    ensure(["kubelet"], settings)
    serve_kubelet(served)
    settings = dataclasses.replace(settings, kubernetes_release_url="http://releases.example")
    assert ensure(["kubelet"], settings)["kubelet"].read_text() == "built"
    assert served["asked"] == b""


def test_offline_asks_no_server(settings: Settings, builder: Builder, served: dict[str, bytes]) -> None:
    serve_kubelet(served)
    settings = dataclasses.replace(settings, kubernetes_release_url="http://releases.example", offline=True)
    assert ensure(["kubelet"], settings)["kubelet"].read_text() == "built"
    assert served["asked"] == b""


def test_an_interrupted_build_leaves_nothing_and_is_repeated(settings: Settings, builder: Builder) -> None:
    builder.fails = True
    with pytest.raises(ArtifactError, match="building kubelet failed"):
        ensure(["kubelet"], settings)
    assert not list((settings.cache / "artifacts").glob("*kubelet*"))
    builder.fails = False
    assert ensure(["kubelet"], settings)["kubelet"].read_text() == "built"


def test_another_kubernetes_version_is_another_artifact(settings: Settings, builder: Builder) -> None:
    first = ensure(["kubelet", "etcd"], settings)
    second = ensure(["kubelet", "etcd"], dataclasses.replace(settings, kubernetes_version="1.99.2"))
    assert first["kubelet"] != second["kubelet"]
    assert first["etcd"] == second["etcd"]


def test_an_unknown_program_is_refused_with_the_known_ones(settings: Settings) -> None:
    with pytest.raises(ArtifactError, match=r"unknown program kublet: known are etcd, .*kubelet"):
        ensure(["kublet"], settings)


def test_progress_names_the_step_and_its_time(settings: Settings, builder: Builder) -> None:
    said = io.StringIO()
    ensure(["etcd"], settings, Progress(said))
    assert said.getvalue().startswith(f"building etcd {version_of(BINARIES['etcd'], settings)} from source, about 1 min ... done in 0.")


def test_versions_come_from_the_graphs_and_are_stamped() -> None:
    settings = Settings(cache=Path("/nowhere"), kubernetes_version="1.36.3")
    assert version_of(BINARIES["kubectl"], settings) == "1.36.3"
    assert version_of(BINARIES["gpu-kubelet-plugin"], settings) == "0.5.0"
    flags = build_flags(BINARIES["kubelet"], "1.36.3")[-1]
    assert "version.gitVersion=v1.36.3" in flags
    assert "version.gitMinor=36" in flags
    assert "-z,lazy" in build_flags(BINARIES["gpu-kubelet-plugin"], "0.5.0")[-1]
