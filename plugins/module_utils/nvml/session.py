# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The edge to NVML: the only file that imports pynvml. Gives typed results instead of ctypes structures, and one error type.

The calls themselves stand by subject in gpu_calls, mig_calls and health_calls.
"""
from __future__ import annotations

import platform
import sys
from contextlib import suppress
from typing import Any

from ..reasons import FleetError, finding
from .codes import DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, NvmlError
from .health_calls import HealthCalls
from .library import load_library
from .mig_calls import MigCalls


class NvmlSession(MigCalls, HealthCalls):
    """An open NVML library, used as a context manager.

    ``driver_root`` says which driver is meant; ``pynvml_path`` is put first on sys.path (a folder or an archive with pynvml.py). Handles are valid until
    :meth:`reopen`. Opening raises FleetError NvmlLibraryMissing, NvmlDriverNotLoaded, PynvmlMissing or NvmlCallFailed; every other method raises NvmlError.
    """

    def __init__(self, driver_root: str = "/", pynvml_path: str | None = None) -> None:
        self.driver_root = driver_root
        self._pynvml_path = pynvml_path
        self.library = ""
        self._abandoned = False

    def __enter__(self) -> NvmlSession:
        self.library = load_library(self.driver_root)
        self._pynvml = _import_pynvml(self._pynvml_path)
        self.open()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._abandoned:
            return
        # What went wrong before matters more than a library that is closed already.
        with suppress(NvmlError):
            self.close()

    def abandon(self) -> str | None:
        """Give the session up while another thread may hang in it, and return the call in progress, if any. It is not closed then: that would hang as well."""
        self._abandoned = True
        return self.in_progress

    def open(self) -> None:
        """Initialise NVML in this process."""
        try:
            self._call("nvmlInitWithFlags", 0)
        except NvmlError as error:
            if error.code == DRIVER_NOT_LOADED:
                raise FleetError(finding("NvmlDriverNotLoaded", platform.node())) from error
            if error.code == LIBRARY_NOT_FOUND:
                raise FleetError(finding("NvmlLibraryMissing", platform.node(), driver_root=self.driver_root)) from error
            raise FleetError(finding("NvmlCallFailed", platform.node(), call=error.call, error=error.name)) from error

    def close(self) -> None:
        """Shut NVML down in this process; it then holds no GPU."""
        self._call("nvmlShutdown")

    def reopen(self) -> None:
        """Close and open again: a mode change or a reset makes every handle stale."""
        self.close()
        self.open()


def _import_pynvml(path: str | None) -> Any:
    if path is not None:
        sys.path.insert(0, path)
    try:
        import pynvml
    except ImportError as error:
        raise FleetError(finding("PynvmlMissing", platform.node(), error=str(error))) from error
    if not hasattr(pynvml, "nvmlDeviceGetAddressingMode"):
        raise FleetError(finding("PynvmlMissing", platform.node(), error=f"{pynvml.__file__} is older than 13.580"))
    return pynvml
