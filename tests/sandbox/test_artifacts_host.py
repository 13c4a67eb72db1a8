# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is asked of the machine, of the environment variables and of its apt."""
from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from sandbox.artifacts import ArtifactError, Settings, check_requirements, host, install_host_packages, missing_host_packages, rootfs
from sandbox.artifacts.__main__ import main
from sandbox.artifacts.rootfs import mirror_lines
from sandbox.artifacts.settings import default_kubernetes_version


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache=tmp_path / "not" / "there" / "yet", kubernetes_version="1.99.1")


@pytest.mark.parametrize(
    ("os_release", "fits"),
    [
        ({"ID": "debian"}, True),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, True),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, True),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora", "PRETTY_NAME": "Rocky Linux 9"}, False),
        ({}, False),
    ],
)
def test_distributions(os_release: dict[str, str], fits: bool) -> None:
    findings = host.check_distribution(os_release)
    assert (findings == []) is fits
    if "PRETTY_NAME" in os_release:
        assert "this machine says Rocky Linux 9." in findings[0]


def test_memory_counts_what_is_available() -> None:
    kib = host.MEMORY_GIB * (1 << 20)
    assert host.check_memory(f"MemTotal: {9 * kib} kB\nMemAvailable: {kib} kB\nHugePages_Total:       0\n") == []
    (finding,) = host.check_memory(f"MemTotal: {9 * kib} kB\nMemAvailable: {kib // 2} kB\n")
    assert finding == f"The sandbox needs {host.MEMORY_GIB} GiB of free memory; {host.MEMORY_GIB / 2:.1f} GiB are available."


@pytest.mark.parametrize(("warm", "free_gib", "fits"), [(False, 5, False), (False, 50, True), (True, 5, True), (True, 1, False)])
def test_disk_is_asked_for_where_the_cache_will_be(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: bool, free_gib: int, fits: bool
) -> None:
    if warm:
        (settings.store.root / "nodelayer-abc").mkdir(parents=True)
    asked: list[Path] = []

    def disk_usage(folder: Path) -> os.terminal_size:
        asked.append(folder)
        return type("Usage", (), {"free": free_gib * host.GIB})()

    monkeypatch.setattr(host.shutil, "disk_usage", disk_usage)
    assert (host.check_disk(settings) == []) is fits
    assert asked == [settings.cache if warm else tmp_path]


