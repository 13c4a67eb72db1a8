# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stub packages of NVIDIA's repositories, of each system and driver version: names of both generations, as NVIDIA's installation guide has them.

Display packages are left out. Up to branch 580 Ubuntu's names end in the branch and SUSE's generation is G06; from 590 on there are neither on Ubuntu,
and it is G07. EL9 has a module stream per branch and flavour. 620 has the open kernel modules only.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from .stub import Relation, Stub, any_version, at_least

#: Two of the branch 580, so that there is something newer within a branch.
VERSIONS = ("580.173.02", "580.178.04", "595.91.07", "620.20.01")
#: The NVLink subnet manager has a version of its own.
NVLSM_VERSION = "2025.10.9"
LAST_SUFFIXED = 580
LAST_PROPRIETARY = 615

#: System (sandbox/spec.py) -> folder of NVIDIA's repository, and the name of the key's file in it.
FOLDERS = {
    "debian12": ("debian12", "3bf863cc.pub"), "debian13": ("debian13", "8793F200.pub"), "ubuntu2404": ("ubuntu2404", "3bf863cc.pub"),
    "el9": ("rhel9", "D42D0685.pub"), "el10": ("rhel10", "CDF6BA43.pub"), "sles15": ("sles15", "D42D0685.pub"),
}
_RPM_EPOCH = 3


def branch(version: str) -> int:
    """Return the branch of a driver version."""
    return int(version.split(".", 1)[0])


def nvidia_packages(system: str, version: str) -> list[Stub]:
    """Return what NVIDIA's repository for ``system`` has of one driver version."""
    make: Callable[[str, str], list[Stub]] = {
        "debian12": _debian, "debian13": _debian, "ubuntu2404": _ubuntu, "el9": _el, "el10": _el, "sles15": _suse,
    }[system]
    return make(system, version)


def _flavours(version: str) -> tuple[str, ...]:
    return ("open", "proprietary") if branch(version) <= LAST_PROPRIETARY else ("open",)


class _Rivals(TypedDict):
    conflicts: tuple[str, ...]
    provides: tuple[str, ...]


class _Maker:
    """Makes stubs that share a version."""

    def __init__(self, version: str, release: str, epoch: int = 0) -> None:
        self.version, self.release, self.epoch = version, release, epoch

    def __call__(
        self, name: str, *parts: str, depends: tuple[Relation, ...] = (), conflicts: tuple[str, ...] = (), provides: tuple[str, ...] = (),
        all_architectures: bool = False, epoch: int | None = None, release: str = "", streams: tuple[str, ...] = (),
    ) -> Stub:
        return Stub(
            name, self.version, self.version, release or self.release, parts, depends, conflicts, provides,
            self.epoch if epoch is None else epoch, all_architectures, streams,
        )


def _with_switches(make: _Maker, epoch: int = 0, release: str = "", streams: tuple[str, ...] = ()) -> list[Stub]:
    """What goes with NVSwitches and multi-node NVLink: from 580 on these names have no branch anywhere, and on EL neither epoch nor distribution."""
    rows = (("nvidia-fabricmanager", "fabricmanager"), ("libnvidia-nscq", "nscq"), ("libnvsdm", "nvsdm"), ("nvidia-imex", "imex"))
    subnet_manager = Stub("nvlsm", make.version, NVLSM_VERSION, "1", streams=streams)
    return [*(make(name, part, epoch=epoch, release=release, streams=streams) for name, part in rows), subnet_manager]


def _pins(make: _Maker) -> list[Stub]:
    """The packages that bring an apt preferences file; one at a time can be there."""
    names = (f"nvidia-driver-pinning-{branch(make.version)}", f"nvidia-driver-pinning-{make.version}")
    parts = ("pin-branch", "pin-version")
    common = ("nvidia-driver-pinning",)
    return [make(name, part, all_architectures=True, conflicts=common, provides=common) for name, part in zip(names, parts, strict=True)]


