// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package nodelabels

import (
	"maps"
	"testing"
)

var both = Duties{FeatureDiscovery: true, Operator: true}

// after applies a patch as the API server would.
func after(labels map[string]string, duties Duties) map[string]string {
	result := maps.Clone(labels)
	if result == nil {
		result = map[string]string{}
	}
	for key, value := range Patch(labels, duties) {
		if value == nil {
			delete(result, key)
		} else {
			result[key] = *value
		}
	}
	return result
}

func gpuNode(extra map[string]string) map[string]string {
	labels := map[string]string{
		SourceLabel:                               "true",
		FeatureLabel:                              "true",
		PresentLabel:                              "true",
		"nvidia.com/gpu.deploy.driver":            "true",
		"nvidia.com/gpu.deploy.dra-driver":        "true",
		"nvidia.com/gpu.deploy.dra-validator":     "true",
		"nvidia.com/gpu.deploy.dcgm-dra":          "true",
		"nvidia.com/gpu.deploy.dcgm-exporter-dra": "true",
	}
	maps.Copy(labels, extra)
	return labels
}

func without(labels map[string]string, keys ...string) map[string]string {
	for _, key := range keys {
		delete(labels, key)
	}
	return labels
}

func TestPatch(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		duties Duties
		want   map[string]string
	}{
		"a node without a GPU gets nothing": {
			labels: map[string]string{"zone": "a"}, duties: both, want: map[string]string{"zone": "a"},
		},
		"a new GPU node gets all labels": {
			labels: map[string]string{SourceLabel: "true"}, duties: both, want: gpuNode(nil),
		},
		"without a GPUCluster only the feature label is written": {
			labels: map[string]string{SourceLabel: "true"}, duties: Duties{FeatureDiscovery: true},
			want: map[string]string{SourceLabel: "true", FeatureLabel: "true"},
		},
		"without feature discovery a foreign feature label is enough": {
			labels: map[string]string{"feature.node.kubernetes.io/pci-0302_10de.present": "true"}, duties: Duties{Operator: true},
			want: without(gpuNode(map[string]string{"feature.node.kubernetes.io/pci-0302_10de.present": "true"}), SourceLabel, FeatureLabel),
		},
		"false and paused values are honoured": {
			labels: gpuNode(map[string]string{
				"nvidia.com/gpu.deploy.dra-validator": "false", "nvidia.com/gpu.deploy.dra-driver": "paused-for-mig-change",
			}), duties: both,
			want: gpuNode(map[string]string{
				"nvidia.com/gpu.deploy.dra-validator": "false", "nvidia.com/gpu.deploy.dra-driver": "paused-for-mig-change",
			}),
		},
		"an empty value counts as absent": {
			labels: gpuNode(map[string]string{"nvidia.com/gpu.deploy.driver": ""}), duties: both, want: gpuNode(nil),
		},
		"labels of the ClusterPolicy path are deleted": {
			labels: gpuNode(map[string]string{
				"nvidia.com/gpu.deploy.device-plugin": "true", "nvidia.com/gpu.deploy.client": "true",
				"nvidia.com/gpu.deploy.sandbox-validator": "true", "nvidia.com/gpu.deploy.kata-manager": "true",
				"nvidia.com/gpu.deploy.dcgm": "true",
			}), duties: both, want: gpuNode(nil),
		},
		"vgpu-manager and operands stay": {
			labels: gpuNode(map[string]string{"nvidia.com/gpu.deploy.vgpu-manager": "true", "nvidia.com/gpu.deploy.operands": "false"}),
			duties: both,
			want:   gpuNode(map[string]string{"nvidia.com/gpu.deploy.vgpu-manager": "true", "nvidia.com/gpu.deploy.operands": "false"}),
		},
		"a node that loses its GPU loses every deploy label, a decided one too": {
			labels: without(gpuNode(map[string]string{"nvidia.com/gpu.deploy.dra-validator": "false"}), SourceLabel), duties: both,
			want: map[string]string{PresentLabel: "false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := after(test.labels, test.duties)
			if !maps.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v", got, test.want)
			}
			if again := Patch(got, test.duties); len(again) != 0 {
				t.Errorf("a second pass changes %v", again)
			}
		})
	}
}
