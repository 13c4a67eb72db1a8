# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which driver a host gets: names of both generations, streams, repository, version rule, flavour by GPU, what goes."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.actions import specs
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.selection import Selection, select, target_version

from tests.unit.driver.hosts import fresh, installed, package, wishes


def chosen(system: str = "debian12", gpus: tuple[str, ...] = ("2330",), arch: str = "x86_64", **given: Any) -> Selection:
    return select(fresh(system, gpus, arch), wishes(**given))


@pytest.mark.parametrize(("system", "branch", "given", "module", "some"), [
    ("ubuntu2404", "580", {}, "nvidia-dkms-580-open", "libnvidia-compute-580"),
    ("ubuntu2404", "580", {"flavour": "proprietary"}, "nvidia-dkms-580", "nvidia-compute-utils-580"),
    ("ubuntu2404", "595", {}, "nvidia-dkms-open", "libnvidia-compute"),
    ("ubuntu2404", "595", {"flavour": "proprietary"}, "nvidia-dkms", "nvidia-persistenced"),
    ("ubuntu2404", "580", {"source": "distribution"}, "linux-modules-nvidia-580-server-open-generic", "nvidia-utils-580-server"),
    ("debian12", "580", {}, "nvidia-kernel-open-dkms", "nvidia-driver-cuda"),
    ("debian13", "595", {"flavour": "proprietary"}, "nvidia-kernel-dkms", "libcuda1"),
    ("el9", "580", {}, "kmod-nvidia-open-dkms", "nvidia-driver-cuda"),
    ("el10", "580", {"flavour": "proprietary"}, "kmod-nvidia-latest-dkms", "libnvidia-ml"),
    ("sles15", "580", {}, "nvidia-open-driver-G06", "nvidia-compute-utils-G06"),
    ("sles15", "595", {}, "nvidia-open-driver-G07", "nvidia-compute-G07"),
    ("sles15", "595", {"source": "distribution"}, "nvidia-open-driver-G07-signed-cuda-kmp-default", "nvidia-persistenced"),
])
def test_package_names(system: str, branch: str, given: dict[str, str], module: str, some: str) -> None:
    selection = chosen(system, branch=branch, **given)
    assert selection.install[0] == module
    assert some in selection.install
    assert not [name for name in selection.install if "fabric" in name or "imex" in name or name.startswith("linux-headers")]


@pytest.mark.parametrize(("system", "branch", "flavour", "stream"), [
    ("el9", "580", "open", "580-open"), ("el9", "580", "proprietary", "580-dkms"), ("amzn2023", "595", "open", "595-open"), ("el10", "595", "open", None),
    ("debian12", "595", "open", None),
])
def test_streams_are_for_el9_and_its_kin_only(system: str, branch: str, flavour: str, stream: str | None) -> None:
    assert chosen(system, branch=branch, flavour=flavour).stream == stream


@pytest.mark.parametrize(("system", "arch", "given", "url", "key"), [
    ("debian12", "x86_64", {}, "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/", "3bf863cc.pub"),
    ("ubuntu2404", "aarch64", {}, "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/sbsa/", "3bf863cc.pub"),
    ("el9", "x86_64", {"mirror_url": "http://mirror/repos/"}, "http://mirror/repos/rhel9/x86_64/", "D42D0685.pub"),
    ("sles16", "x86_64", {"repository_url": "http://mirror/own"}, "http://mirror/own/", "3A8B5622.pub"),
])
def test_the_address_of_the_repository(system: str, arch: str, given: dict[str, str], url: str, key: str) -> None:
    repository = chosen(system, arch=arch, **given).repository
    assert repository is not None
    assert (repository.url, repository.key_url, repository.fingerprint) == (url, url + key, "AB" * 20)


