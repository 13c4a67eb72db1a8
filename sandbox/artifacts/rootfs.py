# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The root file system of the sandbox's hosts: Debian, made by mmdebstrap from the machine's own mirrors."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .commands import run
from .errors import ArtifactError
from .progress import QUIET, Progress
from .settings import Settings
from .store import digest

PACKAGES = (
    "busybox-static",
    "ca-certificates",
    "containernetworking-plugins",
    "dbus",
    "iproute2",
    "kmod",
    "nftables",
    "openssh-server",
    "procps",
    "psmisc",
    "python3",
    "python3-apt",
    "runc",
    "sudo",
    "systemd",
    "systemd-sysv",
)
KEYRINGS = tuple(Path("/usr/share/keyrings") / f"debian-archive-keyring.{suffix}" for suffix in ("gpg", "pgp"))
_RECIPE = 1  # raise it when the way of making it changes
#: What every host must have of its own: the nodes make them at first boot.
_IDENTITY = ("etc/machine-id", "var/lib/dbus/machine-id", "etc/hostname", "etc/resolv.conf")


def rootfs(settings: Settings, progress: Progress = QUIET) -> Path:
    """Return the folder with the root file system; it holds no machine-id, no SSH host keys and no host name.

    Hosts must not write into it: they put an overlay on it. Raises ArtifactError when it cannot be made.
    """
    key = digest([_RECIPE, settings.suite, settings.mirror, PACKAGES])
    found = settings.store.find("rootfs", key)
    if found is not None:
        return found / "root"
    if settings.offline:
        raise ArtifactError(f"the Debian {settings.suite} root file system is not in {settings.store.root} and nothing may be downloaded.")
    with progress.step(f"making the Debian {settings.suite} root file system of the hosts", "about 1 min"):
        return settings.store.publish("rootfs", key, lambda place: _make(place, settings)) / "root"


def _make(place: Path, settings: Settings) -> None:
    root = place / "root"
    settings.scratch.mkdir(parents=True, exist_ok=True)
    keyring = next((path for path in KEYRINGS if path.exists()), None)
    if keyring is None:
        raise ArtifactError("the keys of the Debian archive are missing: install the package debian-archive-keyring.")
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        "--mode=root",
        f"--keyring={keyring}",
        '--aptopt=Acquire::Languages "none"',
        *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("man", "doc", "locale")),
        f"--include={','.join(PACKAGES)}",
        settings.suite,
        str(root),
        *([settings.mirror] if settings.mirror else machine_mirrors(settings.suite)),
    ]
    run(f"making the Debian {settings.suite} root file system", command)
    for name in _IDENTITY:
        (root / name).unlink(missing_ok=True)
    for host_key in (root / "etc/ssh").glob("ssh_host_*"):
        host_key.unlink()


def machine_mirrors(suite: str) -> list[str]:
    """Return apt source lines for ``suite`` as this machine's own apt has them; none when it has no Debian sources (as on Ubuntu).

    With no line mmdebstrap takes Debian's own servers.
    """
    if shutil.which("apt-get") is None:
        return []
    row = "$(SITE)|$(RELEASE)|$(LABEL)"
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", row, "Created-By: Packages"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )
    return mirror_lines(told.stdout, suite)


def mirror_lines(index_targets: str, suite: str) -> list[str]:
    """Return source lines for ``suite`` from rows of site, release and label. Only Debian's own archives count."""
    lines: list[str] = []
    for row in index_targets.splitlines():
        site, release, label = (row.split("|") + [""] * 3)[:3]
        if label not in ("Debian", "Debian-Security") or "://" not in site:
            continue
        pocket = next((pocket for pocket in ("-updates", "-security") if release.endswith(pocket)), "")
        line = f"deb {site} {suite}{pocket} main"
        if line not in lines:
            lines.append(line)
    return lines if any(line.endswith(f" {suite} main") for line in lines) else []
