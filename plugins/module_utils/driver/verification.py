# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Judges a host after its driver was installed: is it the one that was asked for, everywhere and at one version?

The order is that of the way from the package to the GPU: packages, kernel modules on disk, loaded module, library, NVML, GPUs, services, holds.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..knowledge.driver_branches import branch_of
from ..reasons import Finding, FleetError, finding
from . import facts as read
from .facts import FABRIC_MANAGER, IMEX, PERSISTENCED, Facts
from .options import Options
from .reboot import reasons
from .selection import Selection, select


def verify(facts: Facts, options: Options, pending: bool = False) -> list[Finding]:
    """Return what is not as it should be, empty when all is well.

    ``pending`` says that a reboot is still to come: what only a reboot can put right is then one warning, DriverReloadPending, and no error.
    """
    try:
        selection = select(facts, options)
    except FleetError as error:
        return [error.finding]
    versions = read.package_versions(facts)
    if not versions:
        return [finding("DriverMissing", options.subject)]
    found = [*_packages(options, versions, options.version or selection.version, selection.branch)]
    wanted = read.installed_version(facts) or options.version or selection.version
    found += [*_modules(facts, options, wanted, selection.flavour), *_held(facts, options)]
    why = reasons(facts)
    if pending and why:
        return [*found, finding("DriverReloadPending", options.subject, {"reasons": why}, why="; ".join(why))]
    return [*found, *_loaded(facts, options, wanted, selection.flavour), *_library(facts, options, wanted), *_nvml(facts, options),
            *_fabric_manager(facts, options, selection, wanted), *_services(facts, options)]


def _packages(options: Options, versions: dict[str, list[str]], wanted: str, branch: str) -> Iterator[Finding]:
    """DriverVersionMixed, DriverBranchWrong, DriverVersionWrong: the first that applies."""
    if len(versions) > 1:
        evidence = "; ".join(f"{version}: {', '.join(names[:4])}" for version, names in versions.items())
        yield finding("DriverVersionMixed", options.subject, {"found": versions}, evidence=evidence)
        return
    (version,) = versions
    if branch_of(version) != branch:
        yield finding("DriverBranchWrong", options.subject, {"expected": branch, "found": version}, found=version, wanted=branch)
    elif wanted and version != wanted:
        yield finding("DriverVersionWrong", options.subject, {"expected": wanted, "found": version}, found=version, wanted=wanted)


def _modules(facts: Facts, options: Options, wanted: str, flavour: str) -> Iterator[Finding]:
    """DriverModuleMissing, DriverFlavourWrong and DriverModuleUnsigned, for the kernel that boots next."""
    kernel = read.kernel(facts, "next")
    module = kernel["module"]
    if not module or (wanted and module.get("version") != wanted):
        has = f"it has {module['version']}" if module else "it has none"
        yield finding("DriverModuleMissing", options.subject, {"kernel": kernel["release"], "expected": wanted, "found": module}, release=kernel["release"],
                      wanted=wanted or "of any version", found=has)
        return
    if module.get("flavour") and module["flavour"] != flavour:
        yield finding("DriverFlavourWrong", options.subject, {"expected": flavour, "found": module["flavour"]}, where="installed", found=module["flavour"],
                      wanted=flavour)
    if (facts.get("secure_boot") or {}).get("enabled") and not module.get("signer"):
        yield finding("DriverModuleUnsigned", options.subject, {"kernel": kernel["release"]}, release=kernel["release"])


def _loaded(facts: Facts, options: Options, wanted: str, flavour: str) -> Iterator[Finding]:
    """DriverNotLoaded, DriverLoadedOther, DriverFlavourWrong."""
    loaded = read.loaded_module(facts)
    if not loaded:
        yield finding("DriverNotLoaded", options.subject)
        return
    if wanted and loaded["version"] != wanted:
        yield finding("DriverLoadedOther", options.subject, {"expected": wanted, "found": loaded["version"]}, loaded=loaded["version"], installed=wanted)
    elif loaded.get("flavour") and loaded["flavour"] != flavour:
        yield finding("DriverFlavourWrong", options.subject, {"expected": flavour, "found": loaded["flavour"]}, where="loaded", found=loaded["flavour"],
                      wanted=flavour)


