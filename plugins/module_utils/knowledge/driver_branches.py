# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Driver branches: kind, end of life, the kernel module flavours that they have, and versions by which they are known.

Sources: NVIDIA's data-centre driver life-cycle page (620 edition, November 2026), the driver table of GPU Operator 26.7, release notes of the branches.
What a repository offers counts more than ``versions``, which only serves hints. There is no clock here: ``ended`` says how it was in November 2026.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

LTSB = "LTSB"
PB = "PB"
NFB = "NFB"

OPEN = "open"
PROPRIETARY = "proprietary"

FIRST_FOR_DRA = 580
"""The lowest branch that NVIDIA supports with its DRA driver (GPU Operator documentation; the DRA driver's own notes ask for less)."""

LAST_SUFFIXED = 580
"""The last branch that is part of NVIDIA's package names on Ubuntu (nvidia-open-580), and of G06 on SUSE."""

LAST_FOR_VOLTA = 580
"""The last branch that drives Maxwell, Pascal and Volta."""

AS_OF = "November 2026"


@dataclass(frozen=True)
class Branch:
    """A driver branch. ``end_of_life`` is a month (YYYY-MM) or empty where NVIDIA names none; ``versions`` go from old to new."""

    number: int
    kind: str
    end_of_life: str
    ended: bool
    flavours: tuple[str, ...]
    versions: tuple[str, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        """Return the branch as users write it."""
        return str(self.number)


_BOTH = (OPEN, PROPRIETARY)

_BRANCHES = (
    Branch(535, LTSB, "2026-06", True, _BOTH, ("535.309.01",), "below what DRA needs"),
    Branch(550, PB, "", True, _BOTH, ("550.90.07",), "below what DRA needs"),
    Branch(570, PB, "", True, _BOTH, ("570.133.20",), "below what DRA needs"),
    Branch(575, NFB, "", True, _BOTH, ("575.57.08",), "below what DRA needs"),
    Branch(580, LTSB, "2028-06", False, _BOTH, ("580.82.07", "580.173.02", "580.178.04"), "the last one for Maxwell, Pascal and Volta"),
    Branch(590, NFB, "", True, _BOTH, ("590.48.01",), "short-lived; 595 follows it"),
    Branch(595, PB, "2027-03", False, _BOTH, ("595.58.03", "595.91.07"), "default of GPU Operator 26.7"),
    Branch(610, NFB, "2026-08", True, _BOTH, ("610.57.04",), "short-lived; 620 follows it"),
    Branch(615, NFB, "", False, _BOTH, ("615.71.09",), "short-lived, not for production"),
    Branch(620, LTSB, "2029-09", False, (OPEN,), (), "open kernel modules only"),
)
BRANCHES: dict[str, Branch] = {branch.name: branch for branch in _BRANCHES}

VERSION = re.compile(r"\d{3}\.\d{1,3}(\.\d{2})?")


_LIKE_A_VERSION = re.compile(r"\d{3}\.\d+(\.\d+)*")


def is_driver_version(version: str) -> bool:
    """Return whether this may be a driver's version: Debian's nvidia-kernel-common has 20220217, which is none."""
    return _LIKE_A_VERSION.fullmatch(version) is not None


def branch_of(version: str) -> str:
    """Return the branch of a driver version: ``580`` of ``580.173.02``."""
    return version.split(".", 1)[0]


def version_key(version: str) -> tuple[int, ...]:
    """Return what driver versions sort by. Parts that are no numbers count as nothing."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def known_branch(name: str) -> Optional[Branch]:
    """Return the branch of this name, None for one that is not listed."""
    return BRANCHES.get(str(name))


def production_branches() -> list[str]:
    """Return the branches to choose from: neither ended nor short-lived nor below what DRA needs, oldest first."""
    return [branch.name for branch in _BRANCHES if not branch.ended and branch.kind != NFB and branch.number >= FIRST_FOR_DRA]
