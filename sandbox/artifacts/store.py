# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder of finished artifacts, each under the hash of all that it was made from.

Layout: ``ROOT/<kind>-<key>/``. A folder with such a name is complete: it is made beside its place and renamed. A lock per artifact
makes a second builder wait and then find the first one's work. What a killed builder leaves is swept by the next builder of that artifact.
"""
from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY_LENGTH = 12


def digest(parts: Any) -> str:
    """Return the key for ``parts`` (plain data: str, int, bool, None, lists, dicts), the same in every process and on every machine."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def file_digest(path: Path) -> str:
    """Return the SHA-256 of the file's content in hex. Raises OSError when it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tree_digest(root: Path, without: Sequence[str] = ()) -> str:
    """Return a hash over names, modes, link targets and contents below ``root`` (a file or a folder), without Python's byte code.

    ``without``: patterns for the names of files and folders that do not count, with all below them.
    """
    rows: list[list[str]] = []
    entries = [root] if root.is_file() else sorted(root.rglob("*"))
    for entry in entries:
        relative = entry.relative_to(root)
        if any(fnmatch.fnmatch(part, pattern) for part in relative.parts for pattern in ("__pycache__", *without)):
            continue
        name = str(relative)
        mode = oct(entry.lstat().st_mode)
        if entry.is_symlink():
            rows.append([name, "link", os.readlink(entry)])
        elif entry.is_file():
            rows.append([name, mode, file_digest(entry)])
        else:
            rows.append([name, mode])
    return digest(rows)


@dataclass(frozen=True)
class Store:
    """The artifacts below one folder."""

    root: Path

    def place(self, kind: str, key: str) -> Path:
        """Return where the artifact lies or would lie."""
        return self.root / f"{kind}-{key}"

    def find(self, kind: str, key: str) -> Path | None:
        """Return the folder of a finished artifact, or None."""
        place = self.place(kind, key)
        return place if place.is_dir() else None

    def publish(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """Return the artifact's folder; if it is not there, let ``build`` fill an empty folder and publish that in one rename.

        Whatever ``build`` raises leaves nothing behind and is passed on.
        """
        place = self.place(kind, key)
        if place.is_dir():
            return place
        with self._locked(place.name):
            if place.is_dir():
                return place
            self._sweep(place.name)
            scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=self.root))
            try:
                scratch.chmod(0o755)
                build(scratch)
                scratch.rename(place)
            except BaseException:
                shutil.rmtree(scratch, ignore_errors=True)
                raise
        return place

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        locks = self.root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / name).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _sweep(self, name: str) -> None:
        """Remove what killed builders of this artifact left. Call with its lock held: then no such builder is alive."""
        for leftover in self.root.glob(f".{name}.*"):
            shutil.rmtree(leftover, ignore_errors=True)
