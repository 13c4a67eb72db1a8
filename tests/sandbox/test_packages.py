# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stub driver packages: names of both generations, what dpkg and modinfo read in them, and what their programs refuse."""
from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.origins import origin
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge import driver_packages as names

from sandbox.nodes.kernel_module import nvidia_module
from sandbox.spec import SYSTEMS
from tests.packages import deb, rpm, surroundings, table
from tests.packages.contents import FILES, Layout, entries
from tests.packages.stub import Stub, at_least

LAYOUTS = {"debian12": "debian", "debian13": "debian", "ubuntu2404": "ubuntu", "el9": "el-streams", "el10": "el", "sles15": "suse"}
LAYOUT = Layout("usr/lib/x86_64-linux-gnu", "6.1.0-1-amd64")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("version", table.VERSIONS)
def test_a_repository_has_every_package_that_the_role_asks_for(system: str, version: str) -> None:
    offered = {stub.name for stub in table.nvidia_packages(system, version)} | {stub.name for stub in surroundings.distribution(system)}
    for flavour in ("open", "proprietary") if table.branch(version) < 620 else ("open",):
        wanted = names.package_set(LAYOUTS[system], str(table.branch(version)), flavour, "x86_64")
        assert {*wanted.names(), *wanted.pin} <= offered


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_dependency_can_be_met_and_all_names_belong_to_the_driver_set(system: str) -> None:
    around = {stub.name for stub in surroundings.distribution(system)}
    for version in table.VERSIONS:
        stubs = table.nvidia_packages(system, version)
        found = [stub.name for stub in stubs]
        assert len(set(found)) == len(found)
        missing = {relation.name for stub in stubs for relation in stub.depends} - set(found) - around
        assert not missing
        assert {name for name in found if not names.in_driver_set(name, names.manager_of(LAYOUTS[system]))} == set()


def test_names_have_the_branch_up_to_580_and_not_later() -> None:
    old, new = ({stub.name for stub in table.nvidia_packages("ubuntu2404", version)} for version in ("580.173.02", "595.91.07"))
    assert {"nvidia-open-580", "nvidia-dkms-580-open", "libnvidia-compute-580", "nvidia-driver-pinning-580"} <= old
    assert {"nvidia-open", "nvidia-dkms-open", "libnvidia-compute", "nvidia-driver-pinning-595", "nvidia-driver-pinning-595.91.07"} <= new
    assert not any(name.endswith(("-595", "-595-open")) for name in new - {"nvidia-driver-pinning-595"})


def test_620_has_no_proprietary_module_anywhere() -> None:
    for system in SYSTEMS:
        parts = {part for stub in table.nvidia_packages(system, "620.20.01") for part in stub.parts}
        assert not {part for part in parts if part.endswith("proprietary")}


def test_the_streams_of_el9_hold_a_branch_and_a_flavour_each() -> None:
    stubs = [stub for version in table.VERSIONS for stub in table.nvidia_packages("el9", version)]
    document = rpm.modules_document(stubs, "620-open")
    assert document.count("document: modulemd\n") == 5
    stream = document.split('stream: "580-open"')[1].split("document:")[0]
    assert "kmod-nvidia-open-dkms-3:580.173.02-1.el9.x86_64" in stream
    assert "libnvidia-nscq-0:580.178.04-1.x86_64" in stream
    assert "kmod-nvidia-latest-dkms" not in stream
    assert not [stub for stub in table.nvidia_packages("el10", "595.91.07") if stub.streams]


def test_packages_for_rpm_that_share_a_path_keep_their_own_files() -> None:
    stubs = table.nvidia_packages("el9", "595.91.07")
    groups = rpm._side_by_side(stubs, LAYOUT)
    assert sorted(stub.name for group in groups for stub in group) == sorted(stub.name for stub in stubs)
    for name in ("kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"):
        (group,) = (group for group in groups if name in {stub.name for stub in group})
        assert len({stub.name for stub in group} & {"kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"}) == 1


