# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tables of drivers fit together: every cell has packages, a repository and a key; globs tell a driver from what only bears NVIDIA's name."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.files import managed_paths
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_branches import BRANCHES, branch_of, production_branches, version_key
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_gpus import GPU_KINDS, gpu_kind
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_matrix import (
    CELLS,
    NOT,
    PLATFORMS,
    cells_of_host,
    find_cell,
    nearest_cells,
    nearest_hosts,
    row_version,
)
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_packages import (
    driver_set,
    has_own_version,
    headers_package,
    in_driver_set,
    is_headers,
    package_set,
    pinned_globs,
    suse_generation,
    ubuntu_kernel_flavour,
    upstream_version,
)
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.mig_profiles import MODELS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.text())
def test_every_cell_has_packages_of_the_driver_set(cell) -> None:
    packages = package_set(cell.platform.layout, cell.branch, cell.flavour, cell.arch)
    assert packages.module
    assert len(packages.names()) == len(set(packages.names()))
    manager = cell.platform.manager
    assert not [name for name in packages.names() if not in_driver_set(name, manager) and not has_own_version(name)]
    assert not [name for name in (*packages.userspace, *packages.fabric_manager, *packages.imex) if has_own_version(name)]
    assert ("libnvsdm" in packages.nvlink5) <= (cell.arch == "x86_64")


def test_no_two_cells_are_the_same() -> None:
    keys = [(cell.distribution, cell.version, cell.arch, cell.source, cell.branch, cell.flavour) for cell in CELLS]
    assert len(keys) == len(set(keys)) > 300


def test_branches_flavours_and_keys_of_the_matrix_are_well_formed() -> None:
    for platform in PLATFORMS:
        assert set(platform.branches) <= set(BRANCHES)
        assert bool(platform.directory) == bool(platform.key.file), platform
        assert re.fullmatch(r"([0-9A-F]{40})?", platform.key.fingerprint)
        assert not platform.key.fingerprint or platform.key.fingerprint.endswith(platform.key.file.removesuffix(".pub").upper())
    assert not [cell for cell in CELLS if cell.branch == "620" and cell.flavour != "open"]


def test_what_was_tried_is_what_scenarios_run() -> None:
    scenario = yaml.safe_load((ROOT / "molecule" / "driver_install" / "molecule.yml").read_text(encoding="utf-8"))
    systems = {platform.get("system", "debian12") for platform in scenario["platforms"]}
    names = {"debian 12": "debian12", "debian 13": "debian13", "ubuntu 24.04": "ubuntu2404", "rocky 9": "el9", "rocky 10": "el10", "sles 15": "sles15"}
    tried = {f"{cell.distribution} {cell.version}" for cell in CELLS if cell.tested_on != NOT}
    assert {names[host] for host in tried} == systems
    assert {(cell.arch, cell.source, cell.flavour) for cell in CELLS if cell.tested_on != NOT} == {("x86_64", "nvidia", "open")}
    assert {cell.branch for cell in CELLS if cell.tested_on != NOT} == {"580", "595"}


def test_branches_to_choose_from() -> None:
    assert production_branches() == ["580", "595", "620"]
    assert branch_of("580.173.02") == "580"
    assert sorted(["580.82.07", "580.173.02", "595.1.1"], key=version_key) == ["580.82.07", "580.173.02", "595.1.1"]
    for branch in BRANCHES.values():
        assert all(branch_of(version) == branch.name for version in branch.versions)


def test_hosts_are_found_by_the_version_that_their_rows_go_by() -> None:
    assert row_version("rocky", "9.7") == "9" and row_version("ubuntu", "24.04") == "24.04" and row_version("amzn", "2023") == "2023"
    assert find_cell("rocky", "9.7", "x86_64", "nvidia", "580", "open")
    assert not cells_of_host("ubuntu", "24.10", "x86_64") and not cells_of_host("debian", "12", "aarch64")


def test_the_nearest_is_of_the_same_distribution_then_of_the_same_architecture() -> None:
    assert nearest_hosts("rhel", "8.10", "x86_64") == ["rhel 9 x86_64", "rhel 10 x86_64"]
    assert nearest_hosts("debian", "12", "aarch64") == ["debian 12 x86_64", "debian 13 x86_64"]
    assert "ubuntu 24.04 aarch64" in nearest_hosts("fedora", "43", "aarch64")
    near = nearest_cells("ubuntu", "26.04", "x86_64", "nvidia", "580", "open")
    assert (near[0].branch, near[0].source) == ("580", "distribution")
    assert not [cell for cell in near if BRANCHES[cell.branch].ended]
    assert nearest_cells("ubuntu", "24.04", "x86_64", "distribution", "595", "open")[0].source == "distribution"
    assert nearest_cells("ubuntu", "24.04", "x86_64", "nvidia", "595", "open")[0].source == "nvidia"