def test_the_key_has_an_address_of_its_own() -> None:
    repository = chosen(repository_key_url="http://mirror/key.asc", repository_key_fingerprint="").repository
    assert repository is not None
    assert (repository.key_url, repository.fingerprint) == ("http://mirror/key.asc", "EB693B3035CD5710E231E123A4B469963BF863CC")


def test_a_distributions_own_driver_needs_no_repository() -> None:
    assert chosen("ubuntu2404", source="distribution").repository is None
    assert chosen("sles15", source="distribution").repository is not None, "userspace is NVIDIA's there"


@pytest.mark.parametrize(("gpus", "flavour"), [
    (("1db6",), "proprietary"), (("1eb8",), "open"), (("2330",), "open"), (("2901",), "open"), (("ffff",), "open"), (("1db6", "20b0"), "proprietary"),
])
def test_the_flavour_follows_the_gpus(gpus: tuple[str, ...], flavour: str) -> None:
    assert chosen(gpus=gpus).flavour == flavour


def test_fabric_manager_goes_with_switches_and_imex_with_racks() -> None:
    names = select(installed(switches=4), wishes()).install
    assert {"nvidia-fabricmanager", "libnvidia-nscq"} <= set(names) and "nvidia-imex" not in names and "nvlsm" not in names
    assert "nvidia-imex" in chosen("ubuntu2404", ("2941",)).install
    assert "nvidia-imex" not in chosen("ubuntu2404", ("2941",), imex=False).install
    assert "nvidia-fabricmanager" in chosen(fabric_manager=True).install
    assert "nvidia-fabricmanager" not in select(installed(switches=4, fabric_manager="false"), wishes(fabric_manager="false")).install


def test_nvlink_5_switches_bring_their_subnet_manager() -> None:
    facts = fresh(gpus=("2901",))
    facts["pci"]["switches"] = [{"address": "0000:05:00.0", "device": "1021", "vendor": "15b3"}]
    selection = select(facts, wishes())
    assert {"nvidia-fabricmanager", "nvlsm", "libnvsdm"} <= set(selection.install)
    assert "nvlsm" not in selection.exact() and "libnvsdm" in selection.exact()
    facts["host"] |= {"arch": "aarch64", "distribution": "ubuntu", "version": "24.04"}
    assert "libnvsdm" not in select(facts, wishes()).install


def test_the_version_asked_for_comes_first_then_the_one_on_record_then_the_installed_one() -> None:
    facts = installed(version="580.173.02")
    assert select(facts, wishes()).version == "580.173.02"
    assert select(facts, wishes(version="580.178.04")).version == "580.178.04"
    assert select(facts, wishes(branch="595")).version == ""
    facts["record"] = {"version": "580.82.07", "branch": "580"}
    assert select(facts, wishes()).version == "580.82.07", "packages that drifted go back"
    facts["view"] = {"version": "595.91.07"}
    assert target_version(facts, select(facts, wishes(branch="595"))) == "595.91.07"
    facts["packages"][0]["version"] = "580.178.04"
    facts["record"] = None
    assert select(facts, wishes()).version == "", "which of them it was nobody knows"


def gone(system: str, names: list[str], **given: Any) -> list[str]:
    facts = fresh(system)
    facts["packages"] = [package(name, "580.173.02", facts["host"]["package_manager"]) for name in names]
    return list(select(facts, wishes(**given)).obsolete)


