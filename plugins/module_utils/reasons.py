# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The registry of every reason code that a user of this collection can meet.

A failure, a verification finding and a preflight check all speak this one language: a stable ``reason`` code in CamelCase (as Kubernetes
conditions have them), one sentence with the object's name and the cause, and the remedy. docs/troubleshooting.md is generated from here.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ERROR = "error"
WARNING = "warning"
INFO = "info"


@dataclass(frozen=True)
class Reason:
    """One row of the registry. ``cause`` and ``remedy`` are str.format templates over the fields given to :func:`finding`."""

    code: str
    severity: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Finding:
    """One judgement about one object.

    ``subject`` names the object (node, GPU, device, file); ``details`` holds what is useful to a program, usually ``expected`` and ``found``.
    """

    code: str
    severity: str
    subject: str
    cause: str
    remedy: str
    details: dict[str, Any] = field(default_factory=dict)

    def sentence(self) -> str:
        """Return the text for a person: object, cause, remedy and reason code in one line."""
        return f"{self.subject}: {self.cause}. {self.remedy} [{self.code}]"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for results, JSON reports and fail_json."""
        return {
            "reason": self.code,
            "severity": self.severity,
            "object": self.subject,
            "cause": self.cause,
            "remedy": self.remedy,
            "details": self.details,
        }


class FleetError(Exception):
    """A failure that a user can understand: carries its :class:`Finding`, and modules turn it into fail_json."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.sentence())
        self.finding = found

    def as_failure(self) -> dict[str, Any]:
        """Return the keyword arguments of ``fail_json``: msg, reason, remedy, object, cause, severity, details."""
        return dict(self.finding.as_dict(), msg=self.finding.sentence())


def _rows(*rows: Reason) -> dict[str, Reason]:
    table: dict[str, Reason] = {}
    for row in rows:
        if row.code in table:
            raise ValueError(f"reason {row.code} is registered twice")
        table[row.code] = row
    return table


def finding(code: str, subject: str, details: dict[str, Any] | None = None, **fields: Any) -> Finding:
    """Make the Finding for a registered ``code``. Raises KeyError for an unknown code or a template field that was not given."""
    reason = REASONS[code]
    return Finding(
        code=reason.code,
        severity=reason.severity,
        subject=subject,
        cause=reason.cause.format(**fields),
        remedy=reason.remedy.format(**fields),
        details=dict(details or {}),
    )


REASONS = _rows(
    # -- NVML on the node ------------------------------------------------------------------------------------------------------------------
    Reason(
        "NvmlLibraryMissing", ERROR,
        "libnvidia-ml.so.1 was not found under driver root {driver_root}",
        "Install the NVIDIA driver on the node, or set driver_root to where it is installed "
        "(/run/nvidia/driver for a driver container).",
    ),
    Reason(
        "NvmlDriverNotLoaded", ERROR,
        "the NVIDIA kernel driver is not loaded",
        "Load it (modprobe nvidia) or reboot the node after the driver installation.",
    ),
    Reason(
        "NvmlCallFailed", ERROR,
        "{call} failed: {error}",
        "Run nvidia-smi on the node; if it shows the same error, look at the kernel log for NVRM lines.",
    ),
    Reason(
        "PythonTooOld", ERROR,
        "Python {found} is older than 3.9",
        "Point ansible_python_interpreter to Python 3.9 or newer on this host.",
    ),
    Reason(
        "PynvmlMissing", ERROR,
        "Python cannot use nvidia-ml-py: {error}",
        "Install nvidia-ml-py >= 13.580 beside ansible-core on the controller (it is then carried to the node), or on the node itself.",
    ),
    Reason(
        "PynvmlCorrupt", ERROR,
        "{path} does not have the checksum that its installation recorded",
        "Reinstall nvidia-ml-py on the controller.",
    ),
    # -- MIG layouts -----------------------------------------------------------------------------------------------------------------------
    Reason(
        "InvalidLayout", ERROR,
        "{problem}",
        "{allowed}.",
    ),
    Reason(
        "LayoutFileUnreadable", ERROR,
        "{problem}",
        "Give a mig-parted configuration: a YAML file with version: v1 and mig-configs.",
    ),
    Reason(
        "UnknownConfigName", ERROR,
        "there is no configuration named {name}",
        "Set mig_parted_selected to one of: {known}.",
    ),
    Reason(
        "LayoutMatchesNothing", ERROR,
        "no GPU of this node matches {match}",
        "Correct the match; this node has {gpus}.",
    ),
    Reason(
        "NotMigCapable", ERROR,
        "{gpu} does not support MIG, but the layout enables it",
        "Match only MIG-capable GPUs, or set mode to disabled or unmanaged for this one.",
    ),
    Reason(
        "UnknownProfile", ERROR,
        "{gpu} offers no MIG profile {profile}",
        "Use one of the profiles that its driver offers: {offered}.",
    ),
    Reason(
        "ImpossibleLayout", ERROR,
        "{wanted} cannot stand on {gpu} together: {why}",
        "Ask for fewer or smaller instances; the GPU offers {offered}.",
    ),
    Reason(
        "ProfilesNotListed", ERROR,
        "the driver lists no MIG profiles for {gpu} while its MIG mode is off",
        "Enable MIG mode first with an empty layout (instances: {{}}), or use a newer driver.",
    ),
    Reason(
        "InstanceBusy", ERROR,
        "{what} is in use by {holders}",
        "Stop these processes, or set on_busy to wait; nothing was destroyed for this GPU.",
    ),
    Reason(
        "LayoutLocked", ERROR,
        "another run changes the MIG layout of this node (process {pid})",
        "Wait until it has ended, or set on_busy to wait.",
    ),
    Reason(
        "StateDirUnusable", ERROR,
        "the lock file cannot be opened: {error}",
        "Run the task with become, or set state_dir to a folder that it may write.",
    ),
    Reason(
        "ResetRequired", ERROR,
        "MIG mode is set to {mode} but takes effect only after a GPU reset ({status})",
        "Stop every client of the GPU and set allow_reset to true, or reboot the node; then run again.",
    ),
    Reason(
        "RebootRequired", ERROR,
        "MIG mode is set to {mode} but this GPU cannot be reset here ({status})",
        "Reboot the node (a virtual machine: restart it), then run again.",
    ),
    Reason(
        "ModeChangeFailed", ERROR,
        "MIG mode could not be set to {mode}: {error}",
        "Run as root and stop every client of the GPU; on a vGPU guest MIG mode belongs to the host.",
    ),
    Reason(
        "GpuResetFailed", ERROR,
        "the GPU could not be reset: {error}",
        "Stop every client of the GPU (monitoring agents too) and run again, or reboot the node.",
    ),
    Reason(
        "InstanceDestroyFailed", ERROR,
        "{what} could not be destroyed: {error}",
        "Find what holds it (nvidia-smi, open files below /dev/nvidia-caps); run again afterwards. Done before: {done}.",
    ),
    Reason(
        "InstanceCreateFailed", ERROR,
        "{what} could not be created: {error}",
        "Stop CUDA processes that started on the GPU meanwhile, then run again. Done before: {done}.",
    ),
    Reason(
        "ReadBackMismatch", ERROR,
        "after the change the node does not have the layout: {differences}",
        "Something else changed the GPU meanwhile; find it (mig-manager, DynamicMIG, nvidia-smi), then run again.",
    ),
    # -- DRA: slices and verification ------------------------------------------------------------------------------------------------------
    # -- Kubernetes API --------------------------------------------------------------------------------------------------------------------
)
