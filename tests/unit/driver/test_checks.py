# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every refusal, by its exact code and with its evidence; and a clean host, which has none."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.checks import examine
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.options import Options
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from tests.unit.driver.hosts import fresh, installed, package, wishes

Facts = dict[str, Any]


def codes(facts: Facts, **given: Any) -> list[str]:
    return [found.code for found in examine(facts, wishes(**given)).findings]


def sentence(facts: Facts, **given: Any) -> str:
    (found,) = examine(facts, wishes(**given)).findings
    return found.sentence()


@pytest.mark.parametrize("system", ["debian12", "debian13", "ubuntu2204", "ubuntu2404", "el9", "el10", "amzn2023", "sles15", "sles16"])
@pytest.mark.parametrize("branch", ["580", "595", "620"])
def test_a_fresh_host_has_nothing_against_a_driver(system: str, branch: str) -> None:
    assert codes(fresh(system), branch=branch) == []


@pytest.mark.parametrize("system", ["debian12", "ubuntu2404", "el9", "el10", "sles15"])
def test_a_host_with_its_driver_has_nothing_against_it(system: str) -> None:
    assert codes(installed(system, switches=4)) == []


@pytest.mark.parametrize(("system", "given", "code", "words"), [
    ("el8", {}, "DriverPlatformUnlisted", "no driver is known for rhel 8.10 x86_64 (its package manager's Python is 3.6, and modules here need 3.9)"),
    ("el8", {}, "DriverPlatformUnlisted", "nearest: rhel 9 x86_64, rhel 10 x86_64"),
    ("fedora", {}, "DriverPlatformUnlisted", "debian 12 x86_64"),
    ("debian12", {"branch": "535"}, "DriverBranchBelowDra", "branch 535 is older than 580"),
    ("debian12", {"branch": "590"}, "DriverBranchEnded", "ended before November 2026. Choose one of 580, 595, 620"),
    ("debian12", {"branch": "610"}, "DriverBranchEnded", "ended in 2026-08"),
    ("debian12", {"branch": "600"}, "DriverBranchUnlisted", "branch 600 is not in the support matrix. Choose one that is; nearest: 580, 595, 620"),
    ("debian12", {"branch": "625"}, "DriverBranchUnlisted", "nearest: "),
    ("ubuntu2604", {}, "DriverBranchUnlisted", "branch 580 is not in ubuntu 26.04 x86_64 from nvidia. Choose one that is; nearest: branch 580 open from distr"),
    ("debian12", {"source": "distribution"}, "DriverSourceUnlisted", "no driver from distribution is known for debian 12"),
    ("debian12", {"branch": "620", "flavour": "proprietary"}, "DriverFlavourUnfit", "proprietary kernel modules do not fit: branch 620 from nvidia"),
    ("azl3", {"source": "distribution", "flavour": "proprietary"}, "DriverFlavourUnfit", "fits: branch 580 open from distribution"),
])
def test_what_is_not_in_the_matrix_is_refused_with_the_nearest_that_is(system: str, given: Facts, code: str, words: str) -> None:
    found = examine(fresh(system), wishes(**given))
    assert [one.code for one in found.findings] == [code]
    assert found.selection is None
    assert words in found.findings[0].sentence()


def test_an_ended_branch_can_be_allowed() -> None:
    assert codes(fresh(), branch="610", allow_ended_branch=True) == []


def test_a_short_lived_branch_is_a_warning() -> None:
    found = examine(fresh(), wishes(branch="615"))
    assert [one.code for one in found.findings] == ["DriverBranchShortLived"]
    assert found.refusals() == []


def test_no_branch_at_all() -> None:
    assert "DriverOptionInvalid" in codes(fresh(), branch="")


def test_the_key_of_a_repository_has_to_be_known() -> None:
    found = examine(fresh("el10"), wishes(repository_key_fingerprint=""))
    assert [one.code for one in found.findings] == ["DriverKeyUnknown"]
    assert "rhel10/x86_64/CDF6BA43.pub" in found.findings[0].sentence()


def edited(change: Callable[[Facts], Any], facts: Facts | None = None) -> Facts:
    facts = fresh() if facts is None else facts
    change(facts)
    return facts


