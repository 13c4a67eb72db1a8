// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package gpucluster

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
	"gpufleet.dra/sandbox/gpu-operator/internal/fakeapi"
)

const namespace = fakeapi.Namespace

var request = ctrl.Request{NamespacedName: types.NamespacedName{Name: api.GPUClusterName}}

// fakeRecorder keeps the reasons of events.
type fakeRecorder struct {
	events.EventRecorder
	reasons []string
}

func (f *fakeRecorder) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	f.reasons = append(f.reasons, reason)
}

func (f *fakeRecorder) AnnotatedEventf(_, _ runtime.Object, _ map[string]string, _, _, _, _ string, _ ...any) {
}

func gpuCluster(spec map[string]any) *unstructured.Unstructured {
	return fakeapi.Named(api.GPUClusterKind, api.GPUClusterName, spec)
}

func goodSpec() map[string]any {
	return map[string]any{"draDriver": map[string]any{
		"repository": "sandbox.local", "image": "dra-driver-nvidia-gpu", "version": "v0.5.0",
	}}
}

func reconciler(objects ...client.Object) (*Reconciler, *fakeRecorder) {
	recorder := &fakeRecorder{}
	return &Reconciler{
		Client: fakeapi.New(objects...), Recorder: recorder, Namespace: namespace, ValidatorImage: "sandbox.local/gpu-operator:26.7.2",
	}, recorder
}

