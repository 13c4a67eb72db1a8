# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the modules that load NVML have in common: options, the Python floor, and failures as sentences."""
from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..reasons import FleetError, finding
from .codes import NvmlError
from .unreadable import as_fleet_error

NVML_ARG_SPEC: dict[str, dict[str, Any]] = {
    "driver_root": {"type": "path", "default": "/"},
    "pynvml_path": {"type": "path"},
}
_OLDEST_PYTHON = (3, 9)


def require_python() -> None:
    """Refuse a Python that the engine does not support. Raises FleetError PythonTooOld."""
    if sys.version_info < _OLDEST_PYTHON:
        raise FleetError(finding("PythonTooOld", platform.node(), found=platform.python_version()))


@contextmanager
def failures(module: Any, result: dict[str, Any] | None = None) -> Iterator[None]:
    """Turn FleetError and NvmlError inside the block into fail_json with reason and remedy. ``result`` holds what is true at failure time."""
    try:
        yield
    except (FleetError, NvmlError) as error:
        truth = {} if result is None else result
        give_warnings(module, truth)
        module.fail_json(**{**truth, **as_fleet_error(error).as_failure()})


def give_warnings(module: Any, result: dict[str, Any]) -> None:
    """Hand the texts under ``warnings`` to Ansible as warnings, and take them out of the result."""
    for text in result.pop("warnings", []):
        module.warn(text)