def test_dependencies_let_what_is_not_pinned_drift(tmp_path: Path) -> None:
    stub = Stub("b", "580.1", "580.1", "1", depends=at_least("a"))
    assert "Depends: a (>= 580.1-1)\n" in deb.control(stub)
    assert "Requires: a >= 3:580.1\n" in rpm._package(Stub("b", "580.1", "580.1", "1.el9", depends=at_least("a"), epoch=3))


def test_packages_say_who_made_them_as_origins_are_told_by_it() -> None:
    for system in SYSTEMS:
        assert {origin(stub.maker) for version in table.VERSIONS for stub in table.nvidia_packages(system, version)} == {"nvidia"}
        assert {origin(stub.maker) for stub in surroundings.distribution(system)} == {"distribution"}
        assert "nvidia" not in {origin(stub.maker) for stub in surroundings.other_drivers(system)}
    stub = surroundings.other_drivers("ubuntu2404")[0]
    assert f"Maintainer: {stub.maker}\n" in deb.control(stub)


def test_dpkg_reads_a_package(tmp_path: Path) -> None:
    stub = next(stub for stub in table.nvidia_packages("debian12", "595.91.07") if stub.name == "nvidia-persistenced")
    path = deb.write(stub, LAYOUT, tmp_path)
    said = subprocess.run(["dpkg-deb", "--info", path], capture_output=True, text=True, check=True).stdout
    assert "Version: 595.91.07-1\n" in said
    subprocess.run(["dpkg-deb", "--raw-extract", path, tmp_path / "out"], check=True)
    assert (tmp_path / "out/usr/lib/systemd/system/nvidia-persistenced.service").exists()
    assert os.access(tmp_path / "out/usr/bin/nvidia-persistenced", os.X_OK)
    for script in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", tmp_path / "out/DEBIAN" / script], check=True)


def test_the_index_of_a_repository_has_the_hashes_of_its_files(tmp_path: Path) -> None:
    path = deb.write(Stub("a", "", "1", "1"), LAYOUT, tmp_path)
    deb.index(tmp_path, [path], "NVIDIA", "NVIDIA CUDA")
    text = (tmp_path / "Packages").read_text()
    assert f"SHA256: {hashlib.sha256(path.read_bytes()).hexdigest()}\n" in text
    assert gzip.decompress((tmp_path / "Packages.gz").read_bytes()).decode() == text
    release = (tmp_path / "Release").read_text()
    assert f" {hashlib.sha256(text.encode()).hexdigest()} {len(text)} Packages\n" in release
    assert release.startswith("Origin: NVIDIA\n")


@pytest.mark.parametrize(("flavour", "licence"), [("open", "Dual MIT/GPL"), ("proprietary", "NVIDIA")])
def test_a_module_file_tells_version_and_licence(tmp_path: Path, flavour: str, licence: str) -> None:
    module = tmp_path / "nvidia.ko"
    module.write_bytes(nvidia_module("580.173.02", flavour, "6.1.0"))
    said = subprocess.run(["readelf", "--string-dump=.modinfo", module], capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert "version=580.173.02\n" in said.stdout
    assert f"license={licence}\n" in said.stdout


def test_a_library_of_a_package_is_the_emulator_at_the_version_of_the_package() -> None:
    stub = next(stub for stub in table.nvidia_packages("debian12", "595.91.07") if stub.name == "libnvidia-ml1")
    found = {entry.path: entry for entry in entries(stub, LAYOUT)}
    assert b"595.91.07" in found["usr/lib/x86_64-linux-gnu/libnvidia-ml.so.595.91.07"].content
    assert found["usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"].link == "libnvidia-ml.so.595.91.07"


def test_scripts_of_packages_are_valid_shell() -> None:
    for script in FILES.iterdir():
        subprocess.run(["sh", "-n", script], check=True)
