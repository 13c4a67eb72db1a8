// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package nodelabels

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
	"gpufleet.dra/sandbox/gpu-operator/internal/fakeapi"
)

func TestOperandLabelsNeedAGPUClusterAndNoClusterPolicy(t *testing.T) {
	gpuCluster := fakeapi.Named(api.GPUClusterKind, api.GPUClusterName, nil)
	policy := fakeapi.Named(api.ClusterPolicyKind, "cluster-policy", nil)
	for name, test := range map[string]struct {
		objects  []client.Object
		labelled bool
	}{
		"nothing":            {nil, false},
		"GPUCluster":         {[]client.Object{gpuCluster}, true},
		"ClusterPolicy":      {[]client.Object{policy}, false},
		"both of them exist": {[]client.Object{gpuCluster, policy}, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{SourceLabel: "true"}}}
			server := fakeapi.New(append(test.objects, node)...)
			key := types.NamespacedName{Name: "n"}
			reconciler := &Reconciler{Client: server, FeatureDiscovery: true}
			if _, err := reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			live := &corev1.Node{}
			if err := server.Get(context.Background(), key, live); err != nil {
				t.Fatal(err)
			}
			if live.Labels[FeatureLabel] != "true" {
				t.Error("feature discovery does not depend on the operator's resources")
			}
			if _, labelled := live.Labels["nvidia.com/gpu.deploy.dra-driver"]; labelled != test.labelled {
				t.Errorf("labels %v", live.Labels)
			}
		})
	}
}
