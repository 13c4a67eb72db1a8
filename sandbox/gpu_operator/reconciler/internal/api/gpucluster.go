// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package api holds what the stand-in knows of the operator's custom resources: names, the part of the
// GPUCluster specification that it acts on, and the values that its status may take.
package api

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that the operator serves.
var (
	GPUClusterKind    = schema.GroupVersionKind{Group: "nvidia.com", Version: "v1alpha1", Kind: "GPUCluster"}
	NVIDIADriverKind  = schema.GroupVersionKind{Group: "nvidia.com", Version: "v1alpha1", Kind: "NVIDIADriver"}
	ClusterPolicyKind = schema.GroupVersionKind{Group: "nvidia.com", Version: "v1", Kind: "ClusterPolicy"}
)

const (
	// GPUClusterName is the only name that the CRD's rule lets a GPUCluster have.
	GPUClusterName = "gpu-cluster"
	// Finalizer keeps a GPUCluster until the operands that hold ResourceClaims are gone.
	Finalizer = "gpucluster.nvidia.com/dra-resourceclaim"
	// StateLabel names, on every managed object, the state that made it.
	StateLabel = "nvidia.com/gpu-operator.state"
)

// Values of status.state.
const (
	StateReady    = "ready"
	StateNotReady = "notReady"
	StateDisabled = "disabled"
)

// Condition types and reasons of status.conditions.
const (
	ConditionReady = "Ready"
	ConditionError = "Error"

	ReasonReconciled         = "Reconciled"
	ReasonReady              = "Ready"
	ReasonError              = "Error"
	ReasonPrerequisiteNotMet = "PrerequisiteNotMet"
	ReasonReconcileFailed    = "ReconcileFailed"
	ReasonOperandNotReady    = "OperandNotReady"
)

// EnvVar is a name and a literal value; the CRD offers no other source.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Healthcheck is the gRPC health endpoint of a plugin container; nil fields mean the default.
type Healthcheck struct {
	Enabled *bool  `json:"enabled,omitempty"`
	Port    *int32 `json:"port,omitempty"`
}

// KubeletPlugin tunes one container of the plugin DaemonSet.
type KubeletPlugin struct {
	Env         []EnvVar                     `json:"env,omitempty"`
	Resources   *corev1.ResourceRequirements `json:"resources,omitempty"`
	Healthcheck *Healthcheck                 `json:"healthcheck,omitempty"`
}

// HealthcheckPort returns the port that the health service listens on, or 0 where it is switched off.
func (p KubeletPlugin) HealthcheckPort(byDefault int32) int32 {
	if p.Healthcheck == nil {
		return byDefault
	}
	if p.Healthcheck.Enabled != nil && !*p.Healthcheck.Enabled {
		return 0
	}
	if p.Healthcheck.Port != nil {
		return *p.Healthcheck.Port
	}
	return byDefault
}

// GPUs configures the container `gpus`, which cannot be switched off.
type GPUs struct {
	KubeletPlugin KubeletPlugin `json:"kubeletPlugin,omitempty"`
}

// ComputeDomains is off where the whole object is left out, on where it is given without `enabled`.
type ComputeDomains struct {
	Enabled *bool `json:"enabled,omitempty"`
}

// DRADriver is spec.draDriver.
type DRADriver struct {
	Image          `json:",inline"`
	FeatureGates   map[string]bool `json:"featureGates,omitempty"`
	GPUs           GPUs            `json:"gpus,omitempty"`
	ComputeDomains *ComputeDomains `json:"computeDomains,omitempty"`
}

// ComputeDomainsEnabled applies the rule of ComputeDomains.
func (d DRADriver) ComputeDomainsEnabled() bool {
	return d.ComputeDomains != nil && (d.ComputeDomains.Enabled == nil || *d.ComputeDomains.Enabled)
}

// Telemetry is the switch that dcgm and dcgmExporter have in common.
type Telemetry struct {
	Enabled *bool `json:"enabled,omitempty"`
}

// HostPaths is spec.hostPaths.
type HostPaths struct {
	DriverInstallDir string `json:"driverInstallDir,omitempty"`
	KubeletRootDir   string `json:"kubeletRootDir,omitempty"`
}

// Daemonsets is the part of spec.daemonsets that the DRA manifests honour.
type Daemonsets struct {
	Labels            map[string]string   `json:"labels,omitempty"`
	Annotations       map[string]string   `json:"annotations,omitempty"`
	Tolerations       []corev1.Toleration `json:"tolerations,omitempty"`
	PriorityClassName string              `json:"priorityClassName,omitempty"`
}

// GPUClusterSpec is the part of the specification that the stand-in acts on.
type GPUClusterSpec struct {
	DRADriver    DRADriver  `json:"draDriver"`
	DCGM         *Telemetry `json:"dcgm,omitempty"`
	DCGMExporter *Telemetry `json:"dcgmExporter,omitempty"`
	HostPaths    HostPaths  `json:"hostPaths,omitempty"`
	Daemonsets   Daemonsets `json:"daemonsets,omitempty"`
}

// DCGMEnabled tells whether the stand-alone host engine is asked for; an absent field means no.
func (s GPUClusterSpec) DCGMEnabled() bool {
	return s.DCGM != nil && s.DCGM.Enabled != nil && *s.DCGM.Enabled
}

// DCGMExporterEnabled tells whether the exporter is asked for; an object without `enabled` means yes.
func (s GPUClusterSpec) DCGMExporterEnabled() bool {
	return s.DCGMExporter != nil && (s.DCGMExporter.Enabled == nil || *s.DCGMExporter.Enabled)
}

// ParseGPUClusterSpec reads the specification of a GPUCluster and fills the defaults of the operator's manifests.
func ParseGPUClusterSpec(object *unstructured.Unstructured) (GPUClusterSpec, error) {
	var parsed struct {
		Spec GPUClusterSpec `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &parsed); err != nil {
		return GPUClusterSpec{}, fmt.Errorf("reading the specification of GPUCluster %s: %w", object.GetName(), err)
	}
	spec := parsed.Spec
	if spec.HostPaths.DriverInstallDir == "" {
		spec.HostPaths.DriverInstallDir = "/run/nvidia/driver"
	}
	if spec.HostPaths.KubeletRootDir == "" {
		spec.HostPaths.KubeletRootDir = "/var/lib/kubelet"
	}
	if spec.Daemonsets.PriorityClassName == "" {
		spec.Daemonsets.PriorityClassName = "system-node-critical"
	}
	return spec, nil
}

// New returns an empty object of a kind, for reading one from the API server.
func New(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// NewList returns an empty list of a kind, for reading all of them from the API server.
func NewList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}
