#!/usr/bin/env python3
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write docs/driver-support.md from the tables of drivers; with --check, fail when the file is not what the tables say."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".build" / "collections"))

from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_branches import AS_OF, BRANCHES, FIRST_FOR_DRA, NFB, OPEN
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_gpus import GPU_KINDS, NVSWITCHES
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_matrix import CELLS, PLATFORMS, REAL, STAND_IN, UNSUPPORTED, Cell, Platform
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.driver_packages import package_set
from generated import write_or_check

PAGE = ROOT / "docs" / "driver-support.md"
HEAD = """# Drivers: what can be installed where

The support matrix of role `nvidia_driver`: a combination that is not here is refused, with the nearest that are. This page is generated from
`plugins/module_utils/knowledge/driver_*.py` by `scripts/driver_matrix.py`; what NVIDIA and the distributions publish was read in {as_of}.
"""
TESTED = f"""
What the column *tried on* means. In no case were NVIDIA's own packages or a GPU there: the packages were small ones with NVIDIA's names, versions and
dependencies, which bring an emulated driver.

- `{REAL}`: on this distribution itself, with its own package manager.
- `{STAND_IN}`: on Debian with that distribution's name and package manager. It shows that the role's logic goes with dnf, zypper or Ubuntu's names; it is no
  proof for the distribution itself (SELinux, subscriptions, real package scripts).
- empty: never run.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def branches() -> str:
    """Return the table of branches, oldest first; those below what DRA needs are only named."""
    rows = []
    for branch in BRANCHES.values():
        if branch.number < FIRST_FOR_DRA:
            continue
        end = branch.end_of_life or ("no date given" if not branch.ended else f"before {AS_OF}")
        state = "ended" if branch.ended else "short-lived" if branch.kind == NFB else "production"
        rows.append((branch.name, branch.kind, end, state, ", ".join(branch.flavours), ", ".join(branch.versions), branch.note))
    old = ", ".join(branch.name for branch in BRANCHES.values() if branch.number < FIRST_FOR_DRA)
    return (
        table(("branch", "kind", "end of life", "state", "kernel modules", "versions seen", "note"), rows)
        + f"\nEnded branches ask for `nvidia_driver_allow_ended_branch: true`. Branches below {FIRST_FOR_DRA} ({old}) are refused: NVIDIA supports its\n"
        f"DRA driver from {FIRST_FOR_DRA} on.\n"
    )


def hosts() -> str:
    """Return one row per distribution, version and source."""
    rows = []
    for platform in PLATFORMS:
        for distribution in platform.distributions:
            for version in platform.versions:
                rows.append((f"{distribution} {version}", ", ".join(platform.arches), platform.source, _directory(platform), ", ".join(platform.branches),
                             ", ".join(platform.flavours), "yes" if platform.signed else "no", _tried(platform, distribution, version), platform.note))
    head = ("host", "architecture", "source", "repository", "branches", "kernel modules", "signed for Secure Boot", "tried on", "note")
    return table(head, rows)


def _directory(platform: Platform) -> str:
    return f"`{platform.directory}`" if platform.directory else "the distribution's"


def _tried(platform: Platform, distribution: str, version: str) -> str:
    cells = [cell for cell in CELLS if cell.platform is platform and (cell.distribution, cell.version) == (distribution, version)]
    tried: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.tested_on in (REAL, STAND_IN):
            tried.setdefault(cell.tested_on, []).append(cell)
    return "; ".join(f"`{how}`: {', '.join(f'{cell.branch} {cell.flavour}' for cell in those)}, {those[0].arch}" for how, those in tried.items())


def packages() -> str:
    """Return the names of the packages by layout, for a branch of each generation."""
    rows = []
    for layout in dict.fromkeys(platform.layout for platform in PLATFORMS):
        for branch in ("580", "595"):
            made = package_set(layout, branch, OPEN, "x86_64")
            parts = (made.module, made.userspace, made.fabric_manager, made.nvlink5, made.imex, made.pin)
            rows.append((layout, branch, *(", ".join(f"`{name}`" for name in names) for names in parts)))
    head = ("names of", "branch", "kernel module (open)", "userspace", "with NVSwitches", "of NVLink 5 also", "with NVLink through a rack", "NVIDIA's pin")
    return table(head, rows)


def gpus() -> str:
    """Return one row per kind of GPU."""
    rows = [(kind.product, kind.architecture, " ".join(kind.device_ids), kind.first or "any here", str(kind.last_branch or ""), kind.flavour)
            for kind in GPU_KINDS]
    return table(("GPU", "architecture", "PCI device ids", "first driver", "last branch", "kernel modules"), rows)


def unsupported() -> str:
    """Return why some hosts are not in the matrix."""
    return table(("host", "why not"), ((f"{distribution} {major}", why) for (distribution, major), why in UNSUPPORTED.items()))


SOURCES = """
The source `nvidia` is NVIDIA's network repository or a mirror of it (`nvidia_driver_mirror_url`). The column *repository* names its folder there; for
aarch64 the subfolder is `sbsa`.
"""
PACKAGES = """
For computing only, without what displays need. All carry the driver's version, save `nvlsm` and Canonical's module packages. The role pins that version
by a file of its own before it installs anything; NVIDIA's pinning packages, in the last column, get along with it and are not needed.

"""


def page() -> str:
    """Return the whole page."""
    switches = ", ".join(f"{device} ({boards})" for device, boards in NVSWITCHES.items())
    return "".join([
        HEAD.format(as_of=AS_OF), "\n## Branches\n\n", branches(), "\n## Hosts\n\n", hosts(), SOURCES, TESTED,
        "\n## Hosts that are not supported\n\n", unsupported(), "\n## Packages\n", PACKAGES, packages(),
        "\n## GPUs\n\nA GPU that is not listed is a warning, and nothing is refused for it.\n\n", gpus(),
        f"\nPCI device ids of NVSwitches: {switches}. On B200 and B300 they show as InfiniBand devices instead, and `nvlsm` goes with them.\n",
    ])


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, {PAGE: page()}))
