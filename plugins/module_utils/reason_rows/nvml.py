# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about NVML on the node, and what it tells about the health of GPUs."""
from __future__ import annotations

from .row import ERROR, WARNING, Reason

ROWS = (
    # -- NVML on the node --------------------------------------------------------------------------------------------------------------------
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
        "NvmlNoPermission", ERROR,
        "{call} was refused: {error}",
        "Run the task with become: managing MIG needs root.",
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
    # -- GPU health --------------------------------------------------------------------------------------------------------------------------
    Reason(
        "GpuLost", ERROR,
        "the GPU does not answer any more ({call}: {error})",
        "Look for NVRM and Xid lines in the kernel log (Xid 79: it has fallen off the bus), then reboot or power-cycle the node.",
    ),
    Reason(
        "GpuUnreadable", ERROR,
        "NVML cannot read the GPU ({call}: {error})",
        "Run again when the driver has brought it up; if it stays so, look for NVRM lines in the kernel log.",
    ),
    Reason(
        "GpuUnhealthy", ERROR,
        "the GPU must not be partitioned as it is: {why}",
        "{remedies} To partition it all the same set ignore_health to true.",
    ),
    Reason(
        "GpuResetNeeded", ERROR,
        "the driver asks for a reset of the GPU ({action})",
        "Stop every client of the GPU and reset it with nvidia-smi -r -i and its UUID, or reboot the node.",
    ),
    Reason(
        "NodeRebootNeeded", ERROR,
        "the driver asks for a reboot to recover the GPU ({action})",
        "Drain the node and reboot it.",
    ),
    Reason(
        "GpuRecoveryNeeded", ERROR,
        "the driver asks for an action to recover the GPU ({action})",
        "Look up Xid 154 in NVIDIA's Xid catalogue, which describes these actions; drain the node first.",
    ),
    Reason(
        "RowRemapFailed", ERROR,
        "remapping a faulty memory row has failed",
        "Replace the GPU: this is a criterion for NVIDIA's RMA; nvidia-smi -q -d ROW_REMAPPER has the details.",
    ),
    Reason(
        "RowRemapPending", ERROR,
        "a faulty memory row waits to be remapped by the next GPU reset",
        "Stop every client of the GPU and reset it with nvidia-smi -r -i and its UUID, or reboot the node.",
    ),
    Reason(
        "SramErrorsExceeded", ERROR,
        "the GPU has more uncorrectable SRAM errors than its threshold",
        "Replace the GPU: this is a criterion for NVIDIA's RMA; nvidia-smi -q -d ECC has the details.",
    ),
    Reason(
        "EccDisabled", WARNING,
        "ECC is off, so memory errors stay unseen",
        "Turn it on with nvidia-smi -e 1 and reset the GPU, unless it is off on purpose.",
    ),
    Reason(
        "RepairPending", WARNING,
        "a repair of the GPU's memory channels or processors waits for the next GPU reset",
        "Reset the GPU with nvidia-smi -r -i and its UUID at the next maintenance.",
    ),
    Reason(
        "ClocksHeldBack", WARNING,
        "the hardware holds the GPU's clocks back ({reasons})",
        "Look at its cooling and power supply; nvidia-smi -q -d PERFORMANCE has the details.",
    ),
    Reason(
        "FabricNotReady", WARNING,
        "the GPU cannot use its NVLink fabric: {why}",
        "Look at the fabric manager's service and log; CUDA does not start on the whole GPU until the fabric is up.",
    ),
)
