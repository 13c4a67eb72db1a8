# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about the NVIDIA driver of a host."""
from __future__ import annotations

from .row import ERROR, WARNING, Reason

ROWS = (
    # -- what was asked for ------------------------------------------------------------------------------------------------------------------
    Reason(
        "DriverOptionInvalid", ERROR,
        "{option} is '{value}'",
        "Set it to {allowed}.",
    ),
    Reason(
        "DriverVersionNotOfBranch", ERROR,
        "version {version} is not of branch {branch}",
        "Set nvidia_driver_branch to the version's own branch, or leave it out: the version implies it.",
    ),
    Reason(
        "DriverPlatformUnlisted", ERROR,
        "no driver is known for {host}",
        "Take a host of the support matrix (docs/driver-support.md); nearest: {choices}.",
    ),
    Reason(
        "DriverBranchUnlisted", ERROR,
        "branch {branch} is not in {where}",
        "Choose one that is; nearest: {choices}.",
    ),
    Reason(
        "DriverBranchBelowDra", ERROR,
        "branch {branch} is older than 580, the first that NVIDIA supports with its DRA driver",
        "Choose one of {choices}.",
    ),
    Reason(
        "DriverBranchEnded", ERROR,
        "NVIDIA's support of branch {branch} ended {ended}",
        "Choose one of {choices}, or set nvidia_driver_allow_ended_branch to true.",
    ),
    Reason(
        "DriverBranchShortLived", WARNING,
        "branch {branch} is a short-lived one, which NVIDIA does not mean for production",
        "Choose one of {choices} for production.",
    ),
    Reason(
        "DriverSourceUnlisted", ERROR,
        "no driver from {source} is known for {where}",
        "Set nvidia_driver_source to one that is; nearest: {choices}.",
    ),
    Reason(
        "DriverFlavourUnfit", ERROR,
        "{flavour} kernel modules do not fit: {why}",
        "Leave nvidia_driver_flavour at auto, or choose what fits: {choices}.",
    ),
    Reason(
        "DriverKeyUnknown", ERROR,
        "the fingerprint of the key at {key_url} is not known",
        "Set nvidia_driver_repository_key_fingerprint to it, after comparing it with what NVIDIA publishes.",
    ),
    Reason(
        "DriverPackageManagerMissing", ERROR,
        "the driver is installed with {wanted}, and the host has {found}",
        "Install {wanted} and its Python module on the host.",
    ),
    # -- the host's GPUs ---------------------------------------------------------------------------------------------------------------------
    Reason(
        "NoGpuOnPci", ERROR,
        "no NVIDIA GPU is on the PCI bus",
        "Take the host out of the group of GPU nodes, or look at its slots, BIOS settings and pass-through.",
    ),
    Reason(
        "DriverGpuUnknown", WARNING,
        "GPU {address} has PCI device id {device}, which is not in the tables here",
        "See NVIDIA's release notes whether driver {driver} supports it; nothing is refused for it.",
    ),
    Reason(
        "DriverTooOldForGpu", ERROR,
        "driver {driver} is too old for the GPU {product} at {address}, which needs {first} or newer",
        "Choose branch {choices}.",
    ),
    Reason(
        "DriverTooNewForGpu", ERROR,
        "branch {branch} no longer supports the GPU {product} at {address}; the last one to do so is {last}",
        "Set nvidia_driver_branch to {last}.",
    ),
    # -- what is on the host already ---------------------------------------------------------------------------------------------------------
    Reason(
        "ImageBasedHost", ERROR,
        "the system is an image ({evidence}), in which packages are not installed",
        "Put the driver into the image, or let the GPU Operator own it (nvidia_driver_owner: operator).",
    ),
    Reason(
        "RunfileDriver", ERROR,
        "a driver from NVIDIA's runfile is installed ({evidence})",
        "Remove it with nvidia-uninstall, reboot, and run again.",
    ),
    Reason(
        "ContainerDriverPresent", ERROR,
        "a driver container runs on the host ({evidence})",
        "Let the GPU Operator own the driver (nvidia_driver_owner: operator), or take the host out of its NVIDIADriver or ClusterPolicy first.",
    ),
    Reason(
        "DriverOnHost", ERROR,
        "the GPU Operator is to own the driver, and the host has one of its own ({evidence})",
        "Remove it (nvidia_driver_state: absent, where this collection installed it), or set nvidia_driver_owner to host.",
    ),
    Reason(
        "DriverOriginMixed", ERROR,
        "driver packages are installed that do not come from {wanted} ({evidence})",
        "Remove them first, or set nvidia_driver_source to where they come from: origins cannot be mixed on one host.",
    ),
    Reason(
        "DriverOriginUnknown", WARNING,
        "the installed driver packages {evidence} do not say that NVIDIA or the distribution made them",
        "Look where they came from; packages of several origins on one host do not work together.",
    ),
    Reason(
        "DriverForeignRepository", ERROR,
        "another repository with drivers is configured ({evidence})",
        "Remove it, so that updates cannot bring a driver of another origin; this collection adds the repository that it needs itself.",
    ),
    Reason(
        "NouveauLoaded", ERROR,
        "the kernel module nouveau is loaded and holds the GPUs",
        "Set nvidia_driver_reboot_ok to true: it is then put on the blacklist, and the host is rebooted.",
    ),
    Reason(
        "SecureBootUnsigned", ERROR,
        "Secure Boot is on ({evidence}), and the kernel module of this driver is built on the host and not signed by a key that it trusts",
        "Enrol the key that signs it (/var/lib/dkms/mok.pub) in the host's firmware, turn Secure Boot off, or take {signed}.",
    ),
    Reason(
        "KernelHeadersMissing", ERROR,
        "kernel {release}, which boots next, has no headers to build the kernel module with, and no configured source has {package}",
        "Add a source that has it, or boot a kernel whose headers are there.",
    ),
    # -- after the installation --------------------------------------------------------------------------------------------------------------
    Reason(
        "DriverMissing", ERROR,
        "no driver package is installed",
        "Run the role nvidia_driver.",
    ),
    Reason(
        "DriverVersionMixed", ERROR,
        "the driver's packages differ in version ({evidence})",
        "Run the role nvidia_driver again; if it stays so, look at the package manager's holds and pins.",
    ),
    Reason(
        "DriverVersionWrong", ERROR,
        "driver {found} is installed instead of {wanted}",
        "Run the role nvidia_driver again; look at the holds and pins, and at what the repository offers.",
    ),
    Reason(
        "DriverBranchWrong", ERROR,
        "driver {found} is installed, which is not of branch {wanted}",
        "Run the role nvidia_driver again; a transitional package may have moved the branch.",
    ),
    Reason(
        "DriverFlavourWrong", ERROR,
        "the {where} kernel module is {found}, not {wanted}",
        "Run the role nvidia_driver again, then reboot.",
    ),
    Reason(
        "DriverModuleMissing", ERROR,
        "kernel {release} has no kernel module of driver {wanted} ({found})",
        "Look at dkms status and its make.log on the host: dkms reports success also when a build was skipped.",
    ),
    Reason(
        "DriverModuleUnsigned", ERROR,
        "Secure Boot is on, and the kernel module for {release} has no signature",
        "Install signed modules (nvidia_driver_source: distribution), or sign it with an enrolled key.",
    ),
    Reason(
        "DriverReloadPending", WARNING,
        "the host has to be rebooted for its driver: {why}",
        "Reboot it, or set nvidia_driver_reboot_ok to true.",
    ),
    Reason(
        "DriverNotLoaded", ERROR,
        "the driver's kernel module is not loaded",
        "Look for lines of nvidia, NVRM and module signatures in the kernel log, then run modprobe nvidia.",
    ),
    Reason(
        "DriverLoadedOther", ERROR,
        "kernel module {loaded} is loaded, and {installed} is installed",
        "Reboot the host; if it stays so, an old module is in the initramfs or in another folder of /lib/modules.",
    ),
    Reason(
        "DriverLibraryOther", ERROR,
        "libnvidia-ml.so.1 is {found} ({path}), and the packages are {wanted}",
        "Look which package owns the file: one that belongs to no package is left from a runfile.",
    ),
    Reason(
        "DriverNvmlFailed", ERROR,
        "NVML does not answer: {why}",
        "Run nvidia-smi on the host, and look for NVRM lines in the kernel log.",
    ),
    Reason(
        "DriverNvmlOther", ERROR,
        "NVML reports driver {found}, and {wanted} is loaded",
        "Reboot the host.",
    ),
    Reason(
        "GpuCountWrong", ERROR,
        "NVML sees {found} GPUs, and {wanted} are on the PCI bus",
        "Look for NVRM and Xid lines in the kernel log (Xid 79: a GPU has fallen off the bus).",
    ),
    Reason(
        "FabricManagerWrong", ERROR,
        "{why}",
        "Run the role nvidia_driver again, then look at journalctl -u nvidia-fabricmanager; without it CUDA does not start (error 802).",
    ),
    Reason(
        "ImexUnitRunning", ERROR,
        "nvidia-imex.service is not disabled and masked",
        "Run the role nvidia_driver again: the DRA driver runs the IMEX daemons itself.",
    ),
    Reason(
        "PersistenceDaemonDown", ERROR,
        "nvidia-persistenced.service is not active",
        "Look at journalctl -u nvidia-persistenced.",
    ),
    Reason(
        "DriverNotHeld", ERROR,
        "the package manager does not hold {names}",
        "Run the role nvidia_driver again, so that updates leave the driver alone.",
    ),
    # -- the role and the rollout ------------------------------------------------------------------------------------------------------------
    Reason(
        "DriverPackagesMissing", ERROR,
        "{url} does not offer {packages}",
        "Complete the mirror, or choose a branch or version that it has whole.",
    ),
    Reason(
        "DriverTransactionFailed", ERROR,
        "the package manager could not change the driver: {why}",
        "Pins and holds are in place. Mend what it names and run again; the run goes on from there.",
    ),
    Reason(
        "DriverNodeInService", ERROR,
        "a kubelet runs here and a driver is loaded, which would change under its pods (it is held by {holders})",
        "Run playbook gpufleet.dra.upgrade_driver (or uninstall_driver), which drains the node first.",
    ),
    Reason(
        "DriverNoPrevious", ERROR,
        "there is no version before this one to go back to",
        "Set nvidia_driver_version to the version that you want.",
    ),
    Reason(
        "DriverRecordUnreadable", ERROR,
        "/var/lib/gpufleet-dra/nvidia_driver.json is not what this role writes ({why})",
        "Put it back from a backup; without it the host cannot be left as it was found. Deleted, the driver counts as not installed by this collection.",
    ),
    Reason(
        "DriverNotOurs", WARNING,
        "a driver is installed that this collection did not bring ({packages})",
        "Remove it with the package manager, if it has to go.",
    ),
    Reason(
        "DriverRebootPending", ERROR,
        "the host has to be rebooted before its GPUs can be used: {why}",
        "Reboot it, or run again with nvidia_driver_reboot_ok set to true.",
    ),
    Reason(
        "DriverDrainFailed", ERROR,
        "the node could not be drained: {why}",
        "Move or end the pods, or loosen their disruption budget; nvidia_driver_drain_options with force true also takes pods that nothing makes again.",
    ),
    Reason(
        "DriverRolloutStopped", ERROR,
        "the rollout stopped here while {phase}: {why}",
        "{node} Done: {done}. Not begun: {waiting}. Mend the host and run the playbook again; it goes on from there.",
    ),
)
