# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the role remembers about its installation on the host: the way back to the version before, and to the host without a driver.

The record is written before the first change of a run, so that it also tells of a run that was cut off. What it says of the host as it was found is
written once, by the first run, and kept by all later ones.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Optional

from ..knowledge.driver_branches import branch_of
from ..reasons import FleetError, finding

FORMAT = 1


@dataclass(frozen=True)
class Release:
    """One driver: branch, exact version and flavour of the kernel module."""

    branch: str
    version: str
    flavour: str


@dataclass(frozen=True)
class Record:
    """``release`` is what the host has or is to get, ``previous`` what it had before that, ``rolled_back`` whether a rollback led to ``release``.

    ``installed`` are the packages that were not there before the role came, ``replaced`` the text of every file of the role as it was found (None: there
    was none), ``held`` the packages whose hold is ours, ``masked`` the units that we masked, ``trusted_key`` the rpm key that was added (empty: none),
    ``unavailable`` names that no source had for ``release``, so that they are not looked for anew.
    """

    release: Release
    previous: Optional[Release] = None
    rolled_back: bool = False
    installed: tuple[str, ...] = ()
    replaced: dict[str, Optional[str]] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    trusted_key: str = ""
    unavailable: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as it is kept on the host."""
        plain = asdict(self)
        release = plain.pop("release")
        lists = {name: sorted(plain[name]) for name in ("installed", "held", "masked", "unavailable")}
        return {"format": FORMAT, **release, **plain, **lists}

    def moved_to(self, release: Release, rolled_back: bool) -> Record:
        """Return the record for the way to another release; on the same release, also of a run that was cut off, nothing changes."""
        if release == self.release:
            return self
        return replace(self, release=release, previous=self.release, rolled_back=rolled_back)

    def with_found(self, files: Mapping[str, Optional[str]], installed: Iterable[str]) -> Record:
        """Return the record with more files and packages; what it already says of a file stays."""
        return replace(self, replaced={**files, **self.replaced}, installed=tuple(sorted({*self.installed, *installed})))


def read_record(raw: Optional[Mapping[str, Any]], subject: str) -> Optional[Record]:
    """Return the record of the facts, None when the role never installed here. Raises FleetError DriverRecordUnreadable."""
    if not raw:
        return None
    try:
        if raw["format"] != FORMAT:
            raise ValueError(f"format {raw['format']}")
        previous = raw["previous"] and Release(**{name: str(raw["previous"][name]) for name in ("branch", "version", "flavour")})
        return Record(
            release=Release(str(raw["branch"]), str(raw["version"]), str(raw["flavour"])),
            previous=previous or None,
            rolled_back=bool(raw["rolled_back"]),
            installed=tuple(map(str, raw["installed"])),
            replaced={str(path): None if text is None else str(text) for path, text in raw["replaced"].items()},
            held=tuple(map(str, raw["held"])),
            masked=tuple(map(str, raw["masked"])),
            trusted_key=str(raw["trusted_key"]),
            unavailable=tuple(map(str, raw["unavailable"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FleetError(finding("DriverRecordUnreadable", subject, why=f"{type(error).__name__}: {error}")) from None


def first_record(release: Release, found_version: str, found_flavour: str) -> Record:
    """Return the record of a first run; a driver of the same origin that was there already is what a rollback leads to."""
    previous = Release(branch_of(found_version), found_version, found_flavour) if found_version and found_version != release.version else None
    return Record(release, previous)