def test_every_shortcoming_has_its_sentence(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(host.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(host, "_os_release", lambda: {"ID": "fedora", "PRETTY_NAME": "Fedora Linux 44"})
    monkeypatch.setattr(host, "DISK_COLD_GIB", 1 << 30)
    monkeypatch.setattr(host, "MEMORY_GIB", 1 << 30)
    findings = check_requirements(settings)
    for word in ("as root", "aarch64", "Fedora Linux 44", "GiB of disk", "GiB of free memory"):
        assert sum(word in finding for finding in findings) == 1, word
    assert all(finding.endswith(".") for finding in findings)


def test_another_system_is_refused_at_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.platform, "system", lambda: "Darwin")
    assert check_requirements(settings) == ["The sandbox needs Linux; this is Darwin."]


def fake_tool(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_only_packages_that_dpkg_does_not_have_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have = [package for package in host.PACKAGES if package not in ("gcc", "mmdebstrap")]
    rows = "".join(f"echo '{package} ii '\n" for package in have)
    # gcc was removed, but its configuration is still there
    fake_tool(tmp_path, "dpkg-query", rows + "echo 'gcc rc '\nexit 1", monkeypatch)
    assert missing_host_packages() == ["gcc", "mmdebstrap"]


def test_what_is_missing_is_installed_without_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    fake_tool(tmp_path, "dpkg-query", "exit 1", monkeypatch)
    fake_tool(tmp_path, "apt-get", f'echo "$DEBIAN_FRONTEND $*" >> {log}', monkeypatch)
    assert install_host_packages() == list(host.PACKAGES)
    assert log.read_text().splitlines() == [
        "noninteractive --quiet update",
        f"noninteractive --quiet install --yes --no-install-recommends {' '.join(host.PACKAGES)}",
    ]


def test_apts_own_words_are_kept_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(tmp_path, "dpkg-query", "exit 1", monkeypatch)
    fake_tool(tmp_path, "apt-get", "echo 'E: Unable to locate package mmdebstrap' >&2; exit 100", monkeypatch)
    with pytest.raises(ArtifactError, match="apt-get update failed: E: Unable to locate package mmdebstrap"):
        install_host_packages()


def test_nothing_missing_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(tmp_path, "dpkg-query", "".join(f"echo '{package} ii '\n" for package in host.PACKAGES), monkeypatch)
    fake_tool(tmp_path, "apt-get", "exit 100", monkeypatch)
    assert install_host_packages() == []


def test_settings_come_from_the_environment(tmp_path: Path) -> None:
    settings = Settings.from_environment(
        {
            "GPUFLEET_SANDBOX_CACHE": str(tmp_path),
            "GPUFLEET_SANDBOX_KUBERNETES_VERSION": "v1.36.3",
            "GPUFLEET_ASSETS": "/a:/b",
            "KUBEBUILDER_ASSETS": "/c",
            "GPUFLEET_SANDBOX_HELM_RELEASE_URL": "http://mirror.example/helm/",
            "GPUFLEET_SANDBOX_ETCD_RELEASE_URL": "",
            "GPUFLEET_SANDBOX_OFFLINE": "yes",
            "GPUFLEET_SANDBOX_SUITE": "trixie",
        }
    )
    assert settings == Settings(
        cache=tmp_path,
        kubernetes_version="1.36.3",
        assets=(Path("/a"), Path("/b"), Path("/c")),
        helm_release_url="http://mirror.example/helm",
        etcd_release_url="",
        offline=True,
        suite="trixie",
    )


@pytest.mark.parametrize(
    ("environ", "cache"),
    [
        ({"GPUFLEET_SANDBOX_CACHE": "/x", "XDG_CACHE_HOME": "/y", "HOME": "/z"}, "/x"),
        ({"XDG_CACHE_HOME": "/y", "HOME": "/z"}, "/y/gpufleet-dra"),
        ({"XDG_CACHE_HOME": "", "HOME": "/z"}, "/z/.cache/gpufleet-dra"),
    ],
)
def test_where_the_cache_lies(environ: dict[str, str], cache: str) -> None:
    settings = Settings.from_environment(environ)
    assert settings.cache == Path(cache)
    assert settings.kubernetes_version == default_kubernetes_version()
    assert settings.kubernetes_release_url.startswith("https://")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("GPUFLEET_SANDBOX_KUBERNETES_VERSION", "1.36"), ("GPUFLEET_SANDBOX_KUBERNETES_VERSION", "latest"), ("GPUFLEET_SANDBOX_OFFLINE", "maybe")],
)
def test_a_value_that_cannot_be_used_is_named(variable: str, value: str) -> None:
    with pytest.raises(ArtifactError, match=f"{variable} is '{value}'"):
        Settings.from_environment({variable: value, "HOME": "/z"})


def test_the_machines_own_mirrors_serve_the_hosts_suite() -> None:
    rows = (
        "http://mirror.example/debian|trixie|Debian\n"
        "http://mirror.example/debian|trixie-updates|Debian\n"
        "http://mirror.example/security|trixie-security|Debian-Security\n"
        "http://mirror.example/debian|trixie|Debian\n"
        "https://vendor.example/apt|stable|Vendor\n"
    )
    assert mirror_lines(rows, "bookworm") == [
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm-updates main",
        "deb http://mirror.example/security bookworm-security main",
    ]


def test_a_machine_without_debian_sources_names_no_mirror() -> None:
    assert mirror_lines("http://archive.example/ubuntu|noble|Ubuntu\n", "bookworm") == []
    assert mirror_lines("http://mirror.example/security|trixie-security|Debian-Security\n", "bookworm") == []


def test_offline_without_a_root_file_system_is_one_sentence(settings: Settings) -> None:
    with pytest.raises(ArtifactError, match="nothing may be downloaded"):
        rootfs(dataclasses.replace(settings, offline=True))


def test_the_command_line_prints_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake_tool(tmp_path, "etcd", "exit 0", monkeypatch)
    monkeypatch.setenv("GPUFLEET_ASSETS", str(tmp_path))
    assert main(["etcd"]) == 0
    assert capsys.readouterr().out == f"etcd {tmp_path / 'etcd'}\n"
    assert main(["etcd", "kublet"]) == 1
    assert "error: unknown program kublet" in capsys.readouterr().err