// pass reconciles once and returns state and reason of the condition Error.
func pass(t *testing.T, r *Reconciler) (state, reason, message string) {
	t.Helper()
	if _, err := r.Reconcile(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	live := api.New(api.GPUClusterKind)
	if err := r.Client.Get(context.Background(), request.NamespacedName, live); err != nil {
		t.Fatal(err)
	}
	state, _, _ = unstructured.NestedString(live.Object, "status", "state")
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, condition := range conditions {
		if entry := condition.(map[string]any); entry["type"] == api.ConditionError {
			return state, entry["reason"].(string), entry["message"].(string)
		}
	}
	return state, "", ""
}

func get[T client.Object](t *testing.T, r *Reconciler, object T, name string) T {
	t.Helper()
	key := types.NamespacedName{Name: name, Namespace: object.GetNamespace()}
	if err := r.Client.Get(context.Background(), key, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func plugin(t *testing.T, r *Reconciler) *appsv1.DaemonSet {
	t.Helper()
	return get(t, r, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}, "nvidia-dra-driver-kubelet-plugin")
}

func TestReadyWithoutAnyGPUNode(t *testing.T) {
	r, _ := reconciler(gpuCluster(goodSpec()))
	if state, reason, message := pass(t, r); state != api.StateReady || reason != api.ReasonReady {
		t.Errorf("state %s, reason %s, %s", state, reason, message)
	}
	if label := get(t, r, &corev1.Namespace{}, namespace).Labels[adminAccessLabel]; label != "true" {
		t.Errorf("the namespace's admin-access label is %q", label)
	}
	class := get(t, r, &resourcev1.DeviceClass{}, "mig.nvidia.com")
	if class.Labels[api.StateLabel] != "state-dra-driver" || class.OwnerReferences[0].Kind != "GPUCluster" {
		t.Errorf("wrong metadata of the DeviceClass: %v", class.ObjectMeta)
	}
}

func TestNotReadyWhilePodsAreMissing(t *testing.T) {
	r, _ := reconciler(gpuCluster(goodSpec()))
	pass(t, r)
	subject := plugin(t, r)
	subject.Status = appsv1.DaemonSetStatus{
		ObservedGeneration: subject.Generation, DesiredNumberScheduled: 2, NumberAvailable: 1, UpdatedNumberScheduled: 2,
	}
	if err := r.Client.Status().Update(context.Background(), subject); err != nil {
		t.Fatal(err)
	}
	state, reason, message := pass(t, r)
	if state != api.StateNotReady || reason != api.ReasonOperandNotReady ||
		!strings.HasPrefix(message, "state-dra-driver: DaemonSet nvidia-dra-driver-kubelet-plugin") {
		t.Errorf("state %s, reason %s, message %s", state, reason, message)
	}
}

func TestRefusedBesideClusterPolicy(t *testing.T) {
	r, _ := reconciler(gpuCluster(goodSpec()), fakeapi.Named(api.ClusterPolicyKind, "cluster-policy", nil))
	if state, reason, _ := pass(t, r); state != api.StateNotReady || reason != api.ReasonPrerequisiteNotMet {
		t.Errorf("state %s, reason %s", state, reason)
	}
	class := types.NamespacedName{Name: "gpu.nvidia.com"}
	if err := r.Client.Get(context.Background(), class, &resourcev1.DeviceClass{}); !apierrors.IsNotFound(err) {
		t.Errorf("a DeviceClass was made: %v", err)
	}
}

func TestFailureNamesTheState(t *testing.T) {
	spec := goodSpec()
	spec["draDriver"].(map[string]any)["computeDomains"] = map[string]any{}
	r, _ := reconciler(gpuCluster(spec))
	state, reason, message := pass(t, r)
	if state != api.StateNotReady || reason != api.ReasonReconcileFailed || !strings.HasPrefix(message, "state-dra-driver: ") {
		t.Errorf("state %s, reason %s, message %s", state, reason, message)
	}
	get(t, r, &resourcev1.DeviceClass{}, "compute-domain-daemon.nvidia.com")
	plugin(t, r)
}

func TestEditedDeviceClassIsOverwrittenAndForeignOneAdopted(t *testing.T) {
	foreign := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{
		Name: "gpu.nvidia.com", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
	}}
	name := "nvidia.com/gpu"
	foreign.Spec.ExtendedResourceName = &name
	r, _ := reconciler(gpuCluster(goodSpec()), foreign)
	pass(t, r)
	class := get(t, r, &resourcev1.DeviceClass{}, "gpu.nvidia.com")
	if class.Spec.ExtendedResourceName != nil || class.Labels["app.kubernetes.io/managed-by"] != "" || len(class.Spec.Selectors) != 1 {
		t.Errorf("not replaced in full: %+v", class)
	}
	if len(class.OwnerReferences) != 1 || class.OwnerReferences[0].Kind != "GPUCluster" {
		t.Errorf("not adopted: %v", class.OwnerReferences)
	}
}

func TestEditedDaemonSetSurvivesUntilTheSpecificationChanges(t *testing.T) {
	r, _ := reconciler(gpuCluster(goodSpec()))
	pass(t, r)
	edited := plugin(t, r)
	edited.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	if err := r.Client.Update(context.Background(), edited); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if plugin(t, r).Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "now" {
		t.Error("the edit was undone though the specification did not change")
	}
	live := get(t, r, api.New(api.GPUClusterKind), api.GPUClusterName)
	if err := unstructured.SetNestedField(live.Object, "v0.5.1", "spec", "draDriver", "version"); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Update(context.Background(), live); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	after := plugin(t, r)
	if after.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "" ||
		!strings.HasSuffix(after.Spec.Template.Spec.Containers[0].Image, ":v0.5.1") {
		t.Errorf("the new specification was not applied: %+v", after.Spec.Template)
	}
}

func TestOperandSwitchedOffIsRemoved(t *testing.T) {
	spec := goodSpec()
	spec["dcgmExporter"] = map[string]any{}
	r, _ := reconciler(gpuCluster(spec))
	pass(t, r)
	exporter := types.NamespacedName{Name: "nvidia-dcgm-exporter-dra", Namespace: namespace}
	if err := r.Client.Get(context.Background(), exporter, &appsv1.DaemonSet{}); err != nil {
		t.Fatal(err)
	}
	live := get(t, r, api.New(api.GPUClusterKind), api.GPUClusterName)
	if err := unstructured.SetNestedField(live.Object, false, "spec", "dcgmExporter", "enabled"); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Update(context.Background(), live); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if err := r.Client.Get(context.Background(), exporter, &appsv1.DaemonSet{}); !apierrors.IsNotFound(err) {
		t.Errorf("the exporter is still there: %v", err)
	}
}

func TestDeletionDrainsClaimHoldersFirst(t *testing.T) {
	r, recorder := reconciler(gpuCluster(goodSpec()))
	pass(t, r)
	live := get(t, r, api.New(api.GPUClusterKind), api.GPUClusterName)
	if !slices.Contains(live.GetFinalizers(), api.Finalizer) {
		t.Fatalf("no finalizer: %v", live.GetFinalizers())
	}
	if err := r.Client.Delete(context.Background(), live); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(recorder.reasons, "DrainingClaimConsumers") {
		t.Errorf("events: %v", recorder.reasons)
	}
	validator := types.NamespacedName{Name: "nvidia-dra-validator", Namespace: namespace}
	if err := r.Client.Get(context.Background(), validator, &appsv1.DaemonSet{}); !apierrors.IsNotFound(err) {
		t.Errorf("the validator is still there: %v", err)
	}
	plugin(t, r) // goes last, by its owner reference
	get(t, r, api.New(api.GPUClusterKind), api.GPUClusterName)

	if _, err := r.Reconcile(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Get(context.Background(), request.NamespacedName, api.New(api.GPUClusterKind)); !apierrors.IsNotFound(err) {
		t.Errorf("the GPUCluster is still there: %v", err)
	}
}
