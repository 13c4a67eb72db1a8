# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the machine must be and have before a sandbox can start on it."""
from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .errors import ArtifactError
from .progress import QUIET, Progress
from .settings import Settings

#: Debian packages that a sandbox uses on the machine itself.
PACKAGES = (
    "binutils",
    "ca-certificates",
    "debian-archive-keyring",
    "gcc",
    "git",
    "iproute2",
    "libc6-dev",
    "make",
    "mmdebstrap",
    "nftables",
    "openssh-client",
    "systemd-container",
    "util-linux",
)
GIB = 1 << 30
#: Measured: an empty cache and one sandbox of four nodes.
DISK_COLD_GIB = 14
#: The same when everything is in the cache already.
DISK_WARM_GIB = 3
MEMORY_GIB = 6


def missing_host_packages() -> list[str]:
    """Return the packages of PACKAGES that dpkg does not have as installed."""
    told = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Abbrev}\n", *PACKAGES],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )
    installed = {line.split()[0] for line in told.stdout.splitlines() if line.split()[1:2] == ["ii"]}
    return [package for package in PACKAGES if package not in installed]


def install_host_packages(progress: Progress = QUIET) -> list[str]:
    """Install what is missing by apt-get, without questions, and return it. Raises ArtifactError with apt's words when that fails."""
    missing = missing_host_packages()
    if missing:
        with progress.step(f"installing {', '.join(missing)}"):
            _apt_get("update")
            _apt_get("install", "--yes", "--no-install-recommends", *missing)
    return missing


def _apt_get(*arguments: str) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["apt-get", "--quiet", *arguments], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise ArtifactError(f"apt-get {arguments[0]} failed: {' '.join(words)}")


def check_requirements(settings: Settings) -> list[str]:
    """Return one sentence for each requirement that the machine does not meet; an empty list means that a new sandbox can start."""
    findings = check_machine()
    if platform.system() == "Linux":
        findings += [*check_disk(settings), *check_memory(Path("/proc/meminfo").read_text())]
    return findings


def check_machine() -> list[str]:
    """Judge what a sandbox that exists already needs, too: the user, the processor, the distribution."""
    findings: list[str] = []
    if platform.system() != "Linux":
        return [f"The sandbox needs Linux; this is {platform.system()}."]
    if os.geteuid() != 0:
        findings.append("The sandbox makes namespaces and network devices: run it as root.")
    if platform.machine() != "x86_64":
        findings.append(f"The sandbox needs an x86-64 machine; this one is {platform.machine()}.")
    findings += check_distribution(_os_release())
    return findings


def check_distribution(os_release: Mapping[str, str]) -> list[str]:
    """Judge the fields of os-release: Debian, Ubuntu and what is made from them have the packages and the apt that are needed."""
    family = {os_release.get("ID", ""), *os_release.get("ID_LIKE", "").split()}
    if family & {"debian", "ubuntu"}:
        return []
    return [f"The sandbox needs Debian or Ubuntu; this machine says {os_release.get('PRETTY_NAME', 'nothing about itself')}."]


def check_disk(settings: Settings) -> list[str]:
    """Judge the free space where the cache is or will be."""
    folder = next(folder for folder in (settings.cache, *settings.cache.parents) if folder.exists())
    free = shutil.disk_usage(folder).free
    warm = any(settings.store.root.glob("nodelayer-*"))
    needed = DISK_WARM_GIB if warm else DISK_COLD_GIB
    if free >= needed * GIB:
        return []
    return [f"The sandbox needs {needed} GiB of disk below {settings.cache}; {free / GIB:.1f} GiB are free (GPUFLEET_SANDBOX_CACHE moves it)."]


def check_memory(meminfo: str) -> list[str]:
    """Judge the text of /proc/meminfo."""
    fields = {line.split(":")[0]: int(line.split()[1]) for line in meminfo.splitlines() if line.endswith(" kB")}
    available = fields["MemAvailable"] * 1024
    if available >= MEMORY_GIB * GIB:
        return []
    return [f"The sandbox needs {MEMORY_GIB} GiB of free memory; {available / GIB:.1f} GiB are available."]


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
