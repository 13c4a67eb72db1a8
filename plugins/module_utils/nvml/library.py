# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Finds and loads libnvidia-ml.so.1, so that pynvml, which only knows the loader's default search, uses the library of a given driver root."""
from __future__ import annotations

import ctypes
import platform
from pathlib import Path

from ..reasons import FleetError, finding

_SONAME = "libnvidia-ml.so.1"


def library_candidates(driver_root: str) -> list[Path]:
    """Return where the library may lie under ``driver_root``, in the order in which distributions put it."""
    triplet = f"{platform.machine()}-linux-gnu"
    return [Path(driver_root) / folder / _SONAME for folder in ("usr/lib64", f"usr/lib/{triplet}", "lib64", f"lib/{triplet}", "usr/lib", "usr/lib/wsl/lib")]


def load_library(driver_root: str) -> str:
    """Load NVML into this process and return the path of the file that was loaded.

    For the root ``/`` the loader's own search comes first. Once a library with this SONAME is loaded, the loader gives the same one to pynvml.
    Raises FleetError NvmlLibraryMissing.
    """
    candidates: list[str] = [_SONAME] if driver_root == "/" else []
    candidates += [str(path) for path in library_candidates(driver_root) if path.exists()]
    for candidate in candidates:
        try:
            ctypes.CDLL(candidate, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return loaded_path() or candidate
    raise FleetError(finding("NvmlLibraryMissing", platform.node(), driver_root=driver_root))


def loaded_path() -> str | None:
    """Return the file that this process has mapped as libnvidia-ml, or None."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2]
        if "libnvidia-ml.so" in path:
            return f"/{path}"
    return None