@pytest.mark.parametrize(("system", "branch", "names", "obsolete"), [
    ("ubuntu2404", "595", ["libnvidia-compute-580", "nvidia-fabricmanager", "nvidia-dkms-580-open"], ["libnvidia-compute-580", "nvidia-dkms-580-open"]),
    ("ubuntu2404", "580", ["libnvidia-compute", "nvidia-persistenced", "libnvidia-nscq"], ["libnvidia-compute", "nvidia-persistenced"]),
    ("ubuntu2404", "580", ["libnvidia-compute-580", "libnvidia-cfg1-580"], []),
    ("ubuntu2404", "595", ["nvidia-driver-pinning-580", "nvidia-driver-pinning-595"], ["nvidia-driver-pinning-580"]),
    ("debian12", "595", ["nvidia-driver-cuda", "nvidia-kernel-dkms", "cuda-drivers"], ["cuda-drivers", "nvidia-kernel-dkms"]),
    ("debian12", "580", ["nvidia-driver-pinning-580", "nvidia-kernel-open-dkms", "nvidia-open"], []),
    ("el9", "595", ["kmod-nvidia-latest-dkms", "nvidia-driver-cuda"], ["kmod-nvidia-latest-dkms"]),
    ("sles15", "595", ["nvidia-compute-G06", "nvidia-open-driver-G06", "nvidia-persistenced"], ["nvidia-compute-G06", "nvidia-open-driver-G06"]),
    ("sles15", "595", ["nvidia-open-driver-G07-signed-kmp-default", "nvidia-compute-G07"], ["nvidia-open-driver-G07-signed-kmp-default"]),
])
def test_what_the_new_driver_replaces(system: str, branch: str, names: list[str], obsolete: list[str]) -> None:
    assert gone(system, names, branch=branch) == obsolete


def test_more_packages_of_the_driver_than_ours_go_along_to_the_same_version() -> None:
    facts = fresh()
    facts["packages"] = [package(name, "580.173.02") for name in ("libnvidia-gl", "libnvidia-cfg1", "nvidia-opencl-icd")]
    selection = select(facts, wishes())
    assert selection.install[-2:] == ("libnvidia-gl", "libnvidia-cfg1")
    assert "nvidia-opencl-icd" not in selection.install


def test_headers_are_for_every_kernel_that_lacks_them() -> None:
    facts = fresh()
    facts["kernel"]["installed"] = [{"release": release, "headers": release == "6.1.0-1-amd64", "module": None}
                                    for release in ("6.1.0-1-amd64", "6.1.0-2-amd64", "6.1.0-3-amd64")]
    selection = select(facts, wishes())
    assert selection.headers == ("linux-headers-6.1.0-2-amd64", "linux-headers-6.1.0-3-amd64")
    assert selection.view()["install"][:2] == list(selection.headers)
    facts["host"] |= {"distribution": "ubuntu", "version": "24.04"}
    assert select(facts, wishes(source="distribution")).headers == ()


def test_what_the_repository_is_asked() -> None:
    view = chosen("el9", branch="595").view()
    assert view["repository"] == {
        "kind": "dnf", "url": "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/",
        "key_url": "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/D42D0685.pub", "fingerprint": "AB" * 20, "distribution_repos": True,
    }
    assert (view["branch"], view["version"], view["stream"]) == ("595", "", "595-open")
    assert "kmod-nvidia-open-dkms" in view["install"] and "kmod-nvidia*" in view["pins"]


def test_a_package_whose_name_has_its_release_is_taken_by_its_name() -> None:
    packages = [{"name": "nvidia-driver-cuda", "full": "3:580.173.02-1.el9"}, {"name": "kernel-devel-5.14.0-611.el9.x86_64", "full": ""}]
    assert specs("dnf", packages) == ["kernel-devel-5.14.0-611.el9.x86_64", "nvidia-driver-cuda-3:580.173.02-1.el9"]


def test_a_prebuilt_module_is_for_the_kernel_that_boots_next() -> None:
    facts = fresh("ubuntu2404")
    facts["kernel"]["next"] = "6.14.0-33-generic"
    assert select(facts, wishes(source="distribution")).packages.module == ("linux-modules-nvidia-580-server-open-generic-hwe-24.04",)


def test_a_package_with_a_version_of_its_own_is_not_asked_for_at_the_drivers() -> None:
    facts = installed()
    facts["packages"].append(package("nvidia-kernel-common", "20220217", origin="distribution"))
    assert "nvidia-kernel-common" not in select(facts, wishes()).install
