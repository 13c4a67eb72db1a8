# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What speaks against a driver on a host, with the evidence: one small function per check, and :func:`examine`, which asks them all."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Optional

from ..knowledge.driver_branches import NFB, known_branch, production_branches
from ..knowledge.driver_matrix import cells_of_host
from ..knowledge.driver_packages import DISTRIBUTION, DNF, NVIDIA, PackageSet, headers_package, is_headers
from ..reasons import ERROR, Finding, FleetError, finding
from . import facts as read
from .checks_gpu import gpu_findings
from .facts import Facts
from .options import OPERATOR, PRESENT, Options
from .selection import Selection, select


class Examination(NamedTuple):
    """The driver for a host, None when there is none to be had, and everything that was found; refusals are the findings of severity error."""

    selection: Optional[Selection]
    findings: list[Finding]

    def refusals(self) -> list[Finding]:
        """Return the findings for which nothing must be changed on the host."""
        return [found for found in self.findings if found.severity == ERROR]


def examine(facts: Facts, options: Options) -> Examination:
    """Return the selection and every finding about the host, not only the first. Works with and without a ``view`` in the facts.

    Where the GPU Operator owns the driver there is nothing to select: the only question is whether the host keeps out of its way. The same for a driver
    that is to be absent, for which nothing is refused here.
    """
    if options.state != PRESENT:
        return Examination(None, [])
    if options.owner == OPERATOR:
        return Examination(None, list(driver_on_host(facts, options)))
    try:
        selection: Optional[Selection] = select(facts, options)
        found: list[Finding] = []
    except FleetError as error:
        selection, found = None, [error.finding]
    found += [*image_based(facts, options), *no_gpu(facts, options), *runfile(facts, options), *container_driver(facts, options),
              *foreign_repositories(facts, options), *nouveau(facts, options)]
    if selection:
        found += [*short_lived(options, selection), *package_manager(facts, options, selection), *gpu_findings(facts, options, selection),
                  *origins(facts, options, selection), *secure_boot(facts, options, selection), *kernel_headers(facts, options, selection),
                  *never_offered(options, selection)]
    return Examination(selection, found)


def image_based(facts: Facts, options: Options) -> Iterator[Finding]:
    """ImageBasedHost: RHCOS, bootc and the like, whose /usr is not for packages."""
    evidence = read.host(facts).get("image_based")
    if evidence:
        yield finding("ImageBasedHost", options.subject, {"evidence": evidence}, evidence=f"{evidence} exists")


def no_gpu(facts: Facts, options: Options) -> Iterator[Finding]:
    """NoGpuOnPci: the bus, not NVML, since there may be no driver yet."""
    if not read.pci(facts, "gpus"):
        yield finding("NoGpuOnPci", options.subject)


def runfile(facts: Facts, options: Options) -> Iterator[Finding]:
    """RunfileDriver: what the runfile leaves (nvidia-uninstall, its log), or a library that belongs to no package."""
    traces, library = _traces(facts, "runfile"), (facts.get("library") or {}).get("path")
    if not traces and library and not facts.get("packages") and not _library_package(facts) and not _traces(facts, "container_driver"):
        traces = [f"{library} belongs to no package"]
    if traces:
        yield finding("RunfileDriver", options.subject, {"evidence": traces}, evidence=_listed(traces))


def container_driver(facts: Facts, options: Options) -> Iterator[Finding]:
    """ContainerDriverPresent: two drivers on one node end in a module that nothing on the host matches."""
    traces = _traces(facts, "container_driver")
    if traces:
        yield finding("ContainerDriverPresent", options.subject, {"evidence": traces}, evidence=_listed(traces))


def driver_on_host(facts: Facts, options: Options) -> Iterator[Finding]:
    """DriverOnHost: packages, a runfile or the library, where the GPU Operator is to bring the driver in a container."""
    library = facts.get("library") or {}
    versions = read.package_versions(facts)
    evidence = [*(f"{len(names)} packages of {version}" for version, names in versions.items()), *_traces(facts, "runfile")]
    if not evidence and library.get("path") and not _traces(facts, "container_driver"):
        evidence = [library["path"]]
    if evidence:
        yield finding("DriverOnHost", options.subject, {"evidence": evidence}, evidence=_listed(evidence))


def foreign_repositories(facts: Facts, options: Options) -> Iterator[Finding]:
    """DriverForeignRepository: another source of drivers, which the next update may take them from."""
    host = read.host(facts)
    ours = {cell.platform.host_source for cell in cells_of_host(host.get("distribution", ""), host.get("version", ""), host.get("arch", ""))
            if cell.source == options.source and cell.platform.host_source}
    found = [one for one in (facts.get("traces") or {}).get("repositories") or [] if not any(part in str(one.get("url", "")) for part in ours)]
    texts = [f"{one.get('path', '')}: {one.get('url', '')}" for one in found]
    if texts:
        yield finding("DriverForeignRepository", options.subject, {"repositories": found}, evidence=_listed(texts))


def nouveau(facts: Facts, options: Options) -> Iterator[Finding]:
    """NouveauLoaded: unloading it live often fails, so it takes a reboot, to which one has to agree."""
    if (facts.get("loaded") or {}).get("nouveau") and not options.reboot_ok:
        yield finding("NouveauLoaded", options.subject)


def short_lived(options: Options, selection: Selection) -> Iterator[Finding]:
    """DriverBranchShortLived, a warning: new feature branches live for some months."""
    branch = known_branch(selection.branch)
    if branch and branch.kind == NFB and not branch.ended:
        yield finding("DriverBranchShortLived", options.subject, branch=selection.branch, choices=", ".join(production_branches()))


