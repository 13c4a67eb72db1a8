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
_LONGEST_PART = 3000  # characters; lists of all GPUs of a node have to fit in


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
    texts = {name: _in_line(value) if isinstance(value, str) else value for name, value in fields.items()}
    return Finding(
        code=reason.code,
        severity=reason.severity,
        subject=_in_line(subject),
        cause=reason.cause.format(**texts),
        remedy=reason.remedy.format(**texts),
        details=dict(details or {}),
    )


def _in_line(text: str) -> str:
    """Return a part of a sentence without line ends and what else does not print, and not without end: it may hold what a user or a tool wrote."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text[: 2 * _LONGEST_PART].split()))
    return line if len(line) <= _LONGEST_PART else line[: _LONGEST_PART - 3] + "..."


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
    # -- GPU health ------------------------------------------------------------------------------------------------------------------------
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
    # -- MIG layouts after a reboot --------------------------------------------------------------------------------------------------------
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
    # -- DRA: slices and verification ------------------------------------------------------------------------------------------------------
    Reason(
        "DeviceMissing", ERROR,
        "device {device} ({what}) should be published for this node but is not in pool {pool}",
        "Delete the DRA plugin pod of the node so that it looks at the GPUs again; if the device stays away, read that pod's log.",
    ),
    Reason(
        "DeviceExtra", ERROR,
        "device {device} ({what}) is published but NVML on the node has nothing that it could stand for",
        "Delete the DRA plugin pod of the node; pods that hold a claim on this device have to be deleted first.",
    ),
    Reason(
        "DeviceUuidMismatch", ERROR,
        "device {device} is published with uuid {found}, NVML on the node says {expected}",
        "Delete the DRA plugin pod of the node: it publishes what it saw when it started.",
    ),
    Reason(
        "DeviceMemoryMismatch", ERROR,
        "device {device} is published with memory {found}, NVML on the node says {expected}",
        "Delete the DRA plugin pod of the node; if the value stays wrong, compare with nvidia-smi on the node.",
    ),
    Reason(
        "DeviceAttributeMismatch", ERROR,
        "device {device} is published with attribute {attribute} {found}, expected {expected}",
        "Delete the DRA plugin pod of the node; after a driver change it publishes the old version until it is restarted.",
    ),
    Reason(
        "DeviceCapacityMismatch", ERROR,
        "device {device} is published with capacity {capacity} {found}, expected {expected}",
        "Delete the DRA plugin pod of the node: it publishes what it saw when it started.",
    ),
    Reason(
        "DuplicateDevice", ERROR,
        "device {device} is published {count} times in pool {pool}, and the scheduler refuses such a pool",
        "Delete the ResourceSlices that the plugin did not make ({slices}); the plugin restores its own.",
    ),
    Reason(
        "PoolMissing", ERROR,
        "no ResourceSlice of driver {driver} exists for this node, {count} devices are expected",
        "See that the DRA plugin pod of the node runs and is registered with the kubelet; read its log.",
    ),
    Reason(
        "PoolIncomplete", ERROR,
        "pool {pool} is incomplete: {found} of {expected} ResourceSlices at generation {generation}, the scheduler skips it",
        "Delete the DRA plugin pod of the node so that it writes all its slices again; read its log for refused writes.",
    ),
    Reason(
        "DynamicMigPublished", ERROR,
        "pool {pool} holds shared counters: the driver runs with the DynamicMIG gate and owns the MIG instances itself",
        "Turn the gate off for a cluster with static MIG layouts (mig_strategy: static).",
    ),
    Reason(
        "PluginNotRunning", ERROR,
        "the DRA plugin is not running on this node: {why}",
        "Look at the pod with kubectl describe and read its log; the node's label nvidia.com/gpu.deploy.dra-driver must be true.",
    ),
    Reason(
        "PluginCannotStart", ERROR,
        "the DRA plugin cannot start on this node: {why}",
        "Take this GPU out of the node or use a driver that the plugin supports: one such GPU stops it for all GPUs of the node.",
    ),
    Reason(
        "MigWithoutInstances", ERROR,
        "MIG mode is on but there is no GPU instance, so the GPU publishes nothing",
        "Give the GPU a layout with instances, or mode disabled, and run playbooks/mig.yml.",
    ),
    Reason(
        "MigModePending", WARNING,
        "MIG mode is {current} and will be {pending} after the next GPU reset",
        "Reset the GPU or reboot the node; until then the plugin goes by the current mode.",
    ),
    Reason(
        "GpuInstanceWithoutComputeInstance", ERROR,
        "GPU instance {profile} at start {start} has no compute instance, so it is never published",
        "Run playbooks/mig.yml, which makes the compute instance; or destroy the GPU instance.",
    ),
    Reason(
        "ComputeInstanceSmaller", ERROR,
        "GPU instance {profile} at start {start} has a compute instance of {found} of its {expected} slices, "
        "and the DRA plugin does not start with such an instance",
        "Replace it by one compute instance over the whole GPU instance: run playbooks/mig.yml.",
    ),
    Reason(
        "LayoutMismatch", ERROR,
        "the MIG layout differs from the one asked for: {difference}",
        "Run playbooks/mig.yml with --check --diff to see the plan, then without --check.",
    ),
    Reason(
        "LayoutNotCompared", ERROR,
        "the MIG layout could not be compared: {why}",
        "Correct the layout variables of the host, then verify again.",
    ),
    Reason(
        "NodeMissing", ERROR,
        "the cluster has no Node {node}",
        "Join the host to the cluster, or set dra_node_name to the name of its Node.",
    ),
    Reason(
        "NodeIdentityMismatch", ERROR,
        "Node {node} has machine id {found}, the host's own is {expected}",
        "Set dra_node_name to the Node of this very host; after a reinstallation restart its kubelet.",
    ),
    Reason(
        "HostNotJudged", WARNING,
        "not judged, {why}",
        "Run playbooks/verify.yml again for this host, without --limit, once it can be reached.",
    ),
    Reason(
        "NodeNotInPlay", WARNING,
        "has {count} devices published but no host of this play stands for it, so it is not judged",
        "Add the node to the inventory, or set dra_node_name on its host.",
    ),
    Reason(
        "NoGpuFound", WARNING,
        "NVML lists no GPU on this host",
        "See with lspci and the kernel log why the driver has none; a host that is to have no GPU does not belong to dra_hosts.",
    ),
    Reason(
        "NvmlFactsMissing", ERROR,
        "the GPUs of the host could not be read: {why}",
        "Make gpufleet.dra.nvml_info work on the host, then verify again.",
    ),
    Reason(
        "ExpectationFailed", ERROR,
        "query {query} gives {found}, expected {expected}",
        "Change the fleet or the expectation in dra_verify_expectations.",
    ),
    Reason(
        "ReportNotWritten", ERROR,
        "the report could not be written: {why}",
        "Give report_dir a folder on the controller that the user who runs Ansible may write.",
    ),
    Reason(
        "InvalidQuery", ERROR,
        "the JMESPath expression {query} is not valid: {why}",
        "Correct the expression; JMESPath is described in the Ansible documentation of json_query.",
    ),
    Reason(
        "LibraryMissing", ERROR,
        "the Python library {library} is missing in {python}",
        "Install it for the Python that runs Ansible on the controller.",
    ),
    # -- Pausing a node --------------------------------------------------------------------------------------------------------------------
    Reason(
        "DriverUpgradeInProgress", ERROR,
        "the operator is upgrading the driver of this node ({label}={value})",
        "Wait until the upgrade is done, then run again.",
    ),
    Reason(
        "ClaimsInUse", ERROR,
        "resource claims hold devices of this node: {claims}",
        "Delete the pods that use them, or drain the node, then run again.",
    ),
    Reason(
        "PauseTimedOut", ERROR,
        "after {timeout_s} s still waiting for {what}; the node stays cordoned",
        "Look at the pod with kubectl describe and kubectl logs; running again resumes where this stopped.",
    ),
    Reason(
        "PauseRecordUnreadable", ERROR,
        "annotation {annotation} is not the record of a pause: {why}",
        "Set the nvidia.com/gpu.deploy labels and the cordon of the node as they should be, then remove the annotation.",
    ),
    # -- Kubernetes API --------------------------------------------------------------------------------------------------------------------
    Reason(
        "KubeconfigUnusable", ERROR,
        "no usable configuration for the Kubernetes API: {why}",
        "Set kubeconfig (and context) to a working configuration; kubectl --kubeconfig FILE get nodes shows whether it is one.",
    ),
    Reason(
        "ApiUnreachable", ERROR,
        "the Kubernetes API server cannot be reached: {why}",
        "See that the API server runs and that this machine may connect to it; kubectl version shows the same error.",
    ),
    Reason(
        "ApiTlsUntrusted", ERROR,
        "the certificate of the Kubernetes API server is not trusted: {why}",
        "Give the cluster's certificate authority by ca_cert or in the kubeconfig; do not turn validate_certs off.",
    ),
    Reason(
        "ApiUnauthorized", ERROR,
        "the Kubernetes API server does not accept the credentials: the token or client certificate is invalid or expired",
        "Renew the credentials in the kubeconfig or api_key.",
    ),
    Reason(
        "ApiForbidden", ERROR,
        "{user} may not {verb} {resource} {scope}",
        "Grant it by a rule of a {role}: {rule}.",
    ),
    Reason(
        "ApiNotServed", ERROR,
        "the Kubernetes API server does not serve {resource} of {group_version}",
        "Upgrade the cluster to Kubernetes 1.34.2 or newer, or enable this API on the API server.",
    ),
    Reason(
        "ApiRequestFailed", ERROR,
        "{verb} {resource} failed: {why}",
        "Read the message of the API server; its log has more.",
    ),
    # -- Roles: inventory, GPU Operator, DeviceClasses ---------------------------------------------------------------------------------------
    Reason(
        "InventoryWithoutHosts", ERROR,
        "no host of the inventory is left to work on",
        "Put GPU nodes into group gpu_nodes, or give their pattern by -e dra_hosts=PATTERN; --limit has to leave one of them.",
    ),
    Reason(
        "HostPatternIgnored", ERROR,
        "the inventory sets it, where Ansible does not look when it reads the hosts of a play",
        "Take it out of the inventory and give it on the command line: -e dra_hosts=PATTERN.",
    ),
    Reason(
        "AnsibleTooOld", ERROR,
        "ansible-core {found} is older than {floor}",
        "Upgrade ansible-core on the controller.",
    ),
    Reason(
        "KubernetesTooOld", ERROR,
        "the cluster runs Kubernetes {found}, below {floor}",
        "Upgrade the cluster: earlier versions lack what NVIDIA's DRA driver needs.",
    ),
    Reason(
        "OperatorDriverUnsupported", ERROR,
        "the driver of the GPU Operator is not supported yet: layouts are made before the operator comes, and need the driver",
        "Install the driver on the hosts; leave nvidia_driver_owner at host and driver.enabled out of gpu_operator_values.",
    ),
    Reason(
        "FeatureGateUnsupported", ERROR,
        "with {gates} the DRA driver publishes what the verification cannot judge yet",
        "Leave it off.",
    ),
    Reason(
        "ClusterSettingsDiffer", ERROR,
        "there is one of it for the whole cluster, but {first} and {other} have different values",
        "Set it once for all GPU nodes, as in group_vars/gpu_nodes.",
    ),
    Reason(
        "HelmUnusable", ERROR,
        "Helm {floor} or later is needed on the controller: {why}",
        "Install Helm there, or name it by gpu_operator_helm_binary.",
    ),
    Reason(
        "HelmCredentialsUnsupported", ERROR,
        "Helm cannot use {keys} of it",
        "Put these credentials into a kubeconfig, and give kubeconfig and context only.",
    ),
    Reason(
        "ChartUnreadable", ERROR,
        "the chart cannot be read: {why}",
        "Correct gpu_operator_chart_ref, gpu_operator_chart_repo_url and gpu_operator_chart_version; helm show chart shows the same error.",
    ),
    Reason(
        "ChartTooOld", ERROR,
        "chart version {found} is below {floor}",
        "Use {floor} or later; earlier releases need repairs by hand that this role does not make.",
    ),
    Reason(
        "ValuesWithoutGpuCluster", ERROR,
        "the values deploy a ClusterPolicy or no GPUCluster",
        "Leave clusterPolicy.deployCR and gpuCluster.deployCR out of it: DRA needs the GPUCluster, which cannot stand beside a ClusterPolicy.",
    ),
    Reason(
        "ClusterPolicyExists", ERROR,
        "it exists, and a GPUCluster cannot stand beside it",
        "Remove the GPU Operator's device plugin installation first; NVIDIA supports no change in place and advises a new cluster.",
    ),
    Reason(
        "OperatorNotUpdated", ERROR,
        "after {seconds} s it is missing or does not run what was last asked for",
        "Look at its events with kubectl -n {namespace} describe deployment, and at the log of its pod.",
    ),
    Reason(
        "GpuClusterNotReady", ERROR,
        "after {seconds} s its state is {found}: {message}",
        "Look at the pods of the operator's namespace with kubectl get pods and kubectl describe.",
    ),
    Reason(
        "DaemonSetNotUpdated", ERROR,
        "after {seconds} s it is missing or does not run what was last asked for",
        "Look at its events with kubectl -n {namespace} describe daemonset, and at the log of the gpu-operator Deployment.",
    ),
    Reason(
        "PluginPodNotReady", ERROR,
        "after {seconds} s no Ready pod of the DRA plugin runs there",
        "See that the node has label nvidia.com/gpu.deploy.dra-driver=true and its pod's events: "
        "kubectl -n {namespace} get pods -o wide -l app=nvidia-dra-driver-kubelet-plugin.",
    ),
    Reason(
        "ManagedDeviceClass", ERROR,
        "the GPU Operator manages it and reverts every edit",
        "Give the class in device_classes_own a name of your own.",
    ),
    Reason(
        "ExtendedResourceDropped", ERROR,
        "the API server has dropped its extended resource {resource}",
        "Turn on the feature gate DRAExtendedResource (off by default before Kubernetes 1.36) on API server, scheduler and kubelets, "
        "or leave extended_resource_name out.",
    ),
)
