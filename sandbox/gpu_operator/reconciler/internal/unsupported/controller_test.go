// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package unsupported

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
	"gpufleet.dra/sandbox/gpu-operator/internal/fakeapi"
)

func TestStates(t *testing.T) {
	policy := fakeapi.Named(api.ClusterPolicyKind, "cluster-policy", nil)
	driver := fakeapi.Named(api.NVIDIADriverKind, "default", nil)
	gpuCluster := fakeapi.Named(api.GPUClusterKind, api.GPUClusterName, nil)
	for name, test := range map[string]struct {
		make    func(client.Client) *Reconciler
		subject *unstructured.Unstructured
		beside  []client.Object
		state   string
	}{
		"ClusterPolicy alone":               {ClusterPolicy, policy, nil, api.StateNotReady},
		"ClusterPolicy beside a GPUCluster": {ClusterPolicy, policy, []client.Object{gpuCluster}, api.StateNotReady},
		"NVIDIADriver beside a GPUCluster":  {NVIDIADriver, driver, []client.Object{gpuCluster}, api.StateNotReady},
		"NVIDIADriver of a ClusterPolicy":   {NVIDIADriver, driver, []client.Object{policy}, api.StateDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New(append(test.beside, test.subject.DeepCopy())...)
			key := types.NamespacedName{Name: test.subject.GetName()}
			if _, err := test.make(server).Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			live := api.New(test.subject.GroupVersionKind())
			if err := server.Get(context.Background(), key, live); err != nil {
				t.Fatal(err)
			}
			if state, _, _ := unstructured.NestedString(live.Object, "status", "state"); state != test.state {
				t.Errorf("state %q, want %q", state, test.state)
			}
		})
	}
}
