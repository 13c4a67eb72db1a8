# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The support matrix: which driver can be installed on which host, from where, and on what that was tried.

A *cell* is distribution x version x architecture x source x branch x flavour. A mirror of NVIDIA's repository counts as that repository: it is the same
content at another address. Sources of the rows: NVIDIA Driver Installation Guide (580 and 620 editions), Canonical's archive, SUSE's and Microsoft's notes.
docs/driver-support.md is generated from here by scripts/driver_matrix.py.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from .driver_branches import BRANCHES, OPEN, PROPRIETARY, production_branches
from .driver_packages import DISTRIBUTION, MANAGERS, NVIDIA

X86_64 = "x86_64"
AARCH64 = "aarch64"

REAL = "real"
STAND_IN = "stand-in"
NOT = "not"


@dataclass(frozen=True)
class Key:
    """A key that signs a repository: the file beside the packages, and its OpenPGP fingerprint."""

    file: str
    fingerprint: str


# NVIDIA rotates the keys by distribution release.
_KEY_DEB = Key("3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC")
_KEY_DEBIAN13 = Key("8793F200.pub", "02182E60104FCDC26EAE1B8597A5D4CB8793F200")
_KEY_RPM = Key("D42D0685.pub", "610C7B14E068A878070DA4E99CD0A493D42D0685")
_KEY_RHEL10 = Key("CDF6BA43.pub", "")
_KEY_SUSE16 = Key("3A8B5622.pub", "CF65941A859D4B4E6870F188736A284B3A8B5622")


@dataclass(frozen=True)
class Platform:
    """A row of hosts whose driver comes from one source in one way.

    ``distributions`` are os-release IDs; ``versions`` VERSION_IDs, or major versions where ``by_major``. ``directory`` is NVIDIA's name in the address
    of its repository, empty where nothing comes from there. ``signed`` says that the kernel module is signed by a key that Secure Boot trusts.
    ``host_source`` is a part of the address of a source of drivers that the host must have configured itself.
    """

    distributions: tuple[str, ...]
    versions: tuple[str, ...]
    source: str
    layout: str
    branches: tuple[str, ...]
    arches: tuple[str, ...] = (X86_64, AARCH64)
    flavours: tuple[str, ...] = (OPEN, PROPRIETARY)
    directory: str = ""
    key: Key = Key("", "")
    by_major: bool = False
    signed: bool = False
    host_source: str = ""
    note: str = ""

    @property
    def manager(self) -> str:
        """Return apt, dnf or zypper."""
        return MANAGERS[self.layout]


@dataclass(frozen=True)
class Cell:
    """One combination that can be installed. ``tested_on`` is real, stand-in or not."""

    distribution: str
    version: str
    arch: str
    source: str
    branch: str
    flavour: str
    platform: Platform
    tested_on: str

    def text(self) -> str:
        """Return the cell in a few words."""
        return f"{self.distribution} {self.version} {self.arch}, branch {self.branch} {self.flavour} from {self.source}"


_NVIDIA_BRANCHES = ("580", "590", "595", "610", "615", "620")
_FROM_595 = ("595", "610", "615", "620")
_EL = ("rhel", "rocky", "almalinux", "ol")

PLATFORMS = (
    Platform(("ubuntu",), ("22.04",), NVIDIA, "ubuntu", _NVIDIA_BRANCHES, directory="ubuntu2204", key=_KEY_DEB),
    Platform(("ubuntu",), ("24.04",), NVIDIA, "ubuntu", _NVIDIA_BRANCHES, directory="ubuntu2404", key=_KEY_DEB),
    Platform(("ubuntu",), ("26.04",), NVIDIA, "ubuntu", _FROM_595, directory="ubuntu2604", key=_KEY_DEB,
             note="NVIDIA's repository begins with 595; for 580 take Canonical's packages"),
    Platform(("ubuntu",), ("22.04", "24.04"), DISTRIBUTION, "ubuntu-archive", ("580", "595"), signed=True, note="Canonical's server drivers"),
    Platform(("ubuntu",), ("26.04",), DISTRIBUTION, "ubuntu-archive", ("580", "595", "615"), signed=True, note="Canonical's server drivers"),
    Platform(("debian",), ("12",), NVIDIA, "debian", _NVIDIA_BRANCHES, (X86_64,), directory="debian12", key=_KEY_DEB, by_major=True,
             note="not among the systems that NVIDIA validated for its GPU Operator; Debian's own packages are too old for DRA"),
    Platform(("debian",), ("13",), NVIDIA, "debian", _NVIDIA_BRANCHES, (X86_64,), directory="debian13", key=_KEY_DEBIAN13, by_major=True,
             note="not among the systems that NVIDIA validated for its GPU Operator; Debian's own packages are too old for DRA"),
    Platform(_EL, ("9",), NVIDIA, "el-streams", _NVIDIA_BRANCHES, directory="rhel9", key=_KEY_RPM, by_major=True, note="needs EPEL for dkms, and CRB"),
    Platform(_EL, ("10",), NVIDIA, "el", _NVIDIA_BRANCHES, directory="rhel10", key=_KEY_RHEL10, by_major=True,
             note="needs EPEL for dkms, and CRB; set nvidia_driver_repository_key_fingerprint, for that of the key CDF6BA43 is not in the tables"),
    Platform(("amzn",), ("2023",), NVIDIA, "el-streams", _NVIDIA_BRANCHES, directory="amzn2023", key=_KEY_RPM),
    Platform(("sles",), ("15",), NVIDIA, "suse", _NVIDIA_BRANCHES, directory="sles15", key=_KEY_RPM, by_major=True,
             note="Python 3.11 has to be added (package python311): the system's own is 3.6"),
    Platform(("sles",), ("15",), DISTRIBUTION, "suse-signed", ("580", "595"), flavours=(OPEN,), directory="sles15", key=_KEY_RPM, by_major=True,
             signed=True, note="SUSE's signed kernel module, with NVIDIA's userspace at the same version; Python 3.11 has to be added"),
    Platform(("sles", "opensuse-leap"), ("16",), NVIDIA, "suse", _NVIDIA_BRANCHES, directory="suse16", key=_KEY_SUSE16, by_major=True),
    Platform(("sles", "opensuse-leap"), ("16",), DISTRIBUTION, "suse-signed", ("580", "595"), flavours=(OPEN,), directory="suse16", key=_KEY_SUSE16,
             by_major=True, signed=True, note="SUSE's signed kernel module, with NVIDIA's userspace at the same version"),
    Platform(("opensuse-leap",), ("15",), NVIDIA, "suse", _NVIDIA_BRANCHES, (X86_64,), directory="opensuse15", key=_KEY_RPM, by_major=True,
             note="Python 3.11 has to be added"),
    Platform(("azurelinux",), ("3",), DISTRIBUTION, "azurelinux", ("580", "595"), flavours=(OPEN,), by_major=True, signed=True,
             host_source="//packages.microsoft.com/",
             note="Microsoft's signed cuda-open, from its NVIDIA repository, which has to be configured; needs dnf, for Ansible has no module for tdnf"),
)

