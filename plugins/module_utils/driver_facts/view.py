# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the package sources offer of a driver, and what an installation would do, before anything of the host is changed.

Each package manager is asked through a private copy of its configuration in a temporary folder, beside the host's own database of installed packages.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..knowledge.addresses import without_credentials
from ..knowledge.driver_branches import is_driver_version
from ..knowledge.driver_packages import has_own_version, headers_package, upstream_version
from ..reasons import FleetError, finding
from .fetch import fetch_key
from .node import Node
from .offers import HOST_SOURCES, Offers, Sources, Transaction, impossible, unsupported
from .versions import deb_key
from .view_apt import AptSources
from .view_dnf import DnfSources
from .view_zypper import ZypperSources

_KINDS: dict[str, type[Sources]] = {"apt": AptSources, "dnf": DnfSources, "zypper": ZypperSources}
_NEAREST = 8  # versions that an error lists


def read_view(node: Node, driver: dict[str, Any], wish: dict[str, Any]) -> dict[str, Any]:
    """Return ``view`` of the driver facts. ``driver`` are the facts without it, ``wish`` the module's option of that name.

    Raises FleetError DriverViewUnsupported, DriverRepositoryUnreachable, DriverKeyMismatch, DriverVersionUnavailable or DriverTransactionImpossible.
    """
    manager, repository = driver["host"]["package_manager"], wish.get("repository")
    if manager not in _KINDS:
        raise unsupported(node, f"only apt, dnf and zypper can be asked, and this host has {manager or 'none of them'}")
    if repository is not None and repository["kind"] != manager:
        raise unsupported(node, f"the repository is for {repository['kind']}, and this host has {manager}")
    with TemporaryDirectory(prefix="gpufleet-dra-") as folder:
        key = fetch_key(node, repository["key_url"], repository["fingerprint"]) if repository else ""
        lifted = (driver.get("record") or {}).get("held") or []
        sources = _KINDS[manager](node, Path(folder), repository, key, wish.get("stream") or None, lifted)
        offers = sources.offers(wish["install"])
        if manager == "zypper":
            offers = with_headers_of_kernels(offers, driver["kernel"])
        return {**_chosen(node, sources, offers, wish), "key": key}


def _chosen(node: Node, sources: Sources, offers: Offers, wish: dict[str, Any]) -> dict[str, Any]:
    names, pins = list(dict.fromkeys(wish["install"])), wish["pins"]
    missing = [name for name in names if not offers.get(name)]
    exact = [name for name in names if name not in missing and is_pinned(name, pins)]
    available = available_versions(offers, exact, wish["branch"])
    version = wish.get("version") or (available[0] if available else "")
    if version not in available:
        raise _unavailable(node, offers, [name for name in names if is_pinned(name, pins)], wish, available)
    specs = {name: full_version(offers, name, version if name in exact else None) for name in names if name not in missing}
    transaction = sources.transaction(specs, version, pins, wish.get("remove") or [])
    _check_versions(node, transaction, version, pins)
    return {"available": available, "version": version, "packages": specs, "missing": missing, "transaction": transaction}


def with_headers_of_kernels(offers: Offers, kernel: Mapping[str, Any]) -> Offers:
    """Return the offers of zypper with only those headers that are of the host's kernel. ``kernel`` is that of the driver facts.

    SUSE's names have no release, and the newest is not of the kernel that is installed. Of several kernels without headers the one that boots next
    counts, then the newest: one version can be asked for at a time.
    """
    lacking = [one["release"] for one in reversed(kernel["installed"]) if not one["headers"]]
    lacking.sort(key=lambda release: release != kernel["next"])
    kept = dict(offers)
    for name in offers:
        releases = [release for release in lacking if headers_package("suse", release) == name]
        if releases:
            # 6.4.0-150600.23.53-default has its headers in kernel-default-devel 6.4.0-150600.23.53.1: the last number counts rebuilds.
            start = "-".join(releases[0].split("-")[:2])
            kept[name] = [offer for offer in offers[name] if offer.full == start or offer.full.startswith(f"{start}.")]
    return kept


def is_pinned(name: str, pins: Sequence[str]) -> bool:
    """Return whether a package must carry the driver's version."""
    return any(fnmatchcase(name, glob) for glob in pins) and not has_own_version(name)


def available_versions(offers: Offers, names: Sequence[str], branch: str) -> list[str]:
    """Return the driver versions of a branch that every one of ``names`` is offered in, newest first."""
    sets = [{upstream_version(offer.full) for offer in offers[name]} for name in names]
    common = set.intersection(*sets) if sets else set()
    return sorted((version for version in common if version.split(".")[0] == branch), key=deb_key(), reverse=True)


def full_version(offers: Offers, name: str, version: str | None) -> str:
    """Return the package version to take: one from the driver's repository before others, then the first, for ``offers`` begin with the newest."""
    fitting = [offer for offer in offers[name] if version is None or upstream_version(offer.full) == version]
    return next((offer.full for offer in fitting if offer.from_repository), fitting[0].full)


def _unavailable(node: Node, offers: Offers, pinned: Sequence[str], wish: dict[str, Any], available: list[str]) -> FleetError:
    """Return the error about a version that is not offered whole, with what is."""
    wanted = wish.get("version") or f"of branch {wish['branch']}"
    per_name = {name: sorted({upstream_version(offer.full) for offer in offers.get(name, [])}, key=deb_key(), reverse=True) for name in pinned}
    if available:
        text = f"of branch {wish['branch']} it offers {', '.join(available[:_NEAREST])}"
    else:
        text = "it offers " + "; ".join(f"{name} in {', '.join(versions[:_NEAREST]) or 'no version'}" for name, versions in per_name.items())
    url = without_credentials((wish.get("repository") or {}).get("url") or HOST_SOURCES)
    details = {"wanted": wanted, "available": available, "by_package": per_name}
    return FleetError(finding("DriverVersionUnavailable", node.name, details, url=url, wanted=wanted, available=text))


def _check_versions(node: Node, transaction: Transaction, version: str, pins: Sequence[str]) -> None:
    """Refuse a transaction that would bring a package of the driver at another version: a dependency can pull it in."""
    strange = [
        f"{package['name']} {package['full']}" for kind in ("install", "upgrade", "downgrade") for package in transaction[kind]
        if is_pinned(package["name"], pins) and upstream_version(package["full"]) != version and is_driver_version(upstream_version(package["full"]))
    ]
    if strange:
        raise impossible(node, version, f"it would also bring {', '.join(strange)}")
