# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the installation: a host in order has no finding, each fault has its code; and the reasons for a reboot."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.reboot import can_load, reasons
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.verification import verify

from tests.unit.driver.hosts import fresh, installed, package, wishes

Facts = dict[str, Any]
Change = Callable[[Facts], Any]


def codes(facts: Facts, pending: bool = False, **given: Any) -> list[str]:
    return [found.code for found in verify(facts, wishes(**given), pending)]


@pytest.mark.parametrize("system", ["debian12", "debian13", "ubuntu2404", "el9", "el10", "sles15"])
@pytest.mark.parametrize("switches", [0, 4])
@pytest.mark.parametrize(("version", "flavour"), [("580.173.02", "open"), ("580.173.02", "proprietary"), ("595.91.07", "open")])
def test_a_host_in_order(system: str, switches: int, version: str, flavour: str) -> None:
    facts = installed(system, version, flavour, switches=switches)
    assert codes(facts, branch=version[:3], flavour=flavour) == []
    assert codes(facts, branch="", version=version, flavour=flavour, pending=True) == []
    assert reasons(facts) == []


def test_what_has_no_driver_version_is_not_compared() -> None:
    facts = installed()
    facts["packages"].append(package("nvidia-kernel-common", "20220217", origin="distribution"))
    assert codes(facts) == []
    facts = installed("ubuntu2404", source="distribution")
    for one in facts["packages"]:
        one["origin"] = "distribution"
    facts["packages"].append(package("nvidia-settings", "510.47.03", origin="distribution"))
    assert codes(facts, source="distribution") == []


def test_gpus_of_virtual_machines_are_not_counted() -> None:
    facts = installed()
    facts["pci"]["gpus"].append({"address": "0000:99:00.0", "device": "2330", "class": "0302"})
    assert codes(facts) == ["GpuCountWrong"]
    facts["pci"]["gpus"][-1]["passed_to"] = "vfio-pci"
    assert codes(facts) == []


def broken(change: Change, switches: int = 0) -> Facts:
    facts = installed(switches=switches)
    change(facts)
    return facts


def only_packages(version: str) -> Change:
    """Return the change that an unattended upgrade of everything but the module makes."""
    def change(facts: Facts) -> None:
        for one in facts["packages"]:
            one.update(version=version, full=f"{version}-1")
    return change


@pytest.mark.parametrize(("change", "given", "code", "words"), [
    (lambda f: f.update(packages=[]), {}, "DriverMissing", "no driver package"),
    (lambda f: f["packages"][1].update(version="580.178.04"), {}, "DriverVersionMixed", "580.178.04: nvidia-driver-cuda"),
    (lambda f: f["library"].update(version="580.178.04"), {}, "DriverLibraryOther", "is 580.178.04 (/usr/lib/libnvidia-ml.so.580.173.02), and the packages"),
    (lambda f: f.update(library=None), {}, "DriverLibraryOther", "is missing (no file)"),
    (lambda f: f["loaded"].update(module=None), {}, "DriverNotLoaded", "not loaded"),
    (lambda f: f["loaded"]["module"].update(flavour="proprietary"), {}, "DriverFlavourWrong", "the loaded kernel module is proprietary, not open"),
    (lambda f: f["kernel"]["installed"][0]["module"].update(flavour="proprietary"), {}, "DriverFlavourWrong", "the installed kernel module is proprietary"),
    (lambda f: f["kernel"]["installed"][0].update(module=None), {}, "DriverModuleMissing", "has no kernel module of driver 580.173.02 (it has none)"),
    (lambda f: f["kernel"]["installed"][0]["module"].update(version="580.82.07"), {}, "DriverModuleMissing", "(it has 580.82.07)"),
    (lambda f: f["secure_boot"].update(enabled=True), {}, "DriverModuleUnsigned", "has no signature"),
    (lambda f: f["nvml"].update(error={"reason": "NvmlCallFailed", "cause": "nvmlInit failed"}), {}, "DriverNvmlFailed", "nvmlInit failed (NvmlCallFailed)"),
    (lambda f: f["nvml"].update(version="580.82.07"), {}, "DriverNvmlOther", "NVML reports driver 580.82.07, and 580.173.02 is loaded"),
    (lambda f: f["nvml"].update(gpus=1), {}, "GpuCountWrong", "NVML sees 1 GPUs, and 2 are on the PCI bus"),
    (lambda f: f["services"].update({"nvidia-persistenced": {"active": False}}), {}, "PersistenceDaemonDown", "is not active"),
    (lambda f: f["services"].update({"nvidia-imex": {"present": True, "active": True}}), {}, "ImexUnitRunning", "not disabled and masked"),
    (lambda f: f["held"].remove("libnvidia-ml1"), {}, "DriverNotHeld", "does not hold libnvidia-ml1"),
    (lambda f: f["services"].update({"nvidia-fabricmanager": {"present": True, "enabled": True}}), {}, "FabricManagerWrong", "that is to have none"),
])
def test_a_fault_has_its_code(change: Change, given: Facts, code: str, words: str) -> None:
    facts = broken(change)
    assert codes(facts, **given) == [code]
    assert words in verify(facts, wishes(**given))[0].sentence()


