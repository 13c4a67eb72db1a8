# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who has a GPU's device nodes open.

NVML lists only processes with a CUDA or graphics context. Monitoring agents, nvidia-persistenced or a plugin that merely watches a GPU can keep it from
changing its MIG mode as well; what they have in common is an open file, which /proc shows.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

_CAPABILITIES = "proc/driver/nvidia/capabilities"
# Below whatever /dev the process sees: its own root, a driver container's or a chroot's.
_GPU_NODE = re.compile(r"/dev/nvidia(\d+)$")
_DRIVER_NODE = re.compile(r"/dev/nvidia\S*$")
_CAPABILITY_NODE = re.compile(r"/nvidia-caps/nvidia-cap(\d+)$")


@dataclass(frozen=True)
class Handle:
    """An open device node: ``/dev/nvidiaN``, or a capability device of MIG.

    ``name`` is the process's (comm). ``gpu_minor`` is N; the instance ids are None for a whole GPU. All three are None for a capability device that belongs to
    no instance of the GPUs asked about (``mig/config``, ``mig/monitor``, an instance that is gone).
    """

    pid: int
    name: str
    path: str
    gpu_minor: Optional[int]
    gpu_instance_id: Optional[int]
    compute_instance_id: Optional[int] = None


class HandleScan(NamedTuple):
    """What was found, and how many processes could not be looked at (for lack of privilege)."""

    handles: list[Handle]
    unreadable: int


class DeviceFileUser(NamedTuple):
    """A process that has device files of the driver open, with their sorted paths."""

    pid: int
    name: str
    paths: list[str]


class _Owner(NamedTuple):
    gpu_minor: Optional[int]
    gpu_instance_id: Optional[int] = None
    compute_instance_id: Optional[int] = None


def open_handles(facts: dict[str, Any], root: str = "/") -> list[Handle]:
    """Return who has device nodes of the GPUs in an NVML facts document open, sorted by process and path; this process is left out.

    ``root`` is the folder that holds /proc. Processes that may not be looked at count as holding nothing: see :func:`scan_handles`.
    """
    return scan_handles(facts, root).handles


def scan_handles(facts: dict[str, Any], root: str = "/") -> HandleScan:
    """Return what :func:`open_handles` returns, with the number of processes that could not be looked at."""
    minors = {gpu["minor"] for gpu in facts["gpus"]}
    capabilities = _capability_owners(facts, Path(root) / _CAPABILITIES)
    found: set[Handle] = set()
    unreadable = 0
    for process in _processes(Path(root) / "proc"):
        try:
            paths = set(_open_files(process))
        except PermissionError:
            unreadable += 1
            continue
        except OSError:  # it has ended meanwhile
            continue
        for path in paths:
            owner = _owner(path, capabilities)
            if owner is not None and owner.gpu_minor in minors | {None}:
                found.add(Handle(int(process.name), _name(process), path, *owner))
    return HandleScan(sorted(found, key=lambda handle: (handle.pid, handle.path)), unreadable)


def device_file_users(root: str = "/") -> list[DeviceFileUser]:
    """Return who has any device file of the driver open, by pid, without this process: also where no driver answers. Unreadable processes are left out."""
    users = []
    for process in _processes(Path(root) / "proc"):
        try:
            paths = sorted({path for path in _open_files(process) if _DRIVER_NODE.search(path)})
        except OSError:  # it has ended meanwhile, or may not be looked at
            continue
        if paths:
            users.append(DeviceFileUser(int(process.name), _name(process), paths))
    return sorted(users)


def _capability_owners(facts: dict[str, Any], capabilities: Path) -> dict[int, _Owner]:
    """Return whose the capability devices are, by their minor number."""
    owners = {}
    for access, owner in _access_files(facts, capabilities):
        minor = _minor(access)
        if minor is not None:
            owners[minor] = owner
    return owners


def _access_files(facts: dict[str, Any], capabilities: Path) -> Iterator[tuple[Path, _Owner]]:
    """Yield the file in which the driver names an instance's device, and the instance."""
    for gpu in facts["gpus"]:
        for instance in gpu["mig"]["instances"]:
            owner = _Owner(gpu["minor"], instance["gpu_instance_id"])
            folder = capabilities / f"gpu{owner.gpu_minor}" / "mig" / f"gi{owner.gpu_instance_id}"
            yield folder / "access", owner
            for compute in instance["compute_instances"]:
                number = compute["compute_instance_id"]
                yield folder / f"ci{number}" / "access", owner._replace(compute_instance_id=number)


def _minor(access: Path) -> int | None:
    """Return DeviceFileMinor of an access file, or None where the driver has no such file."""
    try:
        lines = access.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.partition(":")[2]) for line in lines if line.startswith("DeviceFileMinor:")), None)


def _processes(proc: Path) -> Iterator[Path]:
    return (proc / entry for entry in os.listdir(proc) if entry.isdigit() and int(entry) != os.getpid())


def _open_files(process: Path) -> Iterator[str]:
    for entry in os.listdir(process / "fd"):
        try:
            # A node that was removed since it was opened still holds what it opened.
            yield os.readlink(process / "fd" / entry).removesuffix(" (deleted)")
        except FileNotFoundError:  # closed meanwhile
            continue


def _owner(path: str, capabilities: dict[int, _Owner]) -> _Owner | None:
    """Return whose device node ``path`` is, or None for any other file."""
    gpu = _GPU_NODE.search(path)
    if gpu is not None:
        return _Owner(int(gpu.group(1)))
    capability = _CAPABILITY_NODE.search(path)
    return None if capability is None else capabilities.get(int(capability.group(1)), _Owner(None))


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"
