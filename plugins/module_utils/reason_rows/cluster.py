# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reasons about the cluster: node pause, Kubernetes API, inventory, GPU Operator, DeviceClasses."""
from __future__ import annotations

from .row import ERROR, Reason

ROWS = (
    # -- Pausing a node ----------------------------------------------------------------------------------------------------------------------
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
    # -- Kubernetes API ----------------------------------------------------------------------------------------------------------------------
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
