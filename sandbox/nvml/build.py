# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Builds the NVML emulator once per content of its sources."""
from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
DRIVER_VERSION = "595.91.07"


class BuildError(Exception):
    """The compiler refused; the message holds what it said."""


def build(out_dir: Path | None = None, asan: bool = False, driver_version: str = DRIVER_VERSION) -> Path:
    """The folder with the emulator: libnvidia-ml.so.<version> and .so.1, libcuda likewise, nvidia-smi and nvmlctl (one file).

    Without ``out_dir`` it lies in the cache, under the hash of the sources, and is built only if it is not there. ``asan`` adds
    AddressSanitizer and UndefinedBehaviorSanitizer; a program that is not built with them needs libasan in LD_PRELOAD then.
    Raises BuildError.
    """
    if out_dir is not None:
        _make(Path(out_dir), asan, driver_version)
        return Path(out_dir)
    artifacts = _cache() / "artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    target = artifacts / f"nvml-{_content_hash(asan, driver_version)}"
    with open(artifacts / "nvml.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(prefix=".nvml-", dir=artifacts) as work:
                fresh = Path(work, "build")
                _make(fresh, asan, driver_version)
                fresh.rename(target)
    return target


def _cache() -> Path:
    given = os.environ.get("GPUFLEET_SANDBOX_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpufleet-dra"


def _sources() -> list[Path]:
    return sorted([SOURCE / "Makefile", *(SOURCE / "src").iterdir(), *(SOURCE / "control").glob("*.py")])


def _content_hash(asan: bool, driver_version: str) -> str:
    digest = hashlib.sha256(f"{driver_version} asan={asan}".encode())
    for path in _sources():
        digest.update(f"\n{path.relative_to(SOURCE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _make(out_dir: Path, asan: bool, driver_version: str) -> None:
    out_dir.mkdir(parents=True, exist_ok=True)
    command = ["make", "-C", str(SOURCE), "asan" if asan else "all", f"OUT={out_dir}", f"DRIVER_VERSION={driver_version}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(f"The NVML emulator does not compile:\n{done.stdout}{done.stderr}")
    _pack_nvmlctl(out_dir / "nvmlctl")


def _pack_nvmlctl(path: Path) -> None:
    """Pack the control program into one executable file, the same bytes for the same sources."""
    names = ["control/__init__.py", *(f"control/{source.name}" for source in sorted((SOURCE / "control").glob("[!_]*.py")))]
    with open(path, "wb") as stream:
        stream.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(_entry("__main__.py"), "import sys\n\nfrom control.cli import main\n\nsys.exit(main())\n")
            for name in names:
                archive.writestr(_entry(name), (SOURCE / name).read_bytes())
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    return entry


def main() -> None:
    """Build and print the folder."""
    parser = argparse.ArgumentParser(description="Build the NVML emulator.")
    parser.add_argument("--asan", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.out and options.out.exists():
        shutil.rmtree(options.out)
    print(build(options.out, options.asan))


if __name__ == "__main__":
    main()