@pytest.mark.parametrize(("manager", "ours", "others"), [
    ("apt", ["nvidia-driver-cuda", "nvidia-open-580", "nvidia-dkms-580-open", "libnvidia-compute-595-server", "nvidia-driver-pinning-595", "nvlsm",
             "libnvidia-nscq-580", "cuda-drivers-580", "nvidia-firmware-580-580.173.02"],
     ["nvidia-container-toolkit", "libnvidia-container1", "cuda-toolkit-13-0", "nvidia-cuda-toolkit", "nvidia-fs-dkms", "nvidia-mig-manager", "nvidia-gds"]),
    ("dnf", ["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-open", "libnvidia-ml", "nvidia-fabric-manager", "libnvsdm"],
     ["nvidia-container-toolkit", "cuda-toolkit-13-0", "dnf-plugin-nvidia", "nvidia-mig-manager", "nvidia-release"]),
    ("zypper", ["nvidia-compute-utils-G06", "nvidia-open-driver-G07-signed-cuda-kmp-default", "nvidia-persistenced"],
     ["nvidia-container-toolkit", "cuda-toolkit-13-0", "nv-prefer-signed-open-driver-G07"]),
    ("tdnf", [], ["nvidia-driver"]),
])
def test_what_belongs_to_a_driver(manager: str, ours: list[str], others: list[str]) -> None:
    assert [name for name in ours if not in_driver_set(name, manager)] == []
    assert [name for name in others if in_driver_set(name, manager)] == []


def test_pins_are_for_what_carries_the_drivers_version() -> None:
    for manager in ("apt", "dnf", "zypper"):
        assert set(pinned_globs(manager)) < set(driver_set(manager))
        assert not [glob for glob in pinned_globs(manager) if "pinning" in glob or glob == "nvlsm" or "linux-modules" in glob]
        assert all(path.startswith("/etc/") for path in managed_paths(manager))
    assert pinned_globs("tdnf") == () and managed_paths("tdnf") == []


@pytest.mark.parametrize(("full", "version"), [
    ("580.173.02-1", "580.173.02"), ("3:595.91.07-1.el9", "595.91.07"), ("580.173.02-0ubuntu0.24.04.1", "580.173.02"),
    ("595.91.07_k6.4.0_150600.21-lp156.1", "595.91.07"), ("580-1", "580"), ("", ""),
])
def test_the_drivers_version_in_a_packages_version(full: str, version: str) -> None:
    assert upstream_version(full) == version


@pytest.mark.parametrize(("layout", "release", "name"), [
    ("debian", "6.1.0-40-amd64", "linux-headers-6.1.0-40-amd64"), ("el", "6.12.0-55.el10.x86_64", "kernel-devel-6.12.0-55.el10.x86_64"),
    ("el-streams", "6.1.150-170.amzn2023.x86_64", "kernel-devel-6.1.150-170.amzn2023.x86_64"),
    ("el-streams", "6.12.40-64.amzn2023.x86_64", "kernel6.12-devel-6.12.40-64.amzn2023.x86_64"),
    ("suse", "6.4.0-150600.23.53-default", "kernel-default-devel"), ("suse", "6.4.0-150600.8-azure", "kernel-azure-devel"),
    ("el", "6.12.0-55.el10.aarch64+64k", "kernel-64k-devel-6.12.0-55.el10.aarch64"),
    ("el-streams", "5.14.0-611.el9.x86_64+rt", "kernel-rt-devel-5.14.0-611.el9.x86_64"),
    ("el-streams", "5.15.0-313.189.5.el9uek.x86_64", "kernel-uek-devel-5.15.0-313.189.5.el9uek.x86_64"),
    ("suse", "6.4.0-150600.23.53-64kb", "kernel-64kb-devel"), ("suse", "6.4.0-150600.23.53", "kernel-default-devel"),
    ("suse-signed", "6.4.0-1-default", None),
])
def test_header_packages(layout: str, release: str, name: str | None) -> None:
    assert headers_package(layout, release) == name
    assert name is None or is_headers(name)
    assert not is_headers("kernel-headers"), "those are for programs, not for modules"


@pytest.mark.parametrize(("release", "version", "flavour"), [
    ("6.8.0-90-generic", "24.04", "generic"), ("6.14.0-33-generic", "24.04", "generic-hwe-24.04"), ("6.8.0-1040-aws", "24.04", "aws"),
    ("5.15.0-160-generic", "22.04", "generic"), ("6.8.0-90-generic-64k", "24.04", "generic-64k"), ("odd", "24.04", "generic"),
    ("6.8.0-90-lowlatency", "24.04", "lowlatency"), ("6.14.0-33-lowlatency", "24.04", "lowlatency-hwe-24.04"),
    ("6.8.0-90-lowlatency", "22.04", "lowlatency-hwe-22.04"), ("6.14.0-1016-oem", "24.04", "oem-24.04c"), ("6.11.0-1020-oem", "24.04", "oem-24.04b"),
    ("6.5.0-1027-oem", "22.04", "oem-22.04d"), ("7.5.0-1001-oem", "26.04", "oem-26.04"),
])
def test_kernel_flavours_of_ubuntu(release: str, version: str, flavour: str) -> None:
    assert ubuntu_kernel_flavour(release, version) == flavour


def test_signed_modules_of_suse_are_for_the_kernels_flavour() -> None:
    for release, flavour in (("6.4.0-150600.23-default", "default"), ("6.4.0-150600.8-azure", "azure"), ("6.12.0-1-64kb", "64kb"), ("6.4.0-1-rt", "default")):
        packages = package_set("suse-signed", "595", "open", "x86_64", release)
        assert packages.module == (f"nvidia-open-driver-G07-signed-cuda-kmp-{flavour}",)


def test_generations_of_suse() -> None:
    assert (suse_generation(580), suse_generation(590)) == ("G06", "G07")


def test_gpu_ids_are_known_once_and_so_are_all_models_of_the_mig_tables() -> None:
    ids = [device for kind in GPU_KINDS for device in kind.device_ids]
    assert len(ids) == len(set(ids)) and all(re.fullmatch("[0-9a-f]{4}", device) for device in ids)
    for model in MODELS.values():
        for device in model.pci_device_ids:
            assert gpu_kind(device[2:6]) is not None, (model.key, device)
