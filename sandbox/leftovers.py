# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a sandbox that was taken down has left on the machine: looked for, not assumed to be nothing."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import network
from .nodes import cgroups, masters
from .nodes.record import HostRecord
from .processes import PidFile
from .state import RunState


def find(state: RunState, hosts: Iterable[HostRecord]) -> list[str]:
    """Return one sentence per process, cgroup, link and mount of the sandbox that is still there."""
    hosts = list(hosts)
    left: list[str] = []
    for pid_file in [*map(PidFile, state.pids.glob("*.json")), *(host.pid_file for host in hosts)]:
        process = pid_file.running()
        if process is not None:
            left.append(f"process {process.pid} ({pid_file.path.stem}) still runs")
    for host in hosts:
        for pid in sorted(cgroups.members(host.groups())):
            left.append(f"process {pid} of {host.name} still runs")
        left.extend(f"cgroup {group} still exists" for group in host.groups() if group.exists())
    left.extend(f"the ssh master {pid} still runs" for pid in masters.running(state.control_sockets))
    left.extend(f"link {name} still exists" for name in network.links_of(state.addresses, state.owner))
    left.extend(f"{place} is still mounted" for place in mounts_below(state.root, Path("/proc/self/mounts").read_text()))
    return left


def mounts_below(folder: Path, mounts: str) -> list[str]:
    """Return the mount points at or below ``folder`` in the text of /proc/PID/mounts."""
    places = (_unescaped(line.split()[1]) for line in mounts.splitlines())
    return [place for place in places if Path(place).is_relative_to(folder)]


def _unescaped(place: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        place = place.replace(code, character)
    return place
