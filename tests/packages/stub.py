# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a stub package is, before it becomes a .deb or an .rpm."""
from __future__ import annotations

from dataclasses import dataclass, field

#: Who made a package, as its maintainer or vendor says: by that the origins of drivers are told apart.
NVIDIA = "Stubs of NVIDIA Corporation <stubs@example.org>"
DEBIAN = "Stubs of Debian <stubs@example.debian.org>"
UBUNTU = "Stubs of Ubuntu <stubs@example.ubuntu.com>"
ROCKY = "Stubs of Rocky Enterprise Software Foundation"
SUSE = "Stubs of SUSE LLC"


@dataclass(frozen=True)
class Relation:
    """A dependency: ``operator`` is empty, ``>=`` or ``=``; the version is then that of the package which has the dependency."""

    name: str
    operator: str = ""


def at_least(*names: str) -> tuple[Relation, ...]:
    """Return dependencies as NVIDIA's packages have them: on this version or any newer one, so that what is not pinned drifts."""
    return tuple(Relation(name, ">=") for name in names)


def any_version(*names: str) -> tuple[Relation, ...]:
    """Return dependencies on packages with versions of their own."""
    return tuple(Relation(name) for name in names)


@dataclass(frozen=True)
class Stub:
    """One package. ``driver``: the driver's version, of which ``parts`` (contents.PARTS) are in it. ``version`` without epoch and release."""

    name: str
    driver: str
    version: str
    release: str
    parts: tuple[str, ...] = ()
    depends: tuple[Relation, ...] = ()
    conflicts: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    epoch: int = 0
    all_architectures: bool = False
    streams: tuple[str, ...] = field(default=())
    maker: str = NVIDIA

    @property
    def full_version(self) -> str:
        """Version with release, and with the epoch if there is one."""
        return f"{self.epoch}:{self.version}-{self.release}" if self.epoch else f"{self.version}-{self.release}"
