# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A GPU that does not answer: how it stands in the NVML facts document, and the sentence about it.

One such GPU must not hide the others from somebody who looks (nvml_info), and must not be passed over by somebody who changes (mig_layout).
"""
from __future__ import annotations

import platform
from typing import Any, Optional

from ..reasons import Finding, FleetError, finding
from .codes import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    LIBRARY_NOT_FOUND,
    NO_PERMISSION,
    RESET_REQUIRED,
    UNINITIALIZED,
    NvmlError,
)

# Answers that concern the driver or the user, so they would be the same for every GPU of the node.
_NODE_WIDE = (UNINITIALIZED, NO_PERMISSION, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, LIB_RM_VERSION_MISMATCH)


def concerns_one_gpu(error: NvmlError) -> bool:
    """Return whether an error that came up while a GPU was read is about this GPU, and not about the node."""
    return error.code not in _NODE_WIDE


class UnreadableGpu(NvmlError):
    """A GPU that does not answer: its NVML index, and UUID and PCI bus id where NVML still tells them."""

    def __init__(self, error: NvmlError, index: int, uuid: Optional[str], pci_bus_id: Optional[str]) -> None:
        super().__init__(error.code, error.call)
        self.index = index
        self.uuid = uuid
        self.pci_bus_id = pci_bus_id

    def finding(self) -> Finding:
        """Return the judgement: GpuResetNeeded, GpuLost or GpuUnreadable."""
        known = ", ".join(text for text in (self.uuid, self.pci_bus_id) if text)
        subject = f"GPU {self.index} ({known})" if known else f"GPU {self.index}"
        details = {"index": self.index, "uuid": self.uuid, "pci_bus_id": self.pci_bus_id}
        if self.code == RESET_REQUIRED:
            return finding("GpuResetNeeded", subject, details, action=f"{self.call}: {self.name}")
        return finding("GpuLost" if self.code == GPU_IS_LOST else "GpuUnreadable", subject, details, call=self.call, error=self.name)

    def as_dict(self) -> dict[str, Any]:
        """Return an element of ``unreadable_gpus`` in the NVML facts document."""
        found = self.finding()
        return {
            "index": self.index, "uuid": self.uuid, "pci_bus_id": self.pci_bus_id, "call": self.call, "error": self.name,
            "reason": found.code, "message": found.sentence(),
        }


def as_fleet_error(error: FleetError | NvmlError) -> FleetError:
    """Return the failure as the sentence for a user: about the GPU that does not answer, or about the call on this node."""
    if isinstance(error, FleetError):
        return error
    if isinstance(error, UnreadableGpu):
        return FleetError(error.finding())
    code = "NvmlNoPermission" if error.code == NO_PERMISSION else "NvmlCallFailed"
    return FleetError(finding(code, platform.node(), call=error.call, error=error.name))