@pytest.mark.parametrize(("facts", "given", "code", "words"), [
    (edited(lambda f: f["host"].update(image_based="/run/ostree-booted")), {}, "ImageBasedHost", "/run/ostree-booted exists"),
    (edited(lambda f: f["traces"].update(runfile=["/usr/bin/nvidia-uninstall"])), {}, "RunfileDriver", "(/usr/bin/nvidia-uninstall)"),
    (edited(lambda f: f["traces"].update(container_driver=["/run/nvidia/driver"])), {}, "ContainerDriverPresent", "(/run/nvidia/driver)"),
    (edited(lambda f: f["traces"].update(repositories=[{"path": "/etc/apt/sources.list.d/ppa.list", "url": "http://x/ubuntu"}])), {},
     "DriverForeignRepository", "(/etc/apt/sources.list.d/ppa.list: http://x/ubuntu)"),
    (edited(lambda f: f["loaded"].update(nouveau=True)), {}, "NouveauLoaded", "Set nvidia_driver_reboot_ok to true"),
    (fresh(library={"path": "/usr/lib/libnvidia-ml.so.580.1.2", "version": "580.1.2"}), {}, "RunfileDriver", "so.580.1.2 belongs to no package"),
    (fresh(gpus=()), {}, "NoGpuOnPci", "no NVIDIA GPU is on the PCI bus"),
    (edited(lambda f: f["secure_boot"].update(enabled=True, evidence="SecureBoot is 1")), {}, "SecureBootUnsigned", "Secure Boot is on (SecureBoot is 1)"),
    (fresh("azl3") | {"host": {**fresh("azl3")["host"], "package_manager": "tdnf"}}, {"source": "distribution"}, "DriverPackageManagerMissing",
     "installed with dnf, and the host has tdnf"),
    (fresh(gpus=("1db6",)), {"branch": "595", "flavour": "proprietary"}, "DriverTooNewForGpu", "branch 595 no longer supports the GPU V100 at 0000:01:00.0"),
    (fresh(gpus=("1db6",)), {"flavour": "open"}, "DriverFlavourUnfit", "V100 need proprietary ones"),
    (fresh(gpus=("2901",)), {"flavour": "proprietary"}, "DriverFlavourUnfit", "B200 need open ones"),
    (fresh(gpus=("3182",)), {"version": "580.65.06"}, "DriverTooOldForGpu", "580.65.06 is too old for the GPU B300 at 0000:01:00.0, which needs 580.82.07"),
    (fresh(gpus=("3182",)), {"version": "580.65.06"}, "DriverTooOldForGpu", "Choose branch 580 or 595 or 620."),
    (fresh(gpus=("2330", "ffff")), {}, "DriverGpuUnknown", "GPU 0000:02:00.0 has PCI device id ffff"),
    (fresh(gpus=("ffff",)), {}, "DriverGpuUnknown", "whether driver 580 supports it"),
    (fresh(gpus=("ffff",)), {"version": "580.173.02"}, "DriverGpuUnknown", "whether driver 580.173.02 supports it"),
])
def test_a_finding_has_its_code_and_evidence(facts: Facts, given: Facts, code: str, words: str) -> None:
    assert codes(facts, **given) == [code]
    assert words in sentence(facts, **given)


def test_a_newest_version_that_is_too_old_is_found_once_the_repository_was_asked() -> None:
    facts = fresh(gpus=("3182",))
    assert codes(facts) == []
    facts["view"] = {"version": "580.65.06", "transaction": {}}
    assert codes(facts) == ["DriverTooOldForGpu"]


def test_the_first_version_that_drives_a_gpu_will_do() -> None:
    assert codes(fresh(gpus=("3182",)), version="580.82.07") == []


def test_a_host_of_old_and_new_gpus_fits_no_flavour() -> None:
    assert codes(fresh(gpus=("1db6", "2901"))) == ["DriverFlavourUnfit"]
    assert "B200 need open ones and V100 proprietary ones" in sentence(fresh(gpus=("1db6", "2901")))


def test_an_unknown_gpu_is_no_refusal() -> None:
    assert examine(fresh(gpus=("ffff",)), wishes()).refusals() == []


def test_nouveau_is_no_refusal_when_the_host_may_be_rebooted() -> None:
    assert codes(edited(lambda f: f["loaded"].update(nouveau=True)), reboot_ok=True) == []


def foreign(name: str = "libnvidia-ml1", origin: str = "distribution", system: str = "debian12") -> Facts:
    facts = fresh(system)
    facts["packages"] = [package(name, "535.247.01", facts["host"]["package_manager"], origin)]
    return facts


def test_packages_of_another_origin_are_refused_by_name() -> None:
    assert codes(foreign()) == ["DriverOriginMixed"]
    assert "do not come from NVIDIA's repository (libnvidia-ml1 535.247.01-1 (made by distribution))" in sentence(foreign())
    assert "do not come from the distribution (" in sentence(foreign(origin="nvidia", system="ubuntu2404"), source="distribution")


