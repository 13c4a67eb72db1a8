# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Chooses the driver for a host: the cell of the matrix, flavour, version rule, packages and repository. From facts and options alone."""
from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NoReturn, Optional

from ..knowledge.addresses import without_credentials
from ..knowledge.driver_branches import AS_OF, BRANCHES, FIRST_FOR_DRA, LAST_SUFFIXED, OPEN, PROPRIETARY, production_branches, version_key
from ..knowledge.driver_gpus import OPEN_REQUIRED, PROPRIETARY_REQUIRED, gpu_kind
from ..knowledge.driver_matrix import UNSUPPORTED, Cell, cells_of_host, find_cell, nearest_cells, nearest_hosts
from ..knowledge.driver_packages import (
    PINNING,
    REPOSITORY_NAME,
    PackageSet,
    has_own_version,
    headers_package,
    in_driver_set,
    package_set,
    pinned_globs,
)
from ..reasons import FleetError, finding
from . import facts as read
from .facts import Facts
from .options import AUTO, Options

NVIDIA_REPOSITORIES = "https://developer.download.nvidia.com/compute/cuda/repos"


@dataclass(frozen=True)
class Repository:
    """Where packages come from. ``fingerprint`` is that of the key which signs it.

    ``url`` and ``key_url`` may hold user name and password: they are shown by without_credentials only.
    """

    name: str
    kind: str
    url: str
    key_url: str
    fingerprint: str

    def as_view(self) -> dict[str, Any]:
        """Return what driver_info takes as ``view.repository``; dependencies such as dkms come from the distribution."""
        return {"kind": self.kind, "url": self.url, "key_url": self.key_url, "fingerprint": self.fingerprint, "distribution_repos": True}


@dataclass(frozen=True)
class Selection:
    """The driver that a host is to have.

    ``version`` is the one asked for, else the one that stays, else empty: then the newest of the branch in the repository is taken. ``install`` holds
    names without versions, all of which exist at the driver's version except those with their own; ``headers`` the packages for kernels that lack
    headers; ``pins`` globs of the names that must carry the version; ``obsolete`` installed packages that have to go. ``repository`` is None where all
    comes from the host's own sources.
    """

    cell: Cell
    branch: str
    version: str
    flavour: str
    packages: PackageSet
    install: tuple[str, ...]
    headers: tuple[str, ...]
    pins: tuple[str, ...]
    obsolete: tuple[str, ...]
    stream: Optional[str]
    repository: Optional[Repository]
    fabric_manager: bool
    imex: bool

    @property
    def manager(self) -> str:
        """Return apt, dnf or zypper."""
        return self.cell.platform.manager

    def exact(self) -> list[str]:
        """Return the names of ``install`` that carry the driver's version."""
        return [name for name in self.install if not has_own_version(name)]

    def view(self) -> dict[str, Any]:
        """Return the ``view`` that driver_info is to make: what the repository offers, and the transaction that would follow."""
        return {
            "repository": self.repository.as_view() if self.repository else None, "branch": self.branch, "version": self.version, "stream": self.stream,
            "install": [*self.headers, *self.install], "remove": list(self.obsolete), "pins": list(self.pins),
        }


def select(facts: Facts, options: Options) -> Selection:
    """Return the driver for this host.

    Raises FleetError DriverPlatformUnlisted, DriverBranchUnlisted, DriverBranchBelowDra, DriverBranchEnded, DriverSourceUnlisted, DriverFlavourUnfit,
    DriverOptionInvalid (no branch) and DriverKeyUnknown. What else may be wrong with the host is for checks.examine.
    """
    host = read.host(facts)
    place = (host.get("distribution", ""), host.get("version", ""), host.get("arch", ""))
    if not cells_of_host(*place):
        _refuse_platform(options.subject, *place)
    _check_branch(options, place)
    flavour = flavour_for(facts, options)
    cell = find_cell(*place, options.source, options.branch, flavour)
    if cell is None:
        _refuse_cell(options, place, flavour)
    kernel = str(read.kernel(facts, "next")["release"])  # a prebuilt module is for one flavour of kernels
    packages = package_set(cell.platform.layout, cell.branch, flavour, cell.arch, kernel, host.get("version", ""))
    fabric_manager, imex = wants_fabric_manager(facts, options), wants_imex(facts, options)
    names = wanted_names(facts, packages, fabric_manager, imex)
    gone = obsolete(facts, cell, packages)
    others = [package["name"] for package in read.driver_packages(facts) if package["name"] not in (*names, *gone)]
    return Selection(
        cell=cell, branch=cell.branch, version=options.version or read.version_that_stays(facts, cell.branch), flavour=flavour, packages=packages,
        install=tuple(dict.fromkeys([*names, *others])), headers=tuple(missing_headers(facts, cell, packages)),
        pins=pinned_globs(cell.platform.manager), obsolete=tuple(gone),
        stream=f"{cell.branch}-{'open' if flavour == OPEN else 'dkms'}" if cell.platform.layout == "el-streams" else None,
        repository=repository(cell, options), fabric_manager=fabric_manager, imex=imex,
    )


