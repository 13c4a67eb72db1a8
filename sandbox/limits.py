# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one limit of the machine that several sandboxes reach: inotify instances, which root has for all hosts together.

The sandbox changes no sysctl of the machine, so it says beforehand that a host would not come up. Without that, systemd-nspawn or kubelet
would end without a word about the cause.
"""
from __future__ import annotations

import os
from pathlib import Path

from .errors import SandboxError

#: Measured: systemd, logind and dbus have 5 of a host's, kubelet 6, containerd 2; the API server 3, its two clients 2 each.
PER_PLAIN_HOST = 5
PER_KUBERNETES_NODE = 13
PER_CONTROL_PLANE = 7

_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")


def check_for(hosts: int, kubernetes: bool, control_plane_runs: bool) -> None:
    """Raise SandboxError when the machine has not enough inotify instances left for so many more hosts (and a control plane)."""
    needed = hosts * (PER_KUBERNETES_NODE if kubernetes else PER_PLAIN_HOST)
    if kubernetes and not control_plane_runs:
        needed += PER_CONTROL_PLANE
    limit, used = int(_LIMIT.read_text()), in_use()
    if needed > 0 and used + needed > limit:
        raise SandboxError(
            f"this machine lets root have {limit} inotify instances; {used} are in use and about {needed} more are needed: take another"
            f" sandbox down, or raise the limit with `sysctl -w fs.inotify.max_user_instances={max(512, 2 * limit)}`."
        )


def in_use() -> int:
    """Return how many inotify instances the processes of root have open."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == 0:
                count += sum(os.readlink(entry) == "anon_inode:inotify" for entry in os.scandir(process / "fd"))
        except OSError:
            continue  # ended meanwhile
    return count
