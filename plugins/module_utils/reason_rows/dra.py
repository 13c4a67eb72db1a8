# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about the published devices and their verification."""
from __future__ import annotations

from .row import ERROR, WARNING, Reason

ROWS = (
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
)
