# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Traces of drivers from elsewhere: NVIDIA's installer (.run), a driver container, other package sources that offer drivers."""
from __future__ import annotations

import re
from typing import Any, Callable

from ..knowledge.addresses import without_credentials
from .node import Node

# What NVIDIA's installer leaves; some distributions pack files of these names, so the owner counts.
_RUNFILE = ("/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer", "/var/lib/nvidia/log")
# Where the GPU Operator's driver container mounts its root and says that it is there.
_CONTAINER_ROOT = "/run/nvidia/driver"
_CONTAINER = ("/run/nvidia/driver/usr/bin/nvidia-smi", "/run/nvidia/validations/.driver-ctr-ready", "/run/nvidia/nvidia-driver.pid")
_OFFERS_DRIVERS = re.compile(
    r"compute/cuda/repos/|nvidia-driver-local-repo|cuda-repo-|ppa\.launchpad(?:content)?\.net/graphics-drivers|download\.nvidia\.com/(?:suse|opensuse)"
    r"|rpmfusion.*nvidia|negativo17\.org.*nvidia|packages\.microsoft\.com/.*nvidia|nvidia-release", re.IGNORECASE,
)


def read_traces(
    node: Node, library: str | None, owners: Callable[[list[str]], dict[str, str | None]], sources: list[tuple[str, str]], managed: list[str],
) -> dict[str, Any]:
    """Return ``traces`` of the driver facts.

    ``library`` is the NVML library's file on the host itself: one that no package owns was put there by hand or by NVIDIA's installer. ``owners`` tells
    the package of each path, ``sources`` are (file, address) of the package sources, ``managed`` the files that this collection writes.
    """
    suspects = [path for path in (*_RUNFILE, library) if path is not None and node.exists(path)]
    owned = owners(suspects) if suspects else {}
    return {
        "runfile": [path for path in suspects if owned.get(path) is None],
        "container_driver": _container(node),
        "library_package": owned.get(library) if library is not None else None,
        "repositories": [{"path": path, "url": without_credentials(url)} for path, url in sources if path not in managed and _OFFERS_DRIVERS.search(url)],
    }


def _container(node: Node) -> list[str]:
    mounts = {line.split(" ")[1] for line in (node.text("/proc/self/mounts") or "").splitlines() if line.count(" ") > 1}
    return [*([_CONTAINER_ROOT] if _CONTAINER_ROOT in mounts else []), *(path for path in _CONTAINER if node.exists(path))]
