# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The packages of a driver: names by package layout, branch, flavour and source, and which installed packages belong to a driver.

A *layout* is one way to name the packages: ``ubuntu`` (NVIDIA's, branch in the name up to 580), ``ubuntu-archive`` (Canonical's server drivers),
``debian``, ``el-streams`` (module streams: EL9, Amazon Linux 2023), ``el`` (EL10, no streams), ``suse`` (G06 up to 580, G07 from 590),
``suse-signed`` (SUSE's signed kernel module, NVIDIA's userspace), ``azurelinux``.

Sources: NVIDIA Driver Installation Guide (580 to 620 editions) and the repositories that it names; Canonical's archive; SUSE's notes on signed modules.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Optional

from .driver_branches import LAST_SUFFIXED, OPEN

APT = "apt"
DNF = "dnf"
ZYPPER = "zypper"

NVIDIA = "nvidia"
DISTRIBUTION = "distribution"

MANAGERS = {"ubuntu": APT, "ubuntu-archive": APT, "debian": APT, "el-streams": DNF, "el": DNF, "azurelinux": DNF, "suse": ZYPPER, "suse-signed": ZYPPER}

# What belongs to a driver, as globs that apt, dnf and zypper all understand. They leave out what only bears NVIDIA's name: the container toolkit,
# CUDA, nvidia-fs, the MIG manager.
_DRIVER_SET = {
    APT: (
        "cuda-drivers", "cuda-drivers-[0-9]*", "firmware-nvidia-gsp", "libcuda1", "libcudadebugger1", "libnvcuvid1", "libnvidia-allocator1",
        "libnvidia-cfg1*", "libnvidia-common*", "libnvidia-compute*", "libnvidia-decode*", "libnvidia-encode*", "libnvidia-extra*", "libnvidia-fbc1*",
        "libnvidia-gl", "libnvidia-gl-*", "libnvidia-gpucomp*", "libnvidia-ml1", "libnvidia-nscq*", "libnvidia-nvvm*", "libnvidia-opticalflow1",
        "libnvidia-pkcs11*", "libnvidia-ptxjitcompiler1", "libnvidia-sandboxutils", "libnvsdm*", "linux-modules-nvidia-*", "linux-objects-nvidia-*",
        "linux-signatures-nvidia-*", "nvidia-compute-utils*", "nvidia-dkms*", "nvidia-driver", "nvidia-driver-[0-9]*", "nvidia-driver-bin",
        "nvidia-driver-cuda", "nvidia-driver-full", "nvidia-driver-libs*", "nvidia-driver-open", "nvidia-fabricmanager*", "nvidia-firmware*",
        "nvidia-headless*", "nvidia-imex*", "nvidia-kernel-common*", "nvidia-kernel-dkms", "nvidia-kernel-open*", "nvidia-kernel-source*",
        "nvidia-kernel-support", "nvidia-legacy-check", "nvidia-modprobe", "nvidia-open", "nvidia-open-[0-9]*", "nvidia-opencl-icd*",
        "nvidia-persistenced", "nvidia-settings", "nvidia-smi", "nvidia-utils*", "nvidia-vdpau-driver", "nvidia-xconfig", "xserver-xorg-video-nvidia*",
    ),
    DNF: (
        "cuda-drivers", "cuda-drivers-[0-9]*", "cuda-open", "cuda-open-hwe", "kmod-nvidia*", "libnvidia-cfg", "libnvidia-fbc", "libnvidia-gpucomp",
        "libnvidia-ml", "libnvidia-nscq*", "libnvsdm*", "nvidia-compute*", "nvidia-driver", "nvidia-driver-*", "nvidia-fabric-manager*",
        "nvidia-fabricmanager*", "nvidia-imex*", "nvidia-kmod-common", "nvidia-libXNVCtrl*", "nvidia-modprobe", "nvidia-open", "nvidia-open-[0-9]*",
        "nvidia-open-kmod*", "nvidia-persistenced", "nvidia-settings", "nvidia-xconfig",
    ),
    ZYPPER: (
        "cuda-drivers", "cuda-drivers-[0-9]*", "kernel-firmware-nvidia-gspx-*", "libnvidia-nscq*", "libnvsdm*", "nvidia-common-G0*", "nvidia-compute-G0*",
        "nvidia-compute-utils-G0*", "nvidia-driver-G0*", "nvidia-fabric-manager*", "nvidia-fabricmanager*", "nvidia-gl-G0*", "nvidia-imex*",
        "nvidia-libXNVCtrl*", "nvidia-modprobe", "nvidia-open", "nvidia-open-[0-9]*", "nvidia-open-driver-G0*", "nvidia-persistenced",
        "nvidia-settings", "nvidia-userspace-meta-G0*", "nvidia-video-G0*", "nvidia-xconfig",
    ),
}

