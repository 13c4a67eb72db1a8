# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""rpmbuild, createrepo_c and gpg, run by chroot in the sandbox's root file system that has them: the machine needs none of them."""
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.artifacts import ArtifactError, Progress, Settings, package_tools


@dataclass(frozen=True)
class Tools:
    """``scratch``: a private folder inside ``root``; what is worked on has to lie there."""

    root: Path
    scratch: Path

    def inside(self, path: Path) -> str:
        """Return the path that programs see."""
        return f"/{path.relative_to(self.root)}"

    def run(self, *command: str) -> str:
        """Run a program and return its output. Raises ArtifactError with its words when it fails."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": self.inside(self.scratch), "SOURCE_DATE_EPOCH": "1700000000"}
        done = subprocess.run(
            ["chroot", str(self.root), *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ArtifactError(f"{command[0]} ended with status {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
        return done.stdout

    def link(self, sources: list[Path], folder: Path) -> None:
        """Put files into a folder of the scratch folder, without copying where that is possible. One that is there already stays: it is the same."""
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources:
            if (folder / source.name).exists():
                continue
            try:
                os.link(source, folder / source.name)
            except OSError:
                shutil.copy2(source, folder)


@contextmanager
def tools(settings: Settings, progress: Progress) -> Iterator[Tools]:
    """Give the tools with an empty scratch folder. Raises ArtifactError when they cannot be had."""
    root = package_tools(settings, progress)
    scratch = Path(tempfile.mkdtemp(prefix="packages-", dir=root / "var/tmp"))
    try:
        yield Tools(root, scratch)
    finally:
        shutil.rmtree(scratch)