def flavour_for(facts: Facts, options: Options) -> str:
    """Return open or proprietary: the one asked for, else by the GPUs. Whether GPUs get along with it is for the checks."""
    if options.flavour != AUTO:
        return options.flavour
    needs = {kind.flavour for kind in map(gpu_kind, read.gpu_ids(facts)) if kind}
    return PROPRIETARY if PROPRIETARY_REQUIRED in needs and OPEN_REQUIRED not in needs else OPEN


def wants_fabric_manager(facts: Facts, options: Options) -> bool:
    """Return whether the host gets a fabric manager; by itself where NVSwitches are."""
    return bool(read.pci(facts, "switches")) if options.fabric_manager == AUTO else options.fabric_manager == "true"


def wants_imex(facts: Facts, options: Options) -> bool:
    """Return whether the host gets IMEX; by itself where the GPU is of a product whose NVLink goes through the rack."""
    if options.imex != AUTO:
        return options.imex == "true"
    return any(kind.nvl_rack for kind in map(gpu_kind, read.gpu_ids(facts)) if kind)


def wanted_names(facts: Facts, packages: PackageSet, fabric_manager: bool, imex: bool) -> list[str]:
    """Return the names to install, without headers and pins."""
    nvlink5 = any(str(switch.get("vendor", "")).lower() == read.MELLANOX for switch in read.pci(facts, "switches"))
    switches = [*packages.fabric_manager, *(packages.nvlink5 if nvlink5 else ())] if fabric_manager else []
    return [*packages.module, *packages.userspace, *switches, *(packages.imex if imex else ())]


def obsolete(facts: Facts, cell: Cell, packages: PackageSet) -> list[str]:
    """Return the installed driver packages that the chosen set replaces, sorted: of another branch, generation or flavour, and other pinning packages."""
    found = []
    for package in facts.get("packages") or []:
        name = package["name"]
        if not in_driver_set(name, cell.platform.manager) or name in (*packages.names(), *packages.pin):
            continue
        unwanted = any(fnmatchcase(name, glob) for glob in (PINNING, *packages.unwanted))
        if unwanted or _other_branch(name, cell) or _other_flavour(name, cell.flavour):
            found.append(name)
    return sorted(set(found))


# On Ubuntu these have no branch in their names, whatever the branch is.
_NEVER_SUFFIXED = ("nvidia-fabricmanager", "libnvidia-nscq", "libnvsdm", "nvidia-imex", "nvlsm", "nvidia-modprobe", "nvidia-settings", "nvidia-xconfig")


def _other_branch(name: str, cell: Cell) -> bool:
    """Return whether a name of an Ubuntu layout is of another branch, by the number in it: 580 has one, those from 590 on have none."""
    if cell.platform.layout not in ("ubuntu", "ubuntu-archive") or name in _NEVER_SUFFIXED:
        return False
    number = re.search(r"-(\d{3})(?=-|$)", name)
    suffixed = cell.platform.layout == "ubuntu-archive" or int(cell.branch) <= LAST_SUFFIXED
    return (number.group(1) if number else "") != (cell.branch if suffixed else "")


_MODULES = re.compile(r"nvidia-dkms|nvidia-kernel-(source|dkms|open)|kmod-nvidia|nvidia-(open-)?driver-G0|linux-modules-nvidia|^nvidia-open(-|$)|^cuda-drivers")


def _other_flavour(name: str, flavour: str) -> bool:
    """Return whether a package is, or pulls in, a kernel module of the other flavour."""
    return bool(_MODULES.search(name)) and ("open" in name) != (flavour == OPEN)


def missing_headers(facts: Facts, cell: Cell, packages: PackageSet) -> list[str]:
    """Return the packages of kernel headers that the host lacks for its installed kernels, where the kernel module is built on the host."""
    if not packages.dkms:
        return []
    kernels = (facts.get("kernel") or {}).get("installed") or []
    names = [headers_package(cell.platform.layout, one["release"]) for one in kernels if not one.get("headers")]
    return list(dict.fromkeys(name for name in names if name))