def _debian(_system: str, version: str) -> list[Stub]:
    make = _Maker(version, "1")
    stubs = [
        make("firmware-nvidia-gsp", "firmware"),
        make("nvidia-modprobe", "modprobe"),
        make("nvidia-kernel-support", depends=at_least("nvidia-modprobe")),
        make("libnvidia-ml1", "library"),
        make("libcuda1", "cuda"),
        make("nvidia-persistenced", "persistenced", depends=at_least("libnvidia-ml1")),
        make("nvidia-driver-cuda", "smi", depends=at_least("libnvidia-ml1", "libcuda1", "nvidia-persistenced"), conflicts=("nvidia-smi",),
             provides=("nvidia-smi",)),
        make("nvidia-driver", depends=at_least("nvidia-driver-cuda")),
        *_with_switches(make), *_pins(make),
    ]
    for flavour in _flavours(version):
        name, other = "nvidia-kernel-open-dkms", "nvidia-kernel-dkms"
        meta = "nvidia-open"
        if flavour == "proprietary":
            name, other, meta = other, name, "cuda-drivers"
        needs = (*any_version("dkms"), *at_least("firmware-nvidia-gsp", "nvidia-kernel-support"))
        stubs.append(make(name, f"module-{flavour}", depends=needs, conflicts=(other,)))
        stubs.append(make(meta, depends=at_least("nvidia-driver", name)))
    return stubs


def _ubuntu(_system: str, version: str) -> list[Stub]:
    make = _Maker(version, "1ubuntu1")
    tail = f"-{branch(version)}" if branch(version) <= LAST_SUFFIXED else ""

    def only_one(name: str) -> _Rivals:
        """Packages of two branches have the same files: each pushes the other out."""
        return {"conflicts": (name,), "provides": (name,)} if tail else {"conflicts": (f"{name}-{LAST_SUFFIXED}",), "provides": ()}

    compute, utils, common = f"libnvidia-compute{tail}", f"nvidia-utils{tail}", f"nvidia-kernel-common{tail}"
    firmware = f"nvidia-firmware{tail}-{version}" if tail else "nvidia-firmware"
    daemon = f"nvidia-compute-utils{tail}" if tail else "nvidia-persistenced"
    stubs = [
        make(firmware, "firmware"),  # in a folder by version: several can be there
        make(common, "modprobe", depends=at_least(firmware), **only_one("nvidia-kernel-common")),
        make(compute, "library", "cuda", **only_one("libnvidia-compute")),
        make(utils, "smi", depends=at_least(compute), **only_one("nvidia-utils")),
        make(daemon, "persistenced", depends=at_least(compute), **only_one("nvidia-compute-utils")),
        *_with_switches(make), *_pins(make),
    ]
    for flavour in _flavours(version):
        end = f"{tail}-open" if flavour == "open" else tail
        source, dkms = f"nvidia-kernel-source{end}", f"nvidia-dkms{end}"
        driver, meta = f"nvidia-driver{end}", (f"nvidia-open{tail}" if flavour == "open" else f"cuda-drivers{tail}")
        stubs += [
            make(source, f"module-source-{flavour}", **only_one("nvidia-kernel-source")),
            make(dkms, f"module-build-{flavour}", depends=(*any_version("dkms"), *at_least(source, common)), **only_one("nvidia-dkms")),
            make(f"nvidia-headless{end}", depends=at_least(dkms, compute, daemon)),
            make(driver, depends=at_least(dkms, compute, utils, daemon)),
            make(meta, depends=at_least(driver)),
        ]
        if not tail:  # the flavours push each other out by name
            other = "" if flavour == "open" else "-open"
            stubs[-5:-3] = [
                make(source, f"module-source-{flavour}", conflicts=(f"nvidia-kernel-source{other}", f"nvidia-kernel-source-{LAST_SUFFIXED}",
                                                                  f"nvidia-kernel-source-{LAST_SUFFIXED}-open")),
                make(dkms, f"module-build-{flavour}", depends=(*any_version("dkms"), *at_least(source, common)),
                     conflicts=(f"nvidia-dkms{other}", f"nvidia-dkms-{LAST_SUFFIXED}", f"nvidia-dkms-{LAST_SUFFIXED}-open")),
            ]
    return stubs


