# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writing into the upper layer of a host's root before its first boot."""
from __future__ import annotations

import os
import stat

from .record import HostRecord


def write(host: HostRecord, place: str, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file; ``place`` is its path from the host's root, without the leading slash."""
    path = host.upper / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def link(host: HostRecord, place: str, target: str) -> None:
    """Make a symbolic link, in the place of what is there."""
    path = host.upper / place.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def hide(host: HostRecord, place: str) -> None:
    """Hide what the layers below have at ``place``: an overlay's whiteout is the character device 0:0."""
    path = host.upper / place
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