# These have a version of their own, or the driver's in their name: never compared, never pinned to the driver's version.
OWN_VERSION = (
    "linux-modules-nvidia-*", "linux-objects-nvidia-*", "linux-signatures-nvidia-*", "nvidia-legacy-check", "nvidia-opencl-icd*", "nvlsm",
    "infiniband-diags", "nvidia-driver-pinning-*", "nvidia-firmware-[0-9]*-[0-9]*",
)

PINNING = "nvidia-driver-pinning-*"
"""NVIDIA's packages with an apt preferences file for a branch or a version."""

_HEADERS = ("linux-headers-*", "kernel-devel*", "kernel[0-9]*-devel*", "kernel-*-devel*")

REPOSITORY_NAME = "gpufleet-nvidia-driver"
"""Name of the repository that the role adds: file stem and repository id."""

_NVLINK5 = ("libnvsdm", "nvlsm", "infiniband-diags")


@dataclass(frozen=True)
class PackageSet:
    """The packages to install for one driver, all by name; what they depend on comes along, at the version that is pinned.

    Those without a version of their own carry the driver's. ``pin`` are NVIDIA's pinning packages for this branch: the role pins by a file of its own,
    with which they get along. ``origin`` is where packages come from, ``module_origin`` where the kernel module does. ``dkms`` says that the kernel
    module is built on the host. ``unwanted`` are globs of what cannot be beside them.
    """

    module: tuple[str, ...]
    userspace: tuple[str, ...]
    fabric_manager: tuple[str, ...]
    imex: tuple[str, ...]
    nvlink5: tuple[str, ...] = _NVLINK5
    pin: tuple[str, ...] = ()
    origin: str = NVIDIA
    module_origin: str = NVIDIA
    dkms: bool = True
    unwanted: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return every name but the pin's, those of switches and IMEX included."""
        return [*self.module, *self.userspace, *self.fabric_manager, *self.nvlink5, *self.imex]


def manager_of(layout: str) -> str:
    """Return apt, dnf or zypper for a layout."""
    return MANAGERS[layout]


def driver_set(manager: str) -> tuple[str, ...]:
    """Return the globs of the package names that make up a driver, pinning packages and nvlsm included; empty for an unknown manager."""
    globs = _DRIVER_SET.get(manager, ())
    return (*globs, "nvlsm", *((PINNING,) if manager == APT else ())) if globs else ()


def pinned_globs(manager: str) -> tuple[str, ...]:
    """Return the globs of :func:`driver_set` whose packages carry the driver's version."""
    return tuple(glob for glob in driver_set(manager) if not has_own_version(glob))


def in_driver_set(name: str, manager: str) -> bool:
    """Return whether the package ``name`` belongs to a driver."""
    return any(fnmatchcase(name, glob) for glob in driver_set(manager))


def has_own_version(name: str) -> bool:
    """Return whether a package of the driver set has a version that is not the driver's."""
    return any(name == glob or fnmatchcase(name, glob) for glob in OWN_VERSION)


def is_headers(name: str) -> bool:
    """Return whether a package holds kernel headers."""
    return any(fnmatchcase(name, glob) for glob in _HEADERS)


_UPSTREAM = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)")


