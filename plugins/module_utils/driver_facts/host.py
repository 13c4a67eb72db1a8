# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the host is: distribution, architecture, package manager, and whether its system is an image that packages must not change."""
from __future__ import annotations

import platform
import shlex
from typing import Any

from .node import Node

# By family, for a host may have another family's tools beside its own (dnf on Debian, to build images); the first that is there counts.
_DEBIAN = (("apt-get", "apt"),)
_RPM = (("zypper", "zypper"), ("dnf", "dnf"), ("tdnf", "tdnf"))
# The mark of systems that are updated as a whole: RHCOS, rpm-ostree and bootc (image mode).
_IMAGE_MARKS = ("/run/ostree-booted",)
# What builds the initramfs, where there is one.
_INITRAMFS = ("update-initramfs", "dracut")


def read_host(node: Node) -> dict[str, Any]:
    """Return ``host`` of the driver facts."""
    release = parse_os_release(node.text("/etc/os-release") or node.text("/usr/lib/os-release") or "")
    version = release.get("VERSION_ID", "")
    like = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split()
    managers = _DEBIAN if {"debian", "ubuntu"} & set(like) else _RPM
    return {
        "distribution": release.get("ID", "unknown"),
        "version": version,
        "major": version.partition(".")[0],
        "pretty": release.get("PRETTY_NAME", "unknown"),
        "arch": platform.machine(),
        "python": platform.python_version(),
        "package_manager": next((manager for tool, manager in managers if node.which(tool)), None),
        "initramfs": next((tool for tool in _INITRAMFS if node.which(tool)), None),
        "image_based": next((path for path in _IMAGE_MARKS if node.exists(path)), None),
    }


def parse_os_release(text: str) -> dict[str, str]:
    """Return the assignments of an os-release file; lines that are none are passed over (os-release(5))."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name.replace("_", "").isalnum():
            try:
                found[name] = "".join(shlex.split(value))
            except ValueError:
                continue
    return found


def read_reboot_hints(node: Node) -> list[str]:
    """Return what the distribution itself says about a reboot that is due to kernel or driver packages; empty where it says nothing."""
    packages = (node.text("/run/reboot-required.pkgs") or "").split()
    hints = [f"/run/reboot-required.pkgs names {name}" for name in sorted(set(packages)) if name.startswith(("linux-", "nvidia", "libnvidia"))]
    if node.exists("/run/reboot-needed"):
        hints.append("/run/reboot-needed exists")
    return hints
