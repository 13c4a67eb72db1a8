# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the facts of driver_info: small questions that several checks ask.

Facts are plain data, as the module returns them in ``driver``. What is missing reads as empty, so that a check never fails on a host without a tool.
Beside what the module documents, ``pci.switches[].vendor`` may be ``15b3`` for an NVLink 5 switch, which is an InfiniBand device with SW_MNG in its VPD;
and ``view.missing`` may list names that no source offers.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ..knowledge.driver_branches import branch_of, is_driver_version
from ..knowledge.driver_packages import DISTRIBUTION, has_own_version, in_driver_set

Facts = Mapping[str, Any]

MELLANOX = "15b3"

PERSISTENCED = "nvidia-persistenced"
FABRIC_MANAGER = "nvidia-fabricmanager"
IMEX = "nvidia-imex"
"""Units of the driver, without ``.service``."""

_TOOLS = ("nvidia-settings", "nvidia-xconfig")


def host(facts: Facts) -> dict[str, str]:
    """Return distribution, version, major, arch, package_manager and so on, each as text."""
    return {name: "" if value is None else str(value) for name, value in (facts.get("host") or {}).items()}


def gpu_ids(facts: Facts) -> list[str]:
    """Return the PCI device ids of the GPUs, four lower-case digits each, in PCI order."""
    return [str(gpu.get("device", "")).lower() for gpu in pci(facts, "gpus")]


def pci(facts: Facts, kind: str) -> list[dict[str, Any]]:
    """Return ``gpus`` or ``switches`` of the PCI bus."""
    return list((facts.get("pci") or {}).get(kind) or [])


def loaded_module(facts: Facts) -> Optional[dict[str, Any]]:
    """Return version and flavour of the loaded kernel module, None when none is."""
    return (facts.get("loaded") or {}).get("module")


def driver_packages(facts: Facts) -> list[dict[str, str]]:
    """Return the installed packages of the driver set whose version is the driver's. Canonical's tools for displays keep a version of their own."""
    manager = host(facts).get("package_manager", "")
    return [package for package in facts.get("packages") or []
            if in_driver_set(package["name"], manager) and not has_own_version(package["name"]) and is_driver_version(package["version"])
            and not (package.get("origin") == DISTRIBUTION and package["name"] in _TOOLS)]


def package_versions(facts: Facts) -> dict[str, list[str]]:
    """Return the names of the installed packages by driver version, names sorted."""
    found: dict[str, list[str]] = {}
    for package in driver_packages(facts):
        found.setdefault(package["version"], []).append(package["name"])
    return {version: sorted(names) for version, names in sorted(found.items())}


def installed_version(facts: Facts) -> str:
    """Return the version that the installed packages agree on, empty when there are none or they do not agree."""
    versions = list(package_versions(facts))
    return versions[0] if len(versions) == 1 else ""


def kernel(facts: Facts, which: str) -> dict[str, Any]:
    """Return release, headers and module of the ``running`` or the ``next`` kernel; headers and module are None when it is not among those installed."""
    kernels = facts.get("kernel") or {}
    release = kernels.get(which) or kernels.get("running") or ""
    found = next((one for one in kernels.get("installed") or [] if one.get("release") == release), None)
    return dict(found) if found else {"release": release, "headers": None, "module": None}


def service(facts: Facts, name: str) -> dict[str, bool]:
    """Return present, active, enabled and masked of a unit."""
    return {key: bool(((facts.get("services") or {}).get(name) or {}).get(key)) for key in ("present", "active", "enabled", "masked")}


def record(facts: Facts) -> dict[str, Any]:
    """Return what the role wrote about its own installation, empty when it never installed here."""
    return dict(facts.get("record") or {})


def version_that_stays(facts: Facts, branch: str) -> str:
    """Return the version of this branch that the host keeps when only a branch is asked for, empty when there is none.

    That is the one on record, also when packages have drifted from it since; else the one that all installed packages have.
    """
    for version in (str(record(facts).get("version") or ""), installed_version(facts)):
        if version and branch_of(version) == branch:
            return version
    return ""
