# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stub packages that are not NVIDIA's: what a distribution itself has beside a driver, and drivers of other origins."""
from __future__ import annotations

import platform
from dataclasses import replace

from .stub import DEBIAN, ROCKY, SUSE, UBUNTU, Stub, any_version, at_least
from .table import suse_generation

#: Driver versions that distributions' own driver packages have here; they lag behind NVIDIA's.
DISTRIBUTION_VERSIONS = ("580.173.02", "595.91.07")
#: A kernel that is newer than any that runs.
NEXT_KERNEL = "99.1.0-1-amd64"
_APT_SYSTEMS = ("debian12", "debian13", "ubuntu2404")
_MAKERS = {"debian12": DEBIAN, "debian13": DEBIAN, "ubuntu2404": UBUNTU, "el9": ROCKY, "el10": ROCKY, "sles15": SUSE}


def distribution(system: str) -> list[Stub]:
    """Return what the distribution's repository of a system has that drivers need: dkms, kernel headers, and on SUSE its signed kernel module."""
    return [replace(stub, maker=_MAKERS[system]) for stub in _distribution(system)]


def _distribution(system: str) -> list[Stub]:
    if system in _APT_SYSTEMS:
        headers = Stub(f"linux-headers-{platform.release()}", "", "1", "1", ("headers",))
        return [_dkms(), headers, _other(f"linux-headers-{NEXT_KERNEL}"), _other("infiniband-diags")]
    running = platform.release()
    if system == "sles15":
        version, _dash, release = "-".join(running.split("-")[:2]).partition("-")
        devel = Stub("kernel-default-devel", "", version, f"{release or 1}.1", ("headers",))
        return [_dkms(), devel, _other("infiniband-diags"), *(_signed_suse(version) for version in DISTRIBUTION_VERSIONS)]
    devel = Stub("kernel-devel", "", "6.12.0", "1", ("headers",), provides=(f"kernel-devel-{running}",))
    return [_dkms(), devel, _other("kernel-devel-matched"), _other("kernel-headers"), _other("infiniband-diags")]


def other_drivers(system: str) -> list[Stub]:
    """Return driver packages that are not NVIDIA's: Canonical's server drivers, Debian's, those of RPM Fusion, and of SUSE's graphics repository."""
    maker = "Stubs of RPM Fusion" if system.startswith("el") else _MAKERS[system]
    return [replace(stub, maker=maker) for stub in _other_drivers(system)]


def _other_drivers(system: str) -> list[Stub]:
    if system == "ubuntu2404":
        return [stub for version in DISTRIBUTION_VERSIONS for stub in _canonical(version)]
    if system in _APT_SYSTEMS:
        version = "535.216.03" if system == "debian12" else "550.163.01"
        return [Stub("libnvidia-ml1", "580.173.02", version, "1~deb"), Stub("nvidia-smi", "580.173.02", version, "1~deb", depends=any_version("libnvidia-ml1"))]
    if system == "sles15":
        return [Stub("nvidia-compute-G06", "580.173.02", "580.173.02", "2", ("library", "cuda"), conflicts=("nvidia-compute-G07",)),
                Stub("nvidia-compute-utils-G06", "580.173.02", "580.173.02", "2", ("smi",), depends=any_version("nvidia-compute-G06"))]
    return [Stub("xorg-x11-drv-nvidia-cuda-libs", "580.173.02", "580.173.02", "1", ("library", "cuda"), epoch=3),
            Stub("xorg-x11-drv-nvidia-cuda", "580.173.02", "580.173.02", "1", ("smi",), depends=any_version("xorg-x11-drv-nvidia-cuda-libs"), epoch=3),
            Stub("nvidia-persistenced", "580.173.02", "580.173.02", "2.rpmfusion", ("persistenced",), epoch=3)]


def _dkms() -> Stub:
    return Stub("dkms", "", "3.2.2", "1", ("dkms",), all_architectures=True)


def _other(name: str) -> Stub:
    return Stub(name, "", "1", "1")


def _signed_suse(version: str) -> Stub:
    mine = suse_generation(version)
    other = "G07" if mine == "G06" else "G06"
    rivals = (f"nvidia-open-driver-{mine}", f"nvidia-driver-{mine}", f"nvidia-open-driver-{other}-signed-cuda-kmp-default")
    name = f"nvidia-open-driver-{mine}-signed-cuda-kmp-default"
    return Stub(name, version, f"{version}_k6.4.0_150600.21", "150600.3.1", ("prebuilt",), conflicts=rivals)


def _canonical(version: str) -> list[Stub]:
    number = version.split(".", 1)[0]
    release = "0ubuntu0.24.04.1"

    def make(name: str, *parts: str, needs: tuple[str, ...] = ()) -> Stub:
        virtual = name.replace(f"-{number}", "")
        return Stub(name, version, version, release, parts, at_least(*needs), (virtual,), (virtual,))

    server, opened = f"{number}-server", f"{number}-server-open"
    compute, common, utils = f"libnvidia-compute-{server}", f"nvidia-kernel-common-{server}", f"nvidia-compute-utils-{server}"
    modules = f"linux-modules-nvidia-{opened}-generic"
    return [
        make(compute, "library", "cuda"), make(common, "firmware", "modprobe"), make(utils, "persistenced", needs=(compute,)),
        make(f"nvidia-utils-{server}", "smi", needs=(compute,)),
        make(modules, "prebuilt", needs=(common,)),
        make(f"nvidia-headless-no-dkms-{opened}", needs=(compute, utils)),
        make(f"nvidia-fabricmanager-{number}", "fabricmanager"), make(f"libnvidia-nscq-{number}", "nscq"),
    ]
