# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML return codes by name (nvml.h, nvmlReturn_t), and the error that carries one. Needs no NVML library."""
from __future__ import annotations

UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
LIB_RM_VERSION_MISMATCH = 18
IN_USE = 19
NO_DATA = 21
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26

# What a query answers that this GPU, this driver or this user cannot have answered; says nothing about the GPU's state.
NOT_TOLD = (INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND, NO_DATA, ARGUMENT_VERSION_MISMATCH, DEPRECATED)

_NAMES = {
    0: "SUCCESS", 1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 5: "ALREADY_INITIALIZED", 6: "NOT_FOUND",
    7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER", 9: "DRIVER_NOT_LOADED", 10: "TIMEOUT", 11: "IRQ_ISSUE", 12: "LIBRARY_NOT_FOUND",
    13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST", 16: "RESET_REQUIRED", 17: "OPERATING_SYSTEM",
    18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY", 21: "NO_DATA", 22: "VGPU_ECC_NOT_SUPPORTED", 23: "INSUFFICIENT_RESOURCES",
    24: "FREQ_NOT_SUPPORTED", 25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY", 28: "GPU_NOT_FOUND", 29: "INVALID_STATE",
    30: "RESET_TYPE_NOT_SUPPORTED", 999: "UNKNOWN",
}


def code_name(code: int) -> str:
    """Return the name of a return code without its NVML_ERROR_ prefix, such as ``IN_USE``."""
    return _NAMES.get(code, f"code {code}")


class NvmlError(Exception):
    """An NVML call that did not succeed: ``code`` (nvmlReturn_t), ``name`` of the code, ``call`` (the C function)."""

    def __init__(self, code: int, call: str) -> None:
        self.code = code
        self.name = code_name(code)
        self.call = call
        super().__init__(f"{call}: {self.name} ({code})")