def _el(system: str, version: str) -> list[Stub]:
    number = branch(version)
    make = _Maker(version, f"1.{system}", _RPM_EPOCH)
    all_streams = tuple(f"{number}-{'open' if flavour == 'open' else 'dkms'}" for flavour in _flavours(version)) if system == "el9" else ()
    stubs = [
        make("nvidia-modprobe", "modprobe", streams=all_streams),
        make("nvidia-kmod-common", "firmware", depends=at_least("nvidia-modprobe"), streams=all_streams, all_architectures=True),
        make("libnvidia-ml", "library", streams=all_streams),
        make("nvidia-persistenced", "persistenced", depends=at_least("libnvidia-ml"), streams=all_streams),
        make("nvidia-driver-cuda-libs", "cuda", depends=at_least("libnvidia-ml"), streams=all_streams),
        make("nvidia-driver-cuda", "smi", depends=at_least("nvidia-driver-cuda-libs", "nvidia-persistenced"), streams=all_streams),
        make("nvidia-driver", depends=at_least("nvidia-driver-cuda", "nvidia-kmod-common"), streams=all_streams),
        *_with_switches(make, epoch=0, release="1", streams=all_streams),
    ]
    for flavour in _flavours(version):
        name, other, meta = "kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms", "nvidia-open"
        if flavour == "proprietary":
            name, other, meta = other, name, "cuda-drivers"
        stream = (f"{number}-{'open' if flavour == 'open' else 'dkms'}",) if system == "el9" else ()
        needs = (*any_version("dkms"), *at_least("nvidia-kmod-common"))
        stubs.append(make(name, f"module-{flavour}", depends=needs, conflicts=(other,), streams=stream))
        stubs.append(make(meta, depends=at_least("nvidia-driver", name), streams=stream, all_architectures=True))
    return stubs


def suse_generation(version: str) -> str:
    """Return G06 or G07."""
    return "G06" if branch(version) <= LAST_SUFFIXED else "G07"


def _suse(_system: str, version: str) -> list[Stub]:
    make = _Maker(version, "1")
    mine = suse_generation(version)
    other = "G07" if mine == "G06" else "G06"
    compute, utils = f"nvidia-compute-{mine}", f"nvidia-compute-utils-{mine}"
    stubs = [
        make("nvidia-modprobe", "modprobe"),
        make("nvidia-persistenced", "persistenced"),
        make(f"nvidia-common-{mine}", "firmware", depends=at_least("nvidia-modprobe"), conflicts=(f"nvidia-common-{other}",)),
        make(compute, "library", "cuda", depends=at_least(f"nvidia-common-{mine}"), conflicts=(f"nvidia-compute-{other}",)),
        make(utils, "smi", depends=at_least(compute, "nvidia-persistenced"), conflicts=(f"nvidia-compute-utils-{other}",)),
        *_with_switches(make),
    ]
    for flavour in _flavours(version):
        name = f"nvidia-open-driver-{mine}" if flavour == "open" else f"nvidia-driver-{mine}"
        rivals = {f"nvidia-open-driver-{mine}", f"nvidia-driver-{mine}", f"nvidia-open-driver-{other}", f"nvidia-driver-{other}",
                  f"nvidia-open-driver-{mine}-signed-cuda-kmp-default"} - {name}
        needs = (*any_version("dkms"), *at_least(f"nvidia-common-{mine}"))
        stubs.append(make(name, f"module-{flavour}", depends=needs, conflicts=tuple(sorted(rivals))))
        meta = "nvidia-open" if flavour == "open" else "cuda-drivers"
        stubs.append(make(meta, depends=at_least(utils, name)))
    return stubs
