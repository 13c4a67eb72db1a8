# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What of the machine a sandbox must leave as it was: looked at before and after, and compared.

Counters that move by themselves are left out, and so is what another sandbox on the same machine does meanwhile.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

_SYSCTLS = Path("/proc/sys")
_MOVING_SYSCTLS = re.compile(
    r"fs/(aio-nr|dentry-state|file-nr|inode-nr|inode-state)|fs/quota/.*|fs/binfmt_misc/.*"
    r"|kernel/(ns_last_pid|pty/nr|random/.*|perf_event_max_sample_rate|sched_domain/.*)|net/netfilter/nf_conntrack_count|vm/stat_refresh"
)
#: Come with a kernel module that a host's packet filter loads, and that stays loaded.
_CONNECTION_TRACKING = re.compile(r"net/nf_conntrack_max|net/netfilter/nf_conntrack_.*")
#: Default places of container runtimes, kubelet, CNI and nspawn on a machine: nothing of a sandbox may turn up there.
_PLACES = (
    "/etc/cni",
    "/etc/kubernetes",
    "/opt/cni",
    "/run/containerd",
    "/run/netns",
    "/run/systemd/nspawn",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/machines",
    "/var/log/containers",
    "/var/log/pods",
    "/var/run/cdi",
    "/dev/nvidiactl",
    "/dev/nvidia-caps",
    "/proc/driver",
)
#: Where Ansible, kubectl and Helm write when nobody tells them another place, below the home folder.
_HOME_PLACES = (".ansible", ".ansible/cp", ".cache/helm", ".config/helm", ".kube", ".kube/cache", ".local/share/helm")
_SERVICE = re.compile(r":/system\.slice/[^/\n]+\.service")
_CLOCK_STEP_S = 2


@dataclass(frozen=True)
class MachineState:
    """Every field maps a name to its value; a name that comes, goes or changes is a difference."""

    sysctls: dict[str, str]
    mounts: dict[str, str]
    cgroups: dict[str, str]
    links: dict[str, str]
    namespaces: dict[str, str]
    places: dict[str, str]
    packet_filter: dict[str, str]
    clock_offset_s: float  # wall clock minus the clock that nobody can set


def take() -> MachineState:
    """Look at the machine."""
    return MachineState(
        sysctls=dict(_sysctls()),
        mounts=_mounts(Path("/proc/self/mountinfo").read_text()),
        cgroups={str(group): "" for group in Path("/sys/fs/cgroup").rglob("gpufleet-*")},
        links=_links(),
        namespaces=dict(_namespaces()),
        places=_places(),
        packet_filter={"ruleset": _output("nft", "--stateless", "list", "ruleset")},
        clock_offset_s=time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME),
    )


def differences(before: MachineState, after: MachineState) -> list[str]:
    """Return one line for everything that is not as it was."""
    found: list[str] = []
    for field in fields(MachineState):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if isinstance(old, dict):
            found.extend(_changes(field.name, old, new))
        elif abs(old - new) > _CLOCK_STEP_S:
            found.append(f"the clock was moved by {new - old:.1f} s")
    return found


def _changes(kind: str, old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    tracked = any(_CONNECTION_TRACKING.fullmatch(name) for name in old)
    for name in sorted(old.keys() | new.keys()):
        if kind == "sysctls" and not tracked and _CONNECTION_TRACKING.fullmatch(name):
            continue
        if name not in new:
            yield f"{kind}: {name} is gone"
        elif name not in old:
            yield f"{kind}: {name} is new ({new[name]})"
        elif old[name] != new[name]:
            yield f"{kind}: {name} was {old[name]!r}, is {new[name]!r}"


def _sysctls() -> Iterator[tuple[str, str]]:
    for folder, _, names in os.walk(_SYSCTLS):
        for name in names:
            path = Path(folder, name)
            key = str(path.relative_to(_SYSCTLS))
            if _MOVING_SYSCTLS.fullmatch(key):
                continue
            try:
                yield key, path.read_text(errors="replace").strip()
            except OSError:
                continue  # write-only, or of a device that is gone


def _mounts(mountinfo: str) -> dict[str, str]:
    rows = (line.split() for line in mountinfo.splitlines())
    return {f"{row[4]} (mount {row[0]})": row[5] for row in rows}


def _links() -> dict[str, str]:
    links = json.loads(_output("ip", "-json", "address", "show") or "[]")
    return {link["ifname"]: " ".join(sorted(address["local"] for address in link.get("addr_info", []))) for link in links}


def _namespaces() -> Iterator[tuple[str, str]]:
    """Namespaces of all processes but those inside sandboxes' hosts, where another sandbox may start containers meanwhile, and those of the
    machine's own services, which come and go."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            groups = (process / "cgroup").read_text()
            if "/gpufleet-" in groups or _SERVICE.search(groups):
                continue
            for name in ("mnt", "net", "pid", "ipc", "uts", "cgroup", "user"):
                yield os.readlink(process / "ns" / name), ""
        except OSError:
            continue  # ended meanwhile


def _places() -> dict[str, str]:
    places = {place: " ".join(_entries(Path(place))) for place in (*_PLACES, *(str(Path.home() / place) for place in _HOME_PLACES))}
    places["/tmp/k8srcp-*"] = " ".join(sorted(path.name for path in Path("/tmp").glob("k8srcp-*")))
    return places


def _entries(place: Path) -> Iterable[str]:
    if place.is_dir():
        return sorted(path.name for path in place.iterdir())
    return ["exists"] if place.exists() else ["absent"]


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
