# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether what this machine has compiled runs with the older C library of the hosts: a newer one gives old names new versions."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .errors import ArtifactError

LIBC = "lib/x86_64-linux-gnu/libc.so.6"
_VERSION = re.compile(r"Name: GLIBC_([0-9.]+)")


def check_runs_on(root: Path, files: Iterable[Path]) -> None:
    """Raise ArtifactError naming the first of ``files`` that needs a newer C library than the root file system ``root`` has."""
    has = newest_version(root / LIBC)
    for file in files:
        needs = newest_version(file)
        if needs > has:
            raise ArtifactError(
                f"{file.name}, compiled on this machine, needs glibc {_text(needs)}, but the hosts have {_text(has)}:"
                " choose a newer Debian for them with GPUFLEET_SANDBOX_SUITE (for example trixie)."
            )


def newest_version(file: Path) -> tuple[int, ...]:
    """Return the newest version of glibc's names that an ELF file needs or, being the C library, defines; empty when there is none."""
    command = ["readelf", "--version-info", "--wide", str(file)]
    told = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False).stdout
    return max((tuple(map(int, version.split("."))) for version in _VERSION.findall(told)), default=())


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