def upstream_version(full: str) -> str:
    """Return the version without epoch and revision: ``595.91.07`` of ``3:595.91.07-1.el9`` and of ``595.91.07_k6.4.0_150600.21-lp1``."""
    found = _UPSTREAM.match(full)
    return found.group(1) if found else full


def package_set(layout: str, branch: str, flavour: str, arch: str, kernel: str = "", version_id: str = "") -> PackageSet:
    """Return the compute packages of a driver: nothing for displays; fabric manager and IMEX are apart, as few hosts want them.

    ``kernel`` (release of the kernel that boots next) and ``version_id`` choose the prebuilt module on Canonical's and SUSE's kernels. Raises KeyError for a
    layout that there is not.
    """
    number = int(branch)
    made = {
        "ubuntu": lambda: _ubuntu(number, flavour), "ubuntu-archive": lambda: _ubuntu_archive(number, flavour, kernel, version_id),
        "debian": lambda: _debian(number, flavour), "el-streams": lambda: _el(flavour), "el": lambda: _el(flavour),
        "suse": lambda: _suse(number, flavour), "suse-signed": lambda: _suse_signed(number, kernel), "azurelinux": _azurelinux,
    }[layout]()
    if arch != "x86_64":  # NVSDM is for x86_64 only
        return replace(made, nvlink5=tuple(name for name in made.nvlink5 if name != "libnvsdm"))
    return made


# From 580 on, the names of what belongs to switches have no branch and are the same everywhere.
_SWITCHES = ("nvidia-fabricmanager", "libnvidia-nscq")
_IMEX = ("nvidia-imex",)


def _ubuntu(number: int, flavour: str) -> PackageSet:
    tail = f"-{number}" if number <= LAST_SUFFIXED else ""
    dkms = f"nvidia-dkms{tail}-open" if flavour == OPEN else f"nvidia-dkms{tail}"
    # Up to 580 nvidia-compute-utils has the persistence daemon in it, from 590 on that is a package of its own.
    daemon = f"nvidia-compute-utils{tail}" if tail else "nvidia-persistenced"
    return PackageSet((dkms,), (f"libnvidia-compute{tail}", f"nvidia-utils{tail}", daemon), _SWITCHES, _IMEX, pin=(f"nvidia-driver-pinning-{number}",))


def _debian(number: int, flavour: str) -> PackageSet:
    module = ("nvidia-kernel-open-dkms",) if flavour == OPEN else ("nvidia-kernel-dkms",)
    userspace = ("nvidia-driver-cuda", "libnvidia-ml1", "libcuda1", "nvidia-persistenced")
    return PackageSet(module, userspace, _SWITCHES, _IMEX, pin=(f"nvidia-driver-pinning-{number}",))


def _ubuntu_archive(number: int, flavour: str, kernel: str, version_id: str) -> PackageSet:
    tail = f"-{number}-server"
    kind = f"{tail}-open" if flavour == OPEN else tail
    return PackageSet(
        (f"linux-modules-nvidia{kind}-{ubuntu_kernel_flavour(kernel, version_id)}",),
        (f"libnvidia-compute{tail}", f"nvidia-utils{tail}", f"nvidia-compute-utils{tail}"),
        (f"nvidia-fabricmanager-{number}", f"libnvidia-nscq-{number}"), (), nvlink5=(), origin=DISTRIBUTION, module_origin=DISTRIBUTION, dkms=False,
    )


# Canonical's OEM kernels by series (Ubuntu kernel documentation, "OEM kernels").
_UBUNTU_OEM = {"22.04": {"5.17": "a", "6.0": "b", "6.1": "c", "6.5": "d"}, "24.04": {"6.8": "a", "6.11": "b", "6.14": "c", "6.17": "d"}}
_UBUNTU_BASE_KERNEL = {"22.04": "5.15", "24.04": "6.8", "26.04": "7.0"}