def package_manager(facts: Facts, options: Options, selection: Selection) -> Iterator[Finding]:
    """DriverPackageManagerMissing: such as dnf on Azure Linux, which comes with tdnf."""
    found = read.host(facts).get("package_manager", "")
    if found != selection.manager:
        yield finding("DriverPackageManagerMissing", options.subject, {"expected": selection.manager, "found": found}, wanted=selection.manager,
                      found=found or "none")


def origins(facts: Facts, options: Options, selection: Selection) -> Iterator[Finding]:
    """DriverOriginMixed and DriverOriginUnknown: who made the installed packages, against where this driver's come from.

    What the record says that the role installed is never foreign: a mirror may name another maker. A library of a package that is not in the driver set
    at all comes from a source that names its packages otherwise, such as RPM Fusion.
    """
    ours = set(read.record(facts).get("installed") or ())
    foreign: list[str] = []
    unknown: list[str] = []
    for package in read.driver_packages(facts):
        origin = package.get("origin", "unknown")
        if package["name"] in ours or origin == _wanted_origin(package["name"], selection.packages):
            continue
        (unknown if origin == "unknown" else foreign).append(f"{package['name']} {package['full']} ({package.get('source') or origin})")
    owner = _library_package(facts)
    if owner and owner not in {package["name"] for package in facts.get("packages") or []}:
        foreign.append(f"{owner}, which has {(facts.get('library') or {}).get('path') or 'libnvidia-ml.so.1'}")
    if foreign:
        wanted = "NVIDIA's repository" if options.source == NVIDIA else "the distribution"
        yield finding("DriverOriginMixed", options.subject, {"packages": foreign}, wanted=wanted, evidence=_listed(foreign))
    if unknown:
        yield finding("DriverOriginUnknown", options.subject, {"packages": unknown}, evidence=_listed(unknown))


def _wanted_origin(name: str, packages: PackageSet) -> str:
    # SUSE's signed module and its firmware are the distribution's, while all the rest is NVIDIA's.
    beside = any(fnmatchcase(name, glob) for glob in ("*-kmp-*", "kernel-firmware-nvidia-*"))
    module = name in packages.module or (packages.module_origin != packages.origin and beside)
    return packages.module_origin if module else packages.origin


def secure_boot(facts: Facts, options: Options, selection: Selection) -> Iterator[Finding]:
    """SecureBootUnsigned: a module that is built on the host carries a key which the firmware does not know.

    Not so where the key of dkms is enrolled, or where a module built here is loaded although Secure Boot is on.
    """
    state = facts.get("secure_boot") or {}
    if not state.get("enabled") or selection.cell.platform.signed or state.get("dkms_key_enrolled"):
        return
    if read.loaded_module(facts) and (read.kernel(facts, "running").get("module") or {}).get("signer"):
        return
    cell = selection.cell
    signed = [other for other in cells_of_host(cell.distribution, cell.version, cell.arch) if other.platform.signed]
    branches = list(dict.fromkeys(other.branch for other in signed))
    choice = f"signed modules by setting nvidia_driver_source to {DISTRIBUTION} (branches {', '.join(branches)})"
    yield finding("SecureBootUnsigned", options.subject, {"evidence": state.get("evidence", ""), "branches": branches},
                  evidence=state.get("evidence", ""), signed=choice if branches else "a distribution that has signed modules (docs/driver-support.md)")


def kernel_headers(facts: Facts, options: Options, selection: Selection) -> Iterator[Finding]:
    """KernelHeadersMissing: for the kernel that boots next, not only for the running one. Asks for a ``view``: the sources may have the headers."""
    kernel, view = read.kernel(facts, "next"), facts.get("view")
    if view is None or not selection.packages.dkms or kernel["headers"] is not False:
        return
    package = headers_package(selection.cell.platform.layout, kernel["release"]) or ""
    if package in (view.get("missing") or []) or not _brings(view.get("transaction") or {}, package, selection.manager):
        yield finding("KernelHeadersMissing", options.subject, {"kernel": kernel["release"], "package": package}, release=kernel["release"], package=package)


def never_offered(options: Options, selection: Selection) -> Iterator[Finding]:
    """DriverPackagesMissing: a part of the driver that the source never has, such as a fabric manager on Azure Linux."""
    parts = (("a fabric manager", selection.fabric_manager, selection.packages.fabric_manager), ("IMEX", selection.imex, selection.packages.imex))
    never = [part for part, wanted, names in parts if wanted and not names]
    if never:
        where = f"{selection.cell.source} on {selection.cell.distribution} {selection.cell.version}"
        yield finding("DriverPackagesMissing", options.subject, {"missing": never}, url=where, packages=" and ".join(never))


def _brings(transaction: dict[str, Any], package: str, manager: str) -> bool:
    """Return whether a transaction installs ``package``; for dnf that is a name and a release, of which transactions have the name alone."""
    coming = [one["name"] for kind in ("install", "upgrade", "downgrade") for one in transaction.get(kind) or []]
    return package in coming or (manager == DNF and any(is_headers(name) and package.startswith(f"{name}-") for name in coming))


def _traces(facts: Facts, kind: str) -> list[str]:
    return [str(trace) for trace in (facts.get("traces") or {}).get(kind) or []]


def _library_package(facts: Facts) -> str:
    return str((facts.get("traces") or {}).get("library_package") or "")


def _listed(texts: Iterable[str], most: int = 6) -> str:
    """Return texts in a row, and how many more there are."""
    all_of_them = list(texts)
    more = len(all_of_them) - most
    return ", ".join(all_of_them[:most]) + (f" and {more} more" if more > 0 else "")
