// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package nodelabels keeps the labels of GPU nodes: the ones that Node Feature Discovery would write, and the ones
// by which the operator lets each operand onto a node.
package nodelabels

import "strings"

const (
	// SourceLabel is set by the sandbox's kubelets on nodes with a PCI device of NVIDIA. It stands for the PCI scan
	// of Node Feature Discovery's worker.
	SourceLabel = "sandbox.gpufleet.dra/pci-10de"
	// FeatureLabel is what Node Feature Discovery's master makes of that scan.
	FeatureLabel = "feature.node.kubernetes.io/pci-10de.present"
	// PresentLabel is the operator's own verdict: "true", or "false" on a node that once had a GPU.
	PresentLabel = "nvidia.com/gpu.present"

	deployPrefix = "nvidia.com/gpu.deploy."
)

// gpuFeatureLabels: any of them "true" makes a node a GPU node.
var gpuFeatureLabels = []string{
	FeatureLabel,
	"feature.node.kubernetes.io/pci-0302_10de.present",
	"feature.node.kubernetes.io/pci-0300_10de.present",
}

// deployLabels gate the operands of the DRA path. They are written also where the operand itself is off.
var deployLabels = []string{
	deployPrefix + "driver",
	deployPrefix + "dra-driver",
	deployPrefix + "dra-validator",
	deployPrefix + "dcgm-dra",
	deployPrefix + "dcgm-exporter-dra",
}

// retiredOperands have the deploy labels of the ClusterPolicy path, which the operator deletes on each pass; a star
// stands for any ending. vgpu-manager is not among them, and `operands` is neither read nor removed.
var retiredOperands = []string{
	"gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter", "node-status-exporter",
	"operator-validator", "client", "sandbox*", "vfio-manager", "kata*", "cc-manager", "vgpu-device-manager",
	"mig-manager",
}

// Duties says which of the two label writers act.
type Duties struct {
	// FeatureDiscovery: write FeatureLabel after SourceLabel (chart value nfd.enabled).
	FeatureDiscovery bool
	// Operator: write the operator's labels (a GPUCluster exists and no ClusterPolicy does).
	Operator bool
}

// Patch returns the labels to change on a node with the given labels: a value to set, or nil to remove. An empty map
// means that the node is as it should be. An operand's label is set to "true" only where it is absent or empty; any
// other value is somebody's decision and stays, until the node stops being a GPU node and all of them go.
func Patch(labels map[string]string, duties Duties) map[string]*string {
	patch := map[string]*string{}
	wanted := make(map[string]string, len(labels))
	for key, value := range labels {
		wanted[key] = value
	}
	set := func(key, value string) {
		if current, found := wanted[key]; !found || current != value {
			wanted[key] = value
			patch[key] = &value
		}
	}
	remove := func(key string) {
		if _, found := wanted[key]; found {
			delete(wanted, key)
			patch[key] = nil
		}
	}

	if duties.FeatureDiscovery {
		if wanted[SourceLabel] == "true" {
			set(FeatureLabel, "true")
		} else {
			remove(FeatureLabel)
		}
	}
	if !duties.Operator {
		return patch
	}
	if hasGPU(wanted) {
		set(PresentLabel, "true")
		for _, label := range deployLabels {
			if wanted[label] == "" {
				set(label, "true")
			}
		}
	} else if _, known := wanted[PresentLabel]; known {
		set(PresentLabel, "false")
		for _, label := range deployLabels {
			remove(label)
		}
	}
	for label := range labels {
		if retired(label) {
			remove(label)
		}
	}
	return patch
}

func hasGPU(labels map[string]string) bool {
	for _, label := range gpuFeatureLabels {
		if labels[label] == "true" {
			return true
		}
	}
	return false
}

func retired(label string) bool {
	operand, isDeploy := strings.CutPrefix(label, deployPrefix)
	if !isDeploy {
		return false
	}
	for _, name := range retiredOperands {
		if stem, open := strings.CutSuffix(name, "*"); operand == name || open && strings.HasPrefix(operand, stem) {
			return true
		}
	}
	return false
}
