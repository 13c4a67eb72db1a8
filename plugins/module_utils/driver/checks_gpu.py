# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the host's GPUs ask of a driver, against the one that was chosen."""
from __future__ import annotations

from collections.abc import Iterator

from ..knowledge.driver_branches import LAST_FOR_VOLTA, OPEN, PROPRIETARY, branch_of, production_branches, version_key
from ..knowledge.driver_gpus import OPEN_REQUIRED, PROPRIETARY_REQUIRED, GpuKind, gpu_kind
from ..reasons import Finding, finding
from . import facts as read
from .facts import Facts
from .options import Options
from .selection import Selection, target_version


def gpu_findings(facts: Facts, options: Options, selection: Selection) -> list[Finding]:
    """Return DriverTooOldForGpu, DriverTooNewForGpu and DriverFlavourUnfit, once per product, and a warning DriverGpuUnknown per unknown GPU."""
    found: list[Finding] = []
    seen: set[str] = set()
    for gpu in read.pci(facts, "gpus"):
        kind, address = gpu_kind(str(gpu.get("device", ""))), str(gpu.get("address", "?"))
        if kind is None:
            driver = target_version(facts, selection) or selection.branch
            found.append(finding("DriverGpuUnknown", options.subject, {"gpu": gpu}, address=address, device=str(gpu.get("device", "?")), driver=driver))
        elif kind.product not in seen:
            seen.add(kind.product)
            found += [*too_old(facts, options, selection, kind, address), *too_new(options, selection, kind, address)]
    return [*found, *flavour(facts, options, selection)]


def too_old(facts: Facts, options: Options, selection: Selection, kind: GpuKind, address: str) -> Iterator[Finding]:
    """DriverTooOldForGpu: by version where it is known, else by branch, whose newest version is taken."""
    if not kind.first:
        return
    version = target_version(facts, selection)
    old = version_key(version) < version_key(kind.first) if version else int(selection.branch) < int(branch_of(kind.first))
    if old:
        choices = [branch for branch in production_branches() if int(branch) >= int(branch_of(kind.first))]
        yield finding("DriverTooOldForGpu", options.subject, {"product": kind.product, "expected": kind.first, "found": version or selection.branch},
                      driver=version or selection.branch, product=kind.product, address=address, first=kind.first, choices=" or ".join(choices))


def too_new(options: Options, selection: Selection, kind: GpuKind, address: str) -> Iterator[Finding]:
    """DriverTooNewForGpu: branches after 580 no longer drive Maxwell, Pascal and Volta."""
    if kind.last_branch is not None and int(selection.branch) > kind.last_branch:
        yield finding("DriverTooNewForGpu", options.subject, {"product": kind.product, "expected": kind.last_branch, "found": selection.branch},
                      branch=selection.branch, product=kind.product, address=address, last=str(kind.last_branch))


def flavour(facts: Facts, options: Options, selection: Selection) -> Iterator[Finding]:
    """DriverFlavourUnfit: by what the GPUs require, also when they require both, which no driver can give."""
    kinds = [kind for kind in map(gpu_kind, read.gpu_ids(facts)) if kind]
    needs_open = sorted({kind.product for kind in kinds if kind.flavour == OPEN_REQUIRED})
    needs_proprietary = sorted({kind.product for kind in kinds if kind.flavour == PROPRIETARY_REQUIRED})
    details = {"open": needs_open, "proprietary": needs_proprietary, "found": selection.flavour}
    if needs_open and needs_proprietary:
        yield finding("DriverFlavourUnfit", options.subject, details, flavour=selection.flavour, choices="GPUs of one kind in one host",
                      why=f"{', '.join(needs_open)} need open ones and {', '.join(needs_proprietary)} proprietary ones")
    elif needs_open and selection.flavour != OPEN:
        yield finding("DriverFlavourUnfit", options.subject, details, flavour=selection.flavour, why=f"{', '.join(needs_open)} need open ones",
                      choices=f"{OPEN}, branch {selection.branch}")
    elif needs_proprietary and selection.flavour != PROPRIETARY:
        yield finding("DriverFlavourUnfit", options.subject, details, flavour=selection.flavour, why=f"{', '.join(needs_proprietary)} need proprietary ones",
                      choices=f"{PROPRIETARY}, branch {LAST_FOR_VOLTA}")