def test_long_evidence_is_shortened() -> None:
    paths = [f"/trace/{number}" for number in range(8)]
    assert sentence(fresh(traces={"runfile": paths})).count("/trace/") == 6
    assert "/trace/5 and 2 more)" in sentence(fresh(traces={"runfile": paths}))
    assert "/trace/5)" in sentence(fresh(traces={"runfile": paths[:6]}))


def test_packages_of_nobody_are_a_warning_unless_the_role_installed_them() -> None:
    facts = foreign(origin="unknown")
    assert codes(facts) == ["DriverOriginUnknown"]
    assert "libnvidia-ml1 535.247.01-1 (made by unknown) do not say that NVIDIA or the distribution made them" in sentence(facts)
    facts["record"] = {"installed": ["libnvidia-ml1"]}
    assert codes(facts) == []


def test_what_only_bears_the_name_is_no_foreign_driver() -> None:
    for name in ("nvidia-container-toolkit", "libnvidia-container1", "nvidia-cuda-toolkit", "nvidia-fs-dkms", "nvidia-driver-pinning-580"):
        assert codes(foreign(name)) == []


def test_a_library_of_a_package_that_is_no_part_of_a_driver_here_is_of_another_origin() -> None:
    library = {"path": "/usr/lib64/libnvidia-ml.so.580.1.2", "version": "580.1.2"}
    facts = edited(lambda f: f["traces"].update(library_package="xorg-x11-drv-nvidia-cuda-libs"), fresh("el9", library=library))
    assert codes(facts) == ["DriverOriginMixed"], "and no runfile"
    assert "xorg-x11-drv-nvidia-cuda-libs, which has /usr/lib64/libnvidia-ml.so.580.1.2" in sentence(facts)
    assert codes(edited(lambda f: f["traces"].update(library_package="libnvidia-ml1"), installed())) == []


def test_the_source_that_azure_linux_needs_is_not_foreign() -> None:
    address = "https://packages.microsoft.com/azurelinux/3.0/prod/nvidia/x86_64"
    traces = {"runfile": [], "container_driver": [], "repositories": [{"path": "/etc/yum.repos.d/azurelinux-nvidia.repo", "url": address}]}
    assert codes(fresh("azl3", traces=traces), source="distribution") == []
    traces["repositories"].append({"path": "/x.repo", "url": "https://developer.download.nvidia.com/compute/cuda/repos/azl3/x86_64/"})
    assert "/x.repo" in sentence(fresh("azl3", traces=traces), source="distribution")
    assert codes(fresh("el9", traces=traces)) == ["DriverForeignRepository"]


def test_the_firmware_of_suse_comes_with_its_signed_module() -> None:
    facts = fresh("sles15")
    facts["packages"] = [package("kernel-firmware-nvidia-gspx-G06", "580.173.02", "zypper", "distribution")]
    assert codes(facts, source="distribution") == []
    assert codes(facts, source="nvidia") == ["DriverOriginMixed"]


def test_the_signed_module_of_suse_is_the_distributions_and_the_rest_nvidias() -> None:
    facts = fresh("sles15")
    facts["packages"] = [package("nvidia-open-driver-G06-signed-cuda-kmp-default", "580.173.02", "zypper", "distribution"),
                         package("nvidia-compute-G06", "580.173.02", "zypper")]
    assert codes(facts, source="distribution") == []
    assert codes(facts, source="nvidia") == ["DriverOriginMixed"]


def test_secure_boot_is_fine_with_signed_modules_an_enrolled_key_or_a_module_that_is_loaded() -> None:
    on = {"enabled": True, "evidence": "SecureBoot is 1"}
    assert codes(fresh("ubuntu2404", secure_boot=on)) == ["SecureBootUnsigned"]
    assert "signed modules by setting nvidia_driver_source to distribution (branches 580, 595)" in sentence(fresh("ubuntu2404", secure_boot=on))
    assert codes(fresh("ubuntu2404", secure_boot=on), source="distribution") == []
    assert codes(fresh("ubuntu2404", secure_boot={**on, "dkms_key_enrolled": True})) == []
    facts = installed("ubuntu2404")
    facts["secure_boot"] = on
    assert codes(facts) == ["SecureBootUnsigned"]
    facts["kernel"]["installed"][0]["module"]["signer"] = "our own key"
    assert codes(facts) == []


def without_headers(system: str, **view: Any) -> Facts:
    facts = fresh(system)
    facts["kernel"]["installed"][0]["headers"] = False
    facts["view"] = {"version": "580.173.02", "transaction": {"install": [], "upgrade": []}, **view}
    return facts