def _library(facts: Facts, options: Options, wanted: str) -> Iterator[Finding]:
    """DriverLibraryOther: the file behind libnvidia-ml.so.1 against the packages."""
    library = facts.get("library") or {}
    if wanted and library.get("version") != wanted:
        yield finding("DriverLibraryOther", options.subject, {"expected": wanted, "found": library.get("version")}, found=library.get("version") or "missing",
                      path=library.get("path") or "no file", wanted=wanted)


def _nvml(facts: Facts, options: Options) -> Iterator[Finding]:
    """DriverNvmlFailed, DriverNvmlOther, GpuCountWrong; nothing where no module is loaded, which is said already."""
    nvml, loaded = facts.get("nvml") or {}, read.loaded_module(facts)
    if not loaded:
        return
    if nvml.get("error"):
        why = f"{nvml['error'].get('cause')} ({nvml['error'].get('reason')})"
        yield finding("DriverNvmlFailed", options.subject, {"error": nvml["error"]}, why=why)
        return
    if nvml.get("version") != loaded["version"]:
        yield finding("DriverNvmlOther", options.subject, {"expected": loaded["version"], "found": nvml.get("version")}, found=nvml.get("version") or "none",
                      wanted=loaded["version"])
    on_bus = sum(not gpu.get("passed_to") for gpu in read.pci(facts, "gpus"))
    if nvml.get("gpus") != on_bus:
        yield finding("GpuCountWrong", options.subject, {"expected": on_bus, "found": nvml.get("gpus")}, found=str(nvml.get("gpus")), wanted=str(on_bus))


def _fabric_manager(facts: Facts, options: Options, selection: Selection, wanted: str) -> Iterator[Finding]:
    """FabricManagerWrong: missing, of another version or not active where it is wanted; enabled where it is not, since it then fails at every boot."""
    unit = read.service(facts, FABRIC_MANAGER)
    if not selection.fabric_manager:
        if unit["present"] and unit["enabled"]:
            yield _of_fabric_manager(options, "the fabric manager is enabled on a host that is to have none", unit)
        return
    name = next(iter(selection.packages.fabric_manager), "a fabric manager")
    package = next((one for one in facts.get("packages") or [] if one["name"] == name), None)
    if package is None:
        yield _of_fabric_manager(options, f"{name} is not installed on a host with NVSwitches", unit)
    elif wanted and package["version"] != wanted:
        yield _of_fabric_manager(options, f"the fabric manager is {package['version']} beside driver {wanted}", unit)
    elif not unit["active"]:
        yield _of_fabric_manager(options, "nvidia-fabricmanager.service is not active", unit)


def _of_fabric_manager(options: Options, why: str, unit: dict[str, Any]) -> Finding:
    return finding("FabricManagerWrong", options.subject, {"service": unit}, why=why)


def _services(facts: Facts, options: Options) -> Iterator[Finding]:
    """PersistenceDaemonDown and ImexUnitRunning."""
    if not read.service(facts, PERSISTENCED)["active"]:
        yield finding("PersistenceDaemonDown", options.subject)
    imex = read.service(facts, IMEX)
    if imex["present"] and (imex["active"] or imex["enabled"] or not imex["masked"]):
        yield finding("ImexUnitRunning", options.subject, {"service": imex})


def _held(facts: Facts, options: Options) -> Iterator[Finding]:
    """DriverNotHeld: every package that carries the driver's version has to be held, or the next update takes some of them along."""
    held = set(facts.get("held") or ())
    loose = [package["name"] for package in read.driver_packages(facts) if package["name"] not in held]
    if loose:
        yield finding("DriverNotHeld", options.subject, {"names": loose}, names=", ".join(loose[:6]) + (" and others" if len(loose) > 6 else ""))
