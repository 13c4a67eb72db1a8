# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Everything of the sandbox that is fetched or built once and then lies in the cache."""
from __future__ import annotations

from .errors import ArtifactError
from .host import check_machine, check_requirements, install_host_packages, missing_host_packages
from .images import image_references, images
from .lookup import ensure
from .nodelayer import node_layer
from .progress import QUIET, Progress
from .rootfs import rootfs
from .settings import Settings, cache_folder
from .systems import package_tools, system_root

__all__ = [
    "QUIET",
    "ArtifactError",
    "Progress",
    "Settings",
    "cache_folder",
    "check_machine",
    "check_requirements",
    "ensure",
    "image_references",
    "images",
    "install_host_packages",
    "missing_host_packages",
    "node_layer",
    "package_tools",
    "rootfs",
    "system_root",
]