@pytest.mark.parametrize(("system", "package_name", "short"), [
    ("debian12", "linux-headers-6.8.0-90-generic", "linux-headers-6.8.0-90-generic"),
    ("el9", "kernel-devel-5.14.0-611.5.1.el9_7.x86_64", "kernel-devel"),
    ("sles15", "kernel-default-devel", "kernel-default-devel"),
])
def test_missing_headers_are_refused_unless_they_come_along(system: str, package_name: str, short: str) -> None:
    assert codes(without_headers(system)) == ["KernelHeadersMissing"]
    assert f"no configured source has {package_name}" in sentence(without_headers(system))
    assert codes(without_headers(system, transaction={"install": [{"name": short, "full": "1"}]})) == []
    assert codes(without_headers(system, missing=[package_name])) == ["KernelHeadersMissing"]
    assert codes(without_headers(system, transaction={"install": [{"name": "linux-headers-6.8.0-90", "full": "1"}, {"name": "kernel", "full": "1"}]})) == [
        "KernelHeadersMissing"]


def test_headers_of_a_kernel_that_does_not_boot_next_are_no_refusal() -> None:
    facts = without_headers("debian12")
    facts["kernel"]["installed"].append({"release": "6.8.0-100-generic", "headers": True, "module": None})
    facts["kernel"]["next"] = "6.8.0-100-generic"
    assert codes(facts) == []


def test_a_source_that_never_has_a_part_is_refused_where_that_is_needed() -> None:
    facts = fresh("azl3")
    assert codes(facts, source="distribution") == []
    facts["pci"]["switches"] = [{"address": "0000:c0:00.0", "device": "22a3"}]
    assert sentence(facts, source="distribution").startswith("gpu1: distribution on azurelinux 3 does not offer a fabric manager.")
    assert codes(fresh("ubuntu2404"), source="distribution", imex=True) == ["DriverPackagesMissing"]


def test_prebuilt_modules_need_no_headers() -> None:
    assert codes(without_headers("ubuntu2404"), source="distribution") == []


def test_an_operator_owned_host_must_have_no_driver_of_its_own() -> None:
    assert codes(fresh(), owner="operator") == []
    assert codes(fresh(traces={"container_driver": ["/run/nvidia/driver"]}), owner="operator") == []
    assert codes(installed(), owner="operator") == ["DriverOnHost"]
    assert "packages of 580.173.02" in sentence(installed(), owner="operator")
    assert codes(fresh(library={"path": "/usr/lib/libnvidia-ml.so.1", "version": "580.1.2"}), owner="operator") == ["DriverOnHost"]


def test_nothing_is_refused_for_a_driver_that_is_to_go() -> None:
    assert codes(fresh("fedora", gpus=()), state="absent") == []


def test_all_findings_are_told_at_once() -> None:
    facts = fresh(gpus=(), traces={"runfile": ["/usr/bin/nvidia-uninstall"]})
    assert codes(facts, branch="610") == ["DriverBranchEnded", "NoGpuOnPci", "RunfileDriver"]


@pytest.mark.parametrize(("given", "code"), [
    ({"branch": "580", "version": "595.91.07"}, "DriverVersionNotOfBranch"),
    ({"branch": "580-open"}, "DriverOptionInvalid"),
    ({"version": "580.latest"}, "DriverOptionInvalid"),
    ({"flavour": "server"}, "DriverOptionInvalid"),
    ({"imex": "maybe"}, "DriverOptionInvalid"),
    ({"reboot_ok": "perhaps"}, "DriverOptionInvalid"),
    ({"mirror_url": "mirror.example.com"}, "DriverOptionInvalid"),
    ({"repository_key_fingerprint": "3bf863cc"}, "DriverOptionInvalid"),
])
def test_options_that_cannot_be(given: Facts, code: str) -> None:
    with pytest.raises(FleetError) as caught:
        Options.of({"subject": "gpu1", **given})
    assert caught.value.finding.code == code
    assert caught.value.finding.subject == "gpu1"


def test_options_are_read_as_ansible_gives_them() -> None:
    options = Options.of({"branch": 580, "imex": True, "fabric_manager": "false", "reboot_ok": "yes", "version": None, "restart_services": [],
                          "repository_key_fingerprint": "eb69 3b30 35cd 5710 e231  e123 a4b4 6996 3bf8 63cc"})
    assert (options.branch, options.imex, options.fabric_manager, options.reboot_ok, options.version) == ("580", "true", "false", True, "")
    assert options.repository_key_fingerprint == "EB693B3035CD5710E231E123A4B469963BF863CC"
    assert Options.of({"version": "595.91.07"}).branch == "595"
