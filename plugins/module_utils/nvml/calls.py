# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How NVML is called: one way in, one error type. The groups of calls (gpu_calls, mig_calls, health_calls) build on it."""
from __future__ import annotations

from typing import Any, Callable, Optional

from .codes import FUNCTION_NOT_FOUND, NvmlError


class NvmlCalls:
    """Base of the groups of calls. ``_pynvml`` is the pynvml module of an open session; every method of a group raises NvmlError.

    ``in_progress`` is the function that is being called, for another thread that finds it hanging.
    """

    _pynvml: Any = None
    in_progress: Optional[str] = None

    def _call(self, function: str, *args: Any) -> Any:
        """Return what a function of pynvml returns."""
        self.in_progress = function
        try:
            return getattr(self._pynvml, function)(*args)
        except self._pynvml.NVMLError as error:
            raise NvmlError(error.value, function) from error
        finally:
            self.in_progress = None

    def _call_symbol(self, symbol: str, *args: Any) -> None:
        """Call a function of the library itself, for what pynvml does not wrap."""
        function = getattr(self._pynvml.nvmlLib, symbol, None)
        self.in_progress = symbol
        try:
            code = FUNCTION_NOT_FOUND if function is None else function(*args)
        finally:
            self.in_progress = None
        if code:
            raise NvmlError(code, symbol)


def optional(call: Callable[[], Any], *codes: int) -> Any:
    """Return what ``call`` returns, or None when it fails with one of these NVML codes."""
    try:
        return call()
    except NvmlError as error:
        if error.code in codes:
            return None
        raise


def text(value: Any) -> str:
    """Return a string of NVML, which pynvml gives as bytes or as str."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
