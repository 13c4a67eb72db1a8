# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about MIG layouts, and the service that makes them at boot."""
from __future__ import annotations

from .row import ERROR, WARNING, Reason

ROWS = (
    # -- MIG layouts -------------------------------------------------------------------------------------------------------------------------
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
        "LayoutEntryUnused", WARNING,
        "this entry decides about no GPU of the node, for all that it matches are decided by {winners}",
        "Remove it, or move it so that it counts: in layouts the first match decides, in a mig-parted file the last.",
    ),
    Reason(
        "LayoutGpuAbsent", WARNING,
        "it names GPUs that this node does not have ({missing})",
        "Nothing has to be done where one file serves nodes with fewer GPUs; elsewhere look for the GPU that is missing.",
    ),
    Reason(
        "LayoutEntriesOverlap", WARNING,
        "{winner} decides, but {losers} matches this GPU too and asks for something else",
        "Make the matches exclude each other, so that the order of the entries does not decide.",
    ),
    Reason(
        "ImpossibleDivision", ERROR,
        "{profile} cannot hold compute instances {wanted}",
        "Ask for compute instances that fit together; it offers {offered}.",
    ),
    Reason(
        "DividedInstance", WARNING,
        "{gpu} gets GPU instances whose compute instances are smaller than themselves ({instances})",
        "Use them only where NVIDIA's DRA driver does not run: its plugin does not start beside such an instance.",
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
        "UnknownGpuModel", ERROR,
        "it is neither a GPU model of the offline tables nor NVML facts",
        "Give one of {known}; or for any other GPU nvml, or an element of nvml.gpus, from the result of gpufleet.dra.nvml_info.",
    ),
    Reason(
        "ProfilesNotListed", ERROR,
        "the driver lists no MIG profiles for {gpu} while its MIG mode is off",
        "Enable MIG mode first with an empty layout (instances: {{}}), or use a newer driver.",
    ),
    Reason(
        "InstanceBusy", ERROR,
        "{what} is in use by {holders}",
        "Stop these processes, or set on_busy to wait; nothing is destroyed that is in use.",
    ),
    Reason(
        "LayoutLocked", ERROR,
        "another run changes the MIG layout of this node (process {pid})",
        "Wait until it has ended, or set on_busy to wait.",
    ),
    Reason(
        "StateDirUnusable", ERROR,
        "the file cannot be written: {error}",
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
        "Find what holds it (nvidia-smi, open files below /dev/nvidia-caps); run again afterwards.",
    ),
    Reason(
        "InstanceCreateFailed", ERROR,
        "{what} could not be created: {error}",
        "Stop CUDA processes that started on the GPU meanwhile, then run again.",
    ),
    Reason(
        "ReadBackMismatch", ERROR,
        "after the change the node does not have the layout: {differences}",
        "Something else changed the GPU meanwhile; find it (mig-manager, DynamicMIG, nvidia-smi), then run again.",
    ),
    Reason(
        "PhaseTimeout", ERROR,
        "phase {phase} took longer than {limit} s; in progress: {act}{call}",
        "Look for NVRM and Xid lines in the kernel log: a driver that hangs needs a reboot. Otherwise raise phase_timeout and run again. {left}.",
    ),
    # -- MIG layouts after a reboot ----------------------------------------------------------------------------------------------------------
    Reason(
        "BootServiceNeedsHostDriver", ERROR,
        "the boot service cannot make layouts with the driver below {driver_root}, which comes after the kubelet",
        "Set mig_boot_service to false, or install the driver on the host (mig_driver_root /).",
    ),
    Reason(
        "BootPauseNeedsNode", ERROR,
        "mig_boot_on_failure is pause, but this host is no node of a cluster (mig_manage_node is false)",
        "Set mig_boot_on_failure to hold, or mig_manage_node to true.",
    ),
    Reason(
        "KubeletCredentialsUnusable", ERROR,
        "the boot service cannot use the kubelet's way to the API server: {why}",
        "Name a kubeconfig with client certificate files by mig_boot_kubeconfig (and the API server by mig_boot_api_server), "
        "or set mig_boot_on_failure to hold.",
    ),
    Reason(
        "BootLayoutDiffers", ERROR,
        "the boot service does not agree with the GPUs: {why}",
        "Something else changed them meanwhile; run playbooks/mig.yml again.",
    ),
    Reason(
        "BootUnitNotStarted", ERROR,
        "gpufleet-mig.service could not be started on the node; its journal ends with: {journal}",
        "Run systemctl start gpufleet-mig.service there once the cause is gone; until then the kubelet would not start again.",
    ),
    Reason(
        "BootSettingsUnusable", ERROR,
        "the boot service cannot use its settings: {why}",
        "Run playbooks/mig.yml for this node, which writes them.",
    ),
    Reason(
        "BootEngineEnded", ERROR,
        "the MIG engine {how}",
        "Look at the kernel log for NVRM lines; when the GPUs answer nvidia-smi again, start gpufleet-mig.service, or the kubelet.",
    ),
    Reason(
        "BootPauseFailed", ERROR,
        "label {label} could not be set to keep the DRA plugin away, so the kubelet is held back: {why}",
        "Remove the cause of the failed layout, then start the kubelet: that tries again.",
    ),
)
