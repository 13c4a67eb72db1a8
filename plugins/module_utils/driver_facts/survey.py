# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The driver facts: all that is known of the NVIDIA driver on one host. Returned by the module driver_info; planned on by driver/.

Lists are sorted, so two readings of the same state are equal. Versions are the driver's own (595.91.07) but for ``full``, which is the package's.
"""
from __future__ import annotations

import json
from typing import Any, Callable

from ..driver.files import RECORD, managed_paths
from ..knowledge.addresses import sealed
from ..knowledge.driver_packages import in_driver_set
from . import packages_deb, packages_rpm
from .host import read_host, read_reboot_hints
from .kernel import read_kernels, read_loaded
from .library import read_library, read_nvml
from .node import Node
from .pci import read_pci
from .secure_boot import read_secure_boot
from .services import read_holders, read_services
from .traces import read_traces


def read_driver(node: Node, driver_root: str = "/", pynvml_path: str | None = None) -> dict[str, Any]:
    """Return the driver facts of this host.

    Raises FleetError DriverCommandFailed when a query of the package manager fails: without it nothing can be said.
    """
    host = read_host(node)
    manager = host["package_manager"]
    loaded = read_loaded(node)
    library = read_library(node, driver_root)
    services, kubelet = read_services(node)
    packages = _packages(node, manager)
    managed = managed_paths(family_of(manager))
    own_library = library if driver_root == "/" else read_library(node, "/")
    return {
        "host": host,
        "kernel": read_kernels(node),
        "secure_boot": read_secure_boot(node),
        "pci": read_pci(node),
        "loaded": loaded,
        "library": library,
        "nvml": read_nvml(node, driver_root, pynvml_path, loaded["module"] is not None),
        **packages,
        "trusted_keys": packages_rpm.trusted_keys(node) if manager != "apt" and node.which("rpm") else [],
        "traces": read_traces(node, own_library["path"] if own_library else None, _owners(node, manager), _sources(node, manager), managed),
        "services": services,
        "holders": read_holders(node),
        "files": {path: None if text is None else sealed(text) for path, text in ((path, node.text(path)) for path in managed)},
        "record": _record(node),
        "reboot_hints": read_reboot_hints(node),
        "cluster_hint": {"kubelet": kubelet},
    }


def family_of(manager: str | None) -> str:
    """Return the package manager whose tables serve for a host with ``manager``: tdnf reads dnf's repositories."""
    return "dnf" if manager == "tdnf" else manager or ""


def _packages(node: Node, manager: str | None) -> dict[str, Any]:
    """Return packages, held, broken_packages and stream."""
    def of_the_driver(name: str) -> bool:
        return in_driver_set(name, family_of(manager))

    if manager == "apt":
        installed, held, broken = packages_deb.read(node, of_the_driver)
        return {"packages": installed, "held": held, "broken_packages": broken, "stream": None}
    if manager is None or not node.which("rpm"):
        return {"packages": [], "held": [], "broken_packages": [], "stream": None}
    installed = packages_rpm.read(node, of_the_driver)
    held = packages_rpm.held(node, manager, installed)
    return {"packages": installed, "held": held, "broken_packages": [], "stream": packages_rpm.read_stream(node)}


def _owners(node: Node, manager: str | None) -> Callable[[list[str]], dict[str, str | None]]:
    """Return who tells the package of a file. Without a package database every file is of none."""
    if manager == "apt":
        return lambda paths: packages_deb.owners(node, paths)
    if manager is not None and node.which("rpm"):
        return lambda paths: packages_rpm.owners(node, paths)
    return dict.fromkeys


def _sources(node: Node, manager: str | None) -> list[tuple[str, str]]:
    return packages_deb.sources(node) if manager == "apt" else packages_rpm.sources(node, manager or "")


def _record(node: Node) -> dict[str, Any] | None:
    """Return what the role wrote down about this host, or None; a file that is no JSON object counts as none."""
    try:
        record = json.loads(node.text(RECORD) or "null")
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
