# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What stands in the files that the role writes: repository, pins, locks, blacklists.

Some files are the administrator's too (lists of locks). Of these only our own lines are written and taken away; all other lines stay as they are.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..knowledge.addresses import user_and_password, without_credentials
from ..knowledge.driver_packages import APT, DNF, REPOSITORY_NAME, ZYPPER

APT_SOURCES = "/etc/apt/sources.list.d/gpufleet-nvidia-driver.sources"
APT_KEY = "/etc/apt/keyrings/gpufleet-nvidia-driver.asc"
APT_PREFERENCES = "/etc/apt/preferences.d/00-gpufleet-nvidia-driver"
APT_UNATTENDED = "/etc/apt/apt.conf.d/52gpufleet-nvidia-driver"
RPM_KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpufleet-nvidia-driver"
DNF_REPOSITORY = "/etc/yum.repos.d/gpufleet-nvidia-driver.repo"
DNF_STREAM = "/etc/dnf/modules.d/nvidia-driver.module"
DNF_LOCKS = "/etc/dnf/plugins/versionlock.list"
ZYPPER_REPOSITORY = "/etc/zypp/repos.d/gpufleet-nvidia-driver.repo"
ZYPPER_LOCKS = "/etc/zypp/locks"
MODPROBE = "/etc/modprobe.d/gpufleet-nvidia-driver.conf"
RECORD = "/var/lib/gpufleet-dra/nvidia_driver.json"

KEY_PATHS = {APT: APT_KEY, DNF: RPM_KEY, ZYPPER: RPM_KEY}
REPOSITORY_PATHS = {APT: APT_SOURCES, DNF: DNF_REPOSITORY, ZYPPER: ZYPPER_REPOSITORY}
SHARED = (DNF_LOCKS, ZYPPER_LOCKS)
"""Files that also hold what is not ours."""

_MANAGED = {
    APT: [APT_SOURCES, APT_KEY, APT_PREFERENCES, APT_UNATTENDED, MODPROBE],
    DNF: [DNF_REPOSITORY, RPM_KEY, DNF_LOCKS, DNF_STREAM, MODPROBE],
    ZYPPER: [ZYPPER_REPOSITORY, RPM_KEY, ZYPPER_LOCKS, MODPROBE],
}

_HEAD = "Written by role gpufleet.dra.nvidia_driver."
_BEGIN = f"# BEGIN {REPOSITORY_NAME}"
_END = f"# END {REPOSITORY_NAME}"


def managed_paths(manager: str) -> list[str]:
    """Return the files that the role may write on a host with this package manager; empty for a manager that is not supported."""
    return list(_MANAGED.get(manager, ()))


def key(text: str) -> str:
    """Return a signing key as a file that apt and rpm can read: armoured as it is, or armour around the base64 text of a binary key."""
    plain = text.strip()
    if plain.startswith("-----BEGIN"):
        return plain + "\n"
    return f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{plain}\n-----END PGP PUBLIC KEY BLOCK-----\n"


def rpm_key_id(fingerprint: str) -> str:
    """Return the eight lower-case digits by which rpm lists the key of an OpenPGP fingerprint (gpg-pubkey-ID): the end of a version 4 key id."""
    return (fingerprint[8:16] if len(fingerprint) == 64 else fingerprint[-8:]).lower()


def repository(manager: str, url: str) -> str:
    """Return the definition of the repository at ``url``, whose packages have to be signed by the key in KEY_PATHS.

    User name and password stand where the package manager does not repeat them in its messages: for dnf beside the address.
    """
    if manager == APT:
        return f"# {_HEAD}\nTypes: deb\nURIs: {url}\nSuites: /\nSigned-By: {APT_KEY}\n"
    checks = "gpgcheck=1\nrepo_gpgcheck=0\n" if manager == DNF else "gpgcheck=1\nautorefresh=1\ntype=rpm-md\n"
    user, password = user_and_password(url)
    if manager == DNF and user:
        url = without_credentials(url)
        checks += f"username={user}\npassword={password}\n"
    return f"# {_HEAD}\n[{REPOSITORY_NAME}]\nname=NVIDIA driver\nbaseurl={url}\nenabled=1\n{checks}gpgkey=file://{RPM_KEY}\n"