UNSUPPORTED = {
    ("rhel", "8"): "its package manager's Python is 3.6, and modules here need 3.9",
    ("rocky", "8"): "its package manager's Python is 3.6, and modules here need 3.9",
    ("almalinux", "8"): "its package manager's Python is 3.6, and modules here need 3.9",
    ("ol", "8"): "its package manager's Python is 3.6, and modules here need 3.9",
    ("azurelinux", "4"): "it has not been looked into yet",
}
"""Why a distribution's major version is not in the matrix, where there is more to say than that."""

# What molecule's scenarios driver_install, driver_upgrade and driver_uninstall run: NVIDIA's repository, open modules, x86_64, with packages that stand for
# NVIDIA's.
_TRIED = {
    ("debian", "12"): (REAL, ("580", "595")), ("debian", "13"): (REAL, ("595",)), ("ubuntu", "24.04"): (STAND_IN, ("595",)),
    ("rocky", "9"): (STAND_IN, ("580", "595")), ("rocky", "10"): (STAND_IN, ("580", "595")), ("sles", "15"): (STAND_IN, ("580", "595")),
}


def _tested_on(distribution: str, version: str, arch: str, source: str, branch: str, flavour: str) -> str:
    where, branches = _TRIED.get((distribution, version), (NOT, ()))
    return where if (arch, source, flavour) == (X86_64, NVIDIA, OPEN) and branch in branches else NOT


def cells() -> Iterator[Cell]:
    """Yield every cell of the matrix, in the order of the rows."""
    for platform in PLATFORMS:
        for distribution in platform.distributions:
            for version in platform.versions:
                for arch in platform.arches:
                    for branch in platform.branches:
                        for flavour in platform.flavours:
                            if flavour in BRANCHES[branch].flavours:
                                yield Cell(distribution, version, arch, platform.source, branch, flavour, platform,
                                           _tested_on(distribution, version, arch, platform.source, branch, flavour))


CELLS = tuple(cells())


def row_version(distribution: str, version_id: str) -> str:
    """Return the version by which the matrix lists a host: the major version where rows go by it (``9`` of ``9.6``), else the version itself."""
    major = version_id.split(".", 1)[0]
    by_major = any(distribution in platform.distributions and platform.by_major for platform in PLATFORMS)
    return major if by_major else version_id


def cells_of_host(distribution: str, version_id: str, arch: str) -> list[Cell]:
    """Return what can be installed on a host."""
    version = row_version(distribution, version_id)
    return [cell for cell in CELLS if (cell.distribution, cell.version, cell.arch) == (distribution, version, arch)]


def find_cell(distribution: str, version_id: str, arch: str, source: str, branch: str, flavour: str) -> Optional[Cell]:
    """Return the cell of this combination, None when it is not listed."""
    return next((cell for cell in cells_of_host(distribution, version_id, arch)
                 if (cell.source, cell.branch, cell.flavour) == (source, branch, flavour)), None)


def nearest_hosts(distribution: str, version_id: str, arch: str) -> list[str]:
    """Return hosts of the matrix that are nearest to one that is not in it: the same distribution, else the same architecture. Sorted as listed."""
    same = [cell for cell in CELLS if cell.distribution == distribution]
    near = [cell for cell in same if cell.arch == arch] or same or [cell for cell in CELLS if cell.arch == arch] or list(CELLS)
    return list(dict.fromkeys(f"{cell.distribution} {cell.version} {cell.arch}" for cell in near))


def nearest_cells(distribution: str, version_id: str, arch: str, source: str, branch: str, flavour: str, most: int = 4) -> list[Cell]:
    """Return up to ``most`` cells of this host that differ least from what was asked: branch first kept, then flavour, then source.

    Branches that have ended, are short-lived or too old for DRA are not proposed.
    """
    def distance(cell: Cell) -> tuple[int, int, int, int]:
        away = abs(int(cell.branch) - int(branch)) if branch.isdigit() else int(cell.branch)
        return (int(cell.branch != branch), away, int(cell.flavour != flavour), int(cell.source != source))

    usable = production_branches()
    return sorted((cell for cell in cells_of_host(distribution, version_id, arch) if cell.branch in usable), key=distance)[:most]
