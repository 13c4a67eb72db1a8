# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The steps of a plan: the only things that this collection ever does to a GPU."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

DESTROY_COMPUTE_INSTANCE = "destroy_compute_instance"
DESTROY_GPU_INSTANCE = "destroy_gpu_instance"
SET_MODE = "set_mode"
CREATE_GPU_INSTANCE = "create_gpu_instance"
CREATE_COMPUTE_INSTANCE = "create_compute_instance"


@dataclass(frozen=True)
class Step:
    """One action on one GPU. Instances are named by (profile id, start), which is stable, and by the ids NVML gave them where they exist already.

    ``start`` and ``size`` are memory slots; ``compute_slices`` and ``compute_start`` are compute slices inside the GPU instance.
    """

    action: str
    gpu_uuid: str
    gpu_label: str
    profile: str = ""
    profile_id: Optional[int] = None
    start: Optional[int] = None
    size: Optional[int] = None
    compute_slices: Optional[int] = None
    compute_start: Optional[int] = None
    gpu_instance_id: Optional[int] = None
    compute_instance_id: Optional[int] = None
    enable: Optional[bool] = None

    @property
    def what(self) -> str:
        """Return the object of the step without its GPU, for messages that name the GPU already."""
        if self.action == SET_MODE:
            return "MIG mode"
        if self.action in (DESTROY_GPU_INSTANCE, CREATE_GPU_INSTANCE):
            return f"GPU instance {self.profile} at start {self.start}"
        return f"compute instance {self.compute_slices}c of {self.profile} at start {self.start}"

    @property
    def text(self) -> str:
        """Return the step as one line for a person."""
        verb = ("enable" if self.enable else "disable") if self.action == SET_MODE else self.action.split("_")[0]
        return f"{verb} {self.what} on {self.gpu_label}"

    def as_dict(self) -> dict[str, Any]:
        """Return the step as plain data: action, text, parent_uuid and the fields that the action has."""
        fields = {
            "profile": self.profile or None, "profile_id": self.profile_id, "start": self.start, "size": self.size,
            "compute_slices": self.compute_slices, "compute_start": self.compute_start,
            "gpu_instance_id": self.gpu_instance_id, "compute_instance_id": self.compute_instance_id, "enable": self.enable,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return {"action": self.action, "text": self.text, "parent_uuid": self.gpu_uuid, **given}
