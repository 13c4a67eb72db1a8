# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NVML library that is installed, and what NVML itself answers."""
from __future__ import annotations

import re
from threading import Thread
from typing import Any

from ..nvml.codes import LIB_RM_VERSION_MISMATCH, NvmlError
from ..nvml.library import library_candidates
from ..nvml.session import NvmlSession
from ..nvml.unreadable import as_fleet_error
from ..reasons import FleetError, finding
from .node import Node

_VERSION = re.compile(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)*)$")
_ANSWER_SECONDS = 60.0


def read_library(node: Node, driver_root: str) -> dict[str, Any] | None:
    """Return ``library`` of the driver facts: the file that libnvidia-ml.so.1 leads to, with its version (None where its name has none), or None."""
    for path in library_candidates(driver_root):
        if node.exists(str(path)):
            real = node.real(str(path))
            found = _VERSION.search(real)
            return {"path": real, "version": found.group(1) if found else None}
    return None


def read_nvml(node: Node, driver_root: str, pynvml_path: str | None, loaded: bool) -> dict[str, Any]:
    """Return ``nvml`` of the driver facts: the driver's version and the number of GPUs, or the ``error``.

    Without a ``loaded`` kernel module NVML is not called: as root it would load the module, and this only reads. A driver that does not answer within a
    minute is an error as well.
    """
    if not loaded:
        return _failed(FleetError(finding("NvmlDriverNotLoaded", node.name)), mismatch=False)
    answer: list[dict[str, Any]] = []
    asking = Thread(target=lambda: answer.append(_ask(driver_root, pynvml_path)), daemon=True)
    asking.start()
    asking.join(_ANSWER_SECONDS)
    if not answer:
        error = f"no answer in {_ANSWER_SECONDS:g} s"
        return _failed(FleetError(finding("NvmlCallFailed", node.name, call="nvmlInit", error=error)), mismatch=False)
    return answer[0]


def _ask(driver_root: str, pynvml_path: str | None) -> dict[str, Any]:
    try:
        with NvmlSession(driver_root, pynvml_path) as session:
            return {"version": session.driver_version(), "gpus": session.device_count(), "error": None}
    except (FleetError, NvmlError) as error:
        # What NVML said lies below the sentence that the session made of it.
        cause = error if isinstance(error, NvmlError) else error.__cause__
        return _failed(as_fleet_error(error), mismatch=isinstance(cause, NvmlError) and cause.code == LIB_RM_VERSION_MISMATCH)
    except Exception as error:  # such as a binding that lacks a function; from a thread nobody hears of it otherwise
        return _failed(FleetError(finding("NvmlCallFailed", "NVML", call="nvmlInit", error=f"{type(error).__name__}: {error}")), mismatch=False)


def _failed(error: FleetError, mismatch: bool) -> dict[str, Any]:
    """Return the facts for NVML that fails; ``mismatch``: the library has another version than the loaded module."""
    return {"version": None, "gpus": None, "error": {"reason": error.finding.code, "cause": error.finding.cause, "mismatch": mismatch}}