def apt_preferences(globs: Iterable[str], version: str) -> str:
    """Return the apt preferences that let only ``version`` of the driver set be installed, also where that is a downgrade (priority above 1000)."""
    return (
        f"Explanation: {_HEAD} Everything of the driver has one version.\n"
        f"Package: {' '.join(globs)}\nPin: version {version}-*\nPin-Priority: 1001\n"
    )


def apt_unattended() -> str:
    """Return the apt configuration that keeps unattended-upgrades off the driver. Its patterns are regular expressions from the start of a name."""
    patterns = (
        "nvidia-", "libnvidia-", "libcuda1", "libcudadebugger1", "libnvcuvid1", "libnvsdm", "nvlsm", "cuda-", "linux-modules-nvidia-",
        "linux-objects-nvidia-", "linux-signatures-nvidia-", "xserver-xorg-video-nvidia",
    )
    lines = "".join(f'    "{pattern}";\n' for pattern in patterns)
    return f"// {_HEAD}\nUnattended-Upgrade::Package-Blacklist {{\n{lines}}};\n"


def nouveau_blacklist() -> str:
    """Return the modprobe configuration that keeps the kernel's own driver from taking the GPUs."""
    return f"# {_HEAD}\nblacklist nouveau\noptions nouveau modeset=0\n"


def dnf_stream(stream: str) -> str:
    """Return the file with which dnf says that a stream of module nvidia-driver is enabled; the form is dnf's own."""
    return f"[nvidia-driver]\nname=nvidia-driver\nstream={stream}\nprofiles=\nstate=enabled\n\n"


def dnf_locks(present: str, globs: Sequence[str], version: str) -> str:
    """Return versionlock.list with our lines in place: of every package of the driver set only ``version``. No globs: without our lines."""
    ours = [f"{glob}-{version}-*.*" for glob in globs]
    return _joined(_without_block(present), [_BEGIN, *ours, _END] if ours else [])


def zypper_locks(present: str, names: Sequence[str], ours_before: Iterable[str] = ()) -> str:
    """Return zypper's file of locks with one lock for each of ``names`` (names or globs), and without those that were ours before.

    zypper writes the file anew at every change and keeps no comments, so locks are told apart by their names alone.
    """
    own = {*names, *ours_before}
    kept = [block for block in _lock_blocks(present) if not _is_plain_lock(block, own)]
    made = [f"type: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {name}" for name in names]
    blocks = [*kept, *made]
    return "".join(f"\n{block}\n" for block in blocks)


def same_locks(one: str, other: str) -> bool:
    """Return whether two lists of locks say the same, whatever the order and the blank lines."""
    def normal(text: str) -> list[list[str]]:
        return sorted(sorted(block.splitlines()) for block in _lock_blocks(text))

    return normal(one) == normal(other)


def _lock_blocks(text: str) -> list[str]:
    return [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]


def _is_plain_lock(block: str, names: set[str]) -> bool:
    """Return whether this is a lock on one of ``names`` and nothing else, as :func:`zypper_locks` makes them."""
    pairs = dict(line.split(":", 1) for line in block.splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in pairs.items()}
    return fields.pop("solvable_name", None) in names and set(fields) <= {"type", "match_type", "case_sensitive"}


def _without_block(text: str) -> list[str]:
    kept, inside = [], False
    for line in text.splitlines():
        if line == _BEGIN:
            inside = True
        elif line == _END and inside:
            inside = False
        elif not inside:
            kept.append(line)
    return kept


def _joined(kept: list[str], ours: list[str]) -> str:
    return "".join(f"{line}\n" for line in [*kept, *ours])
