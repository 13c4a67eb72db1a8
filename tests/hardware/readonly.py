# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML that can only be read: the functions a program gets from the library are those on a list, and every other one is refused before it is called."""
from __future__ import annotations

import ctypes
import re
import sys
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.library import load_library

# Starting and ending NVML in this process, error texts, and queries. Nothing that sets, creates, destroys, clears, resets, enables or registers.
_READING = re.compile(r"nvml(Init|InitWithFlags|Init_v2|Shutdown|ErrorString|DeviceIsMigDeviceHandle|(System|Device|GpuInstance|ComputeInstance|Unit)Get\w+)")


class RefusedCall(Exception):
    """A program asked for an NVML function that is not a query."""


def is_reading(symbol: str) -> bool:
    """Return whether an NVML function only reads."""
    return _READING.fullmatch(symbol) is not None


class ReadOnlyLibrary:
    """Stands for the loaded library in pynvml; ``used`` collects the names of the functions that were asked for."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.used: set[str] = set()

    def __getattr__(self, symbol: str) -> Any:
        if not is_reading(symbol):
            raise RefusedCall(f"{symbol} is not a query, and this check calls nothing else")
        self.used.add(symbol)
        return getattr(self._library, symbol)


def make_read_only(driver_root: str, pynvml_path: str | None) -> ReadOnlyLibrary:
    """Load NVML and put the read-only library into pynvml for the rest of this process. Raises FleetError NvmlLibraryMissing, or ImportError."""
    path = load_library(driver_root)
    if pynvml_path is not None:
        sys.path.insert(0, pynvml_path)
    import pynvml

    library = ReadOnlyLibrary(ctypes.CDLL(path))
    pynvml.nvmlLib = library
    pynvml._nvmlGetFunctionPointer_cache.clear()
    return library