def repository(cell: Cell, options: Options) -> Optional[Repository]:
    """Return the repository that the packages need beside the host's own sources, None for a distribution's own drivers.

    Raises FleetError DriverKeyUnknown when neither the options nor the matrix know the fingerprint of its key.
    """
    platform = cell.platform
    if not platform.directory:
        return None
    arch = "x86_64" if cell.arch == "x86_64" else "sbsa"
    url = options.repository_url or f"{(options.mirror_url or NVIDIA_REPOSITORIES).rstrip('/')}/{platform.directory}/{arch}/"
    url = url.rstrip("/") + "/"
    key_url = options.repository_key_url or url + platform.key.file
    fingerprint = options.repository_key_fingerprint or platform.key.fingerprint
    if not fingerprint:
        shown = without_credentials(key_url)
        raise FleetError(finding("DriverKeyUnknown", options.subject, {"key_url": shown}, key_url=shown))
    return Repository(REPOSITORY_NAME, platform.manager, url, key_url, fingerprint)


def target_version(facts: Facts, selection: Selection) -> str:
    """Return the version that the host will have: the chosen one, else the one that the view found, else empty."""
    return selection.version or str((facts.get("view") or {}).get("version") or "")


def _check_branch(options: Options, place: tuple[str, str, str]) -> None:
    subject, branch = options.subject, BRANCHES.get(options.branch)
    choices = ", ".join(production_branches())
    if not options.branch:
        allowed = f"a driver branch ({choices}) or a version in nvidia_driver_version"
        raise FleetError(finding("DriverOptionInvalid", subject, {"option": "branch", "value": ""}, option="nvidia_driver_branch", value="", allowed=allowed))
    details = {"branch": options.branch, "choices": production_branches()}
    if int(options.branch) < FIRST_FOR_DRA:
        raise FleetError(finding("DriverBranchBelowDra", subject, details, branch=options.branch, choices=choices))
    if branch is None:
        nearest = ", ".join(sorted({cell.branch for cell in nearest_cells(*place, options.source, options.branch, OPEN)}, key=version_key))
        raise FleetError(finding("DriverBranchUnlisted", subject, details, branch=options.branch, where="the support matrix", choices=nearest or choices))
    if branch.ended and not options.allow_ended_branch:
        ended = f"in {branch.end_of_life}" if branch.end_of_life else f"before {AS_OF}"
        raise FleetError(finding("DriverBranchEnded", subject, details, branch=options.branch, ended=ended, choices=choices))


def _refuse_platform(subject: str, distribution: str, version: str, arch: str) -> NoReturn:
    why = UNSUPPORTED.get((distribution, version.split(".", 1)[0]), "")
    choices = nearest_hosts(distribution, version, arch)
    raise FleetError(finding(
        "DriverPlatformUnlisted", subject, {"distribution": distribution, "version": version, "arch": arch, "choices": choices},
        host=f"{distribution or 'a host without os-release'} {version} {arch}" + (f" ({why})" if why else ""), choices=", ".join(choices),
    ))


def _refuse_cell(options: Options, place: tuple[str, str, str], flavour: str) -> NoReturn:
    """Say which part of the combination does not go with the rest: source, then branch, then flavour."""
    distribution, version, arch = place
    cells = cells_of_host(distribution, version, arch)
    near = nearest_cells(distribution, version, arch, options.source, options.branch, flavour)
    choices = "; ".join(f"branch {cell.branch} {cell.flavour} from {cell.source}" for cell in near)
    details = {"branch": options.branch, "flavour": flavour, "source": options.source, "choices": [cell.text() for cell in near]}
    of_source = [cell for cell in cells if cell.source == options.source]
    where = f"{distribution} {version} {arch}"
    if not of_source:
        raise FleetError(finding("DriverSourceUnlisted", options.subject, details, source=options.source, where=where, choices=choices))
    if options.branch not in {cell.branch for cell in of_source}:
        raise FleetError(finding("DriverBranchUnlisted", options.subject, details, branch=options.branch, where=f"{where} from {options.source}",
                                 choices=choices))
    raise FleetError(finding("DriverFlavourUnfit", options.subject, details, flavour=flavour,
                             why=f"branch {options.branch} from {options.source} does not have it on {where}", choices=choices))