def ubuntu_kernel_flavour(release: str, version_id: str) -> str:
    """Return the flavour of an Ubuntu kernel as Canonical's module packages name it: ``generic``, ``aws``, ``generic-hwe-24.04`` for a newer kernel.

    ``lowlatency`` goes like ``generic``; OEM kernels are named by release and a letter per series, as ``oem-24.04c``.
    """
    found = re.match(r"(\d+\.\d+)\.\d+-\d+-(.+)", release)
    if not found:
        return "generic"
    series, flavour = found.groups()
    if flavour == "oem":
        return f"oem-{version_id}{_UBUNTU_OEM.get(version_id, {}).get(series, '')}"
    return f"{flavour}-hwe-{version_id}" if flavour.startswith(("generic", "lowlatency")) and series != _UBUNTU_BASE_KERNEL.get(version_id, series) else flavour


def _el(flavour: str) -> PackageSet:
    module = ("kmod-nvidia-open-dkms",) if flavour == OPEN else ("kmod-nvidia-latest-dkms",)
    userspace = ("nvidia-driver-cuda", "nvidia-driver-cuda-libs", "libnvidia-ml", "nvidia-kmod-common", "nvidia-persistenced", "nvidia-modprobe")
    return PackageSet(module, userspace, _SWITCHES, _IMEX)


def _suse(number: int, flavour: str) -> PackageSet:
    generation = suse_generation(number)
    module = f"nvidia-open-driver-{generation}" if flavour == OPEN else f"nvidia-driver-{generation}"
    return PackageSet((module,), _suse_userspace(generation), _SWITCHES, _IMEX, unwanted=_suse_unwanted(generation))


def _suse_signed(number: int, kernel: str) -> PackageSet:
    generation = suse_generation(number)
    kernel_flavour = kernel.rsplit("-", 1)[-1] if re.search(r"-(azure|longterm|64kb)$", kernel) else "default"
    return PackageSet(
        (f"nvidia-open-driver-{generation}-signed-cuda-kmp-{kernel_flavour}",), _suse_userspace(generation), _SWITCHES, _IMEX,
        module_origin=DISTRIBUTION, dkms=False, unwanted=_suse_unwanted(generation),
    )


def _suse_userspace(generation: str) -> tuple[str, ...]:
    return (f"nvidia-compute-{generation}", f"nvidia-compute-utils-{generation}", "nvidia-modprobe", "nvidia-persistenced")


def _suse_unwanted(generation: str) -> tuple[str, ...]:
    # The other generation, and the signed module that goes with the graphics repository instead of CUDA's.
    other = "G07" if generation == "G06" else "G06"
    return (f"nvidia-*-{other}*", f"nvidia-open-driver-{generation}-signed-kmp-*")


def suse_generation(number: int) -> str:
    """Return G06 or G07, which SUSE's package names carry."""
    return "G06" if number <= LAST_SUFFIXED else "G07"


def _azurelinux() -> PackageSet:
    # Microsoft's cuda-open brings module and userspace. Its fabric manager does not go with them, and NVIDIA's own is in a repository that conflicts.
    return PackageSet(("cuda-open",), (), (), (), nvlink5=(), origin=DISTRIBUTION, module_origin=DISTRIBUTION, dkms=False)


def headers_package(layout: str, release: str) -> Optional[str]:
    """Return the package with the headers of the kernel ``release`` (as uname -r has it), None where modules come prebuilt."""
    manager = MANAGERS[layout]
    if layout in ("ubuntu-archive", "suse-signed", "azurelinux"):
        return None
    if manager == APT:
        return f"linux-headers-{release}"
    if manager == ZYPPER:
        flavour = release.rsplit("-", 1)[-1]
        return f"kernel-{flavour if flavour.isalpha() or flavour == '64kb' else 'default'}-devel"
    series = re.match(r"(6\.\d+)\.\d+-.*amzn2023", release)
    kernel = f"kernel{series.group(1)}" if series and series.group(1) != "6.1" else "kernel-uek" if "uek." in release else "kernel"
    # Variants of Red Hat's kernel stand behind a plus sign: 5.14.0-611.el9.aarch64+64k has its headers in kernel-64k-devel-5.14.0-611.el9.aarch64.
    plain, _plus, variant = release.partition("+")
    return f"{kernel}-{variant}-devel-{plain}" if variant else f"{kernel}-devel-{plain}"
