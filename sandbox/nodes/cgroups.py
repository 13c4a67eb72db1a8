# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host's own cgroups.

With cgroup v1 (hybrid too) each hierarchy gets a group below the one that the starter is in. With v2 the starter's systemd delegates a
scope per host, and the host's group is made inside it, beside a leaf for the supervisor, since a group with members cannot have
controllers for its children.
"""
from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_REMOVAL_TIMEOUT_S = 5.0


def is_v2() -> bool:
    """Whether the machine has cgroup v2 alone."""
    return (ROOT / "cgroup.controllers").exists()


def own_groups(proc_cgroup: str) -> dict[str, str]:
    """Parse /proc/PID/cgroup: hierarchy's folder name below /sys/fs/cgroup -> group path. v2's own is named ``unified``."""
    groups: dict[str, str] = {}
    for line in proc_cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        groups[controllers.removeprefix("name=") or "unified"] = path.rstrip("/")
    return groups


def v1_groups(sandbox: str, host: str) -> list[Path]:
    """Return the group of this host in every v1 hierarchy (and in hybrid's v2 one), as the calling process would have them.

    ``sandbox`` has to be unique on the machine, not only in its cache.
    """
    own = own_groups(Path("/proc/self/cgroup").read_text())
    # a controller name with a comma (cpu,cpuacct) is the folder's name too
    return [
        Path(f"{ROOT}/{hierarchy}{path}/gpufleet-{sandbox}/{host}")
        for hierarchy, path in sorted(own.items())
        if (ROOT / hierarchy).is_dir()
    ]


def enter_v2_leaf() -> None:
    """Move the calling process from its delegated scope into the scope's leaf ``supervisor``."""
    scope = _own_v2_group()
    (scope / "supervisor").mkdir(exist_ok=True)
    enter([scope / "supervisor"])


def v2_groups() -> list[Path]:
    """Return the host's group as a supervisor sees it that :func:`enter_v2_leaf` has put into its leaf."""
    return [_own_v2_group().parent / "host"]


def make(groups: Iterable[Path]) -> None:
    """Make the groups with their parents.

    v1's cpuset groups start empty and are filled from above. A v2 group is given every controller that its parent has.
    """
    for group in groups:
        group.mkdir(parents=True, exist_ok=True)
        if is_v2():
            controllers = (group.parent / "cgroup.controllers").read_text().split()
            (group.parent / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in controllers))
            continue
        for folder in (group.parent, group):
            for setting in (folder / "cpuset.cpus", folder / "cpuset.mems"):
                if setting.exists() and not setting.read_text().strip():
                    setting.write_text((folder.parent / setting.name).read_text())


def enter(groups: Iterable[Path]) -> None:
    """Move the calling process into the groups."""
    for group in groups:
        (group / "cgroup.procs").write_text("0")


def members(groups: Iterable[Path]) -> set[int]:
    """Return the ids of all processes in the groups and below."""
    found: set[int] = set()
    for group in groups:
        for folder, _, _ in os.walk(group):
            try:
                found.update(int(pid) for pid in Path(folder, "cgroup.procs").read_text().split())
            except OSError:
                continue  # removed meanwhile
    return found


def remove(groups: Sequence[Path], with_parent: bool = False) -> list[Path]:
    """Remove the groups with all below them, waiting for dying members. Returns what could not be removed.

    ``with_parent`` removes the sandbox's group above them too, if no other host is in it.
    """
    deadline = time.monotonic() + _REMOVAL_TIMEOUT_S
    while True:
        left = [group for group in groups if not _removed(group)]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if with_parent:
        for group in groups:
            _rmdir(group.parent)
    return left


def _own_v2_group() -> Path:
    return Path(f"{ROOT}{own_groups(Path('/proc/self/cgroup').read_text())['unified']}")


def _removed(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        _rmdir(Path(folder))
    return not group.exists()


def _rmdir(group: Path) -> None:
    with contextlib.suppress(OSError):  # gone already, or still in use: the caller looks again
        group.rmdir()