@pytest.mark.parametrize(("change", "words"), [
    (lambda f: f["services"]["nvidia-fabricmanager"].update(active=False), "nvidia-fabricmanager.service is not active"),
    (lambda f: f.update(packages=[one for one in f["packages"] if one["name"] != "nvidia-fabricmanager"]), "nvidia-fabricmanager is not installed"),
])
def test_the_fabric_manager_of_a_host_with_switches(change: Change, words: str) -> None:
    (found,) = verify(broken(change, switches=4), wishes())
    assert found.code == "FabricManagerWrong" and words in found.sentence()


def test_a_fabric_manager_of_another_version_is_told_as_such_and_as_mixed_packages() -> None:
    facts = broken(lambda f: next(one for one in f["packages"] if one["name"] == "nvidia-fabricmanager").update(version="580.178.04"), switches=4)
    assert codes(facts, version="580.173.02") == ["DriverVersionMixed", "FabricManagerWrong"]


def test_another_version_or_branch_than_asked_for() -> None:
    facts = installed(version="580.173.02")
    assert codes(facts, version="580.178.04") == ["DriverVersionWrong"]
    assert codes(facts, branch="595") == ["DriverBranchWrong"]
    facts["record"] = {"version": "580.82.07"}
    assert codes(facts) == ["DriverVersionWrong"], "it drifted from what was installed"


def test_other_packages_before_the_reboot_are_pending_and_after_it_a_fault() -> None:
    facts = installed("debian12", "580.178.04")
    facts["loaded"]["module"]["version"] = "580.173.02"
    facts["nvml"] = {"version": None, "gpus": None, "error": {"reason": "NvmlCallFailed", "cause": "nvmlInit failed: Driver/library version mismatch"}}
    assert reasons(facts) == ["kernel module 580.173.02 is loaded, 580.178.04 is installed"]
    (found,) = verify(facts, wishes(), pending=True)
    assert (found.code, found.severity) == ("DriverReloadPending", "warning")
    assert "kernel module 580.173.02 is loaded, 580.178.04 is installed" in found.sentence()
    assert codes(facts) == ["DriverLoadedOther", "DriverNvmlFailed"]


def test_a_pending_reboot_hides_no_fault_of_the_packages() -> None:
    facts = installed()
    facts["loaded"]["module"]["version"] = "580.82.07"
    facts["packages"][0]["version"] = "580.178.04"
    facts["held"] = []
    assert codes(facts, version="580.173.02", pending=True) == ["DriverVersionMixed", "DriverNotHeld", "DriverReloadPending"]


def test_an_unattended_upgrade_of_the_library_shows() -> None:
    facts = broken(only_packages("580.178.04"))
    facts["record"] = {"version": "580.173.02"}
    assert codes(facts)[0] == "DriverVersionWrong"
    assert "DriverModuleMissing" in codes(facts)


@pytest.mark.parametrize(("change", "arguments", "reason"), [
    (lambda f: f["loaded"].update(nouveau=True, module=None), {}, "the kernel module nouveau is loaded"),
    (lambda f: f["loaded"]["module"].update(version="580.82.07"), {}, "kernel module 580.82.07 is loaded, 580.173.02 is installed"),
    (lambda f: None, {"version": "595.91.07"}, "kernel module 580.173.02 is loaded, 595.91.07 is installed"),
    (lambda f: None, {"flavour": "proprietary"}, "the loaded kernel module is open, the installed one proprietary"),
    (lambda f: None, {"options_changed": True}, "options of the loaded kernel module have changed"),
    (lambda f: f["nvml"].update(error={"reason": "x", "cause": "Driver/library version mismatch"}), {}, "NVML says: Driver/library version mismatch"),
    (lambda f: f.update(reboot_hints=["/run/reboot-required names linux-image"]), {}, "/run/reboot-required names linux-image"),
])
def test_a_reason_for_a_reboot(change: Change, arguments: Facts, reason: str) -> None:
    assert reasons(broken(change), **arguments) == [reason]


def test_a_module_for_the_next_kernel_only() -> None:
    facts = installed()
    facts["loaded"]["module"] = None
    module = facts["kernel"]["installed"][0]["module"]
    old, new = {"release": "6.8.0-90-generic", "headers": False, "module": None}, {"release": "6.8.0-99", "headers": True, "module": module}
    facts["kernel"]["installed"] = [old, new]
    facts["kernel"]["next"] = "6.8.0-99"
    assert reasons(facts) == ["kernel 6.8.0-99 boots next and has the driver's kernel module, the running 6.8.0-90-generic has not"]
    assert not can_load(facts)


def test_a_fresh_host_can_load_its_driver_without_a_reboot() -> None:
    assert reasons(fresh(), version="580.173.02", flavour="open") == []
    facts = installed()
    facts["loaded"]["module"] = None
    assert reasons(facts) == [] and can_load(facts)
    facts["loaded"]["nouveau"] = True
    assert not can_load(facts)
    assert not can_load(fresh())


def test_packages_with_a_version_of_their_own_are_not_compared() -> None:
    facts = installed("ubuntu2404")
    facts["packages"] += [{**package("nvlsm", "2025.03.1"), "full": "2025.03.1-1"}, package("nvidia-driver-pinning-580", "580"),
                          package("nvidia-firmware-580-580.82.07", "580.82.07"), package("nvidia-container-toolkit", "1.20.0")]
    assert codes(facts) == []
