# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hosts for the tests of driver decisions: facts as module driver_info returns them, fresh or with a driver."""
from __future__ import annotations

import copy
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.driver.options import Options
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.selection import select

HOSTS: dict[str, tuple[str, str, str]] = {
    "debian12": ("debian", "12", "apt"), "debian13": ("debian", "13", "apt"), "ubuntu2204": ("ubuntu", "22.04", "apt"),
    "ubuntu2404": ("ubuntu", "24.04", "apt"), "ubuntu2604": ("ubuntu", "26.04", "apt"), "el8": ("rhel", "8.10", "dnf"), "el9": ("rocky", "9.7", "dnf"),
    "el10": ("rocky", "10.1", "dnf"), "amzn2023": ("amzn", "2023", "dnf"), "sles15": ("sles", "15.6", "zypper"), "sles16": ("sles", "16.0", "zypper"),
    "azl3": ("azurelinux", "3.0", "dnf"), "fedora": ("fedora", "43", "dnf"),
}
KERNELS = {"apt": "6.8.0-90-generic", "dnf": "5.14.0-611.5.1.el9_7.x86_64", "zypper": "6.4.0-150600.23.53-default"}
REVISIONS = {"apt": "{}-1", "dnf": "3:{}-1.el9", "zypper": "{}-1"}


def fresh(system: str = "debian12", gpus: tuple[str, ...] = ("2330", "2330"), arch: str = "x86_64", **changes: Any) -> dict[str, Any]:
    """Return the facts of a host that never had a driver, with ``changes`` to their top level."""
    distribution, version, manager = HOSTS[system]
    kernel = KERNELS[manager]
    facts: dict[str, Any] = {
        "host": {"distribution": distribution, "version": version, "major": version.split(".")[0], "pretty": system, "arch": arch, "python": "3.11.2",
                 "package_manager": manager, "image_based": None},
        "kernel": {"running": kernel, "next": kernel, "installed": [{"release": kernel, "headers": True, "module": None}]},
        "secure_boot": {"enabled": False, "evidence": "/sys/firmware/efi does not exist"},
        "pci": {"gpus": [{"address": f"0000:{index + 1:02x}:00.0", "device": device, "class": "0302"} for index, device in enumerate(gpus)], "switches": []},
        "loaded": {"module": None, "nouveau": False}, "library": None,
        "nvml": {"version": None, "gpus": None, "error": {"reason": "NvmlLibraryMissing", "cause": "libnvidia-ml.so.1 was not found"}},
        "packages": [], "held": [], "traces": {"runfile": [], "container_driver": [], "repositories": []}, "services": {}, "holders": [], "stream": None,
        "files": {}, "record": None, "reboot_hints": [], "cluster_hint": {"kubelet": False},
    }
    return {**facts, **changes}


def installed(system: str = "debian12", version: str = "580.173.02", flavour: str = "open", gpus: tuple[str, ...] = ("2330", "2330"), switches: int = 0,
              **wishes: Any) -> dict[str, Any]:
    """Return the facts of a host with the driver of this version in order: installed, held, loaded, its services up. ``wishes`` are further options."""
    facts = fresh(system, gpus)
    facts["pci"]["switches"] = [{"address": f"0000:c{index}:00.0", "device": "22a3"} for index in range(switches)]
    manager = facts["host"]["package_manager"]
    asked = {"version": version, "flavour": flavour, "repository_key_fingerprint": "AB" * 20, "allow_ended_branch": True, **wishes}
    names = select(facts, Options.of(asked)).exact()
    facts["packages"] = [package(name, version, manager) for name in names]
    facts["held"] = list(names)
    module = {"path": "/lib/modules/k/updates/dkms/nvidia.ko", "version": version, "flavour": flavour, "signer": None}
    facts["kernel"]["installed"][0]["module"] = module
    facts["loaded"] = {"module": {"version": version, "flavour": flavour}, "nouveau": False}
    facts["library"] = {"path": f"/usr/lib/libnvidia-ml.so.{version}", "version": version}
    facts["nvml"] = {"version": version, "gpus": len(gpus), "error": None}
    unit = {"present": True, "active": True, "enabled": True, "masked": False}
    facts["services"] = {"nvidia-persistenced": dict(unit)}
    if switches:
        facts["services"]["nvidia-fabricmanager"] = dict(unit)
    return copy.deepcopy(facts)


def package(name: str, version: str, manager: str = "apt", origin: str = "nvidia") -> dict[str, str]:
    """Return one installed package as driver_info tells of it."""
    return {"name": name, "version": version, "full": REVISIONS[manager].format(version), "arch": "amd64", "origin": origin, "source": f"made by {origin}"}


def wishes(**given: Any) -> Options:
    """Return options for branch 580 with ``given`` on top; the key of the EL10 repository has to be named, so all get one."""
    return Options.of({"subject": "gpu1", "branch": "580", "repository_key_fingerprint": "AB" * 20, **given})
