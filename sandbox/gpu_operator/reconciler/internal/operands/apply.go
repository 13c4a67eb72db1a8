// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package operands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
)

// hashAnnotation decides whether a DaemonSet is written: an edit by hand survives until the specification changes.
const hashAnnotation = "nvidia.com/last-applied-hash"

// Applier writes the objects of one GPUCluster.
type Applier struct {
	Client client.Client
	Owner  metav1.OwnerReference
}

// Sync applies a state and returns "" when its workloads are ready, else what it waits for. Everything is applied even
// if something else of the state fails; all failures are reported together.
func (a Applier) Sync(ctx context.Context, state State, values Values) (waitingFor string, err error) {
	wanted, unwanted, err := state.Objects(values)
	if err != nil {
		return "", err
	}
	var failures []error
	for _, object := range unwanted {
		failures = append(failures, a.remove(ctx, object))
	}
	for _, object := range wanted {
		live, err := a.apply(ctx, state.Name, object)
		failures = append(failures, err)
		if err == nil && object.GetKind() == "DaemonSet" && waitingFor == "" {
			waitingFor, err = daemonSetWaitsFor(live)
			failures = append(failures, err)
		}
	}
	if state.unmet != nil {
		failures = append(failures, state.unmet(values))
	}
	return waitingFor, errors.Join(failures...)
}

// apply creates an object or replaces it in full, adopting one that somebody else made. It returns the live object.
func (a Applier) apply(ctx context.Context, state string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted := object.DeepCopy()
	labels := wanted.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[api.StateLabel] = state
	wanted.SetLabels(labels)
	wanted.SetOwnerReferences([]metav1.OwnerReference{a.Owner})
	hash, err := hashOf(wanted)
	if err != nil {
		return nil, err
	}
	isDaemonSet := wanted.GetKind() == "DaemonSet"
	if isDaemonSet {
		annotations := maps.Clone(wanted.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[hashAnnotation] = hash
		wanted.SetAnnotations(annotations)
	}

	live := api.New(wanted.GroupVersionKind())
	err = a.Client.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	switch {
	case apierrors.IsNotFound(err):
		err = a.Client.Create(ctx, wanted)
	case err != nil:
	case isDaemonSet && live.GetAnnotations()[hashAnnotation] == hash:
		return live, nil
	default:
		wanted.SetResourceVersion(live.GetResourceVersion())
		err = a.Client.Update(ctx, wanted)
	}
	if err != nil {
		return nil, fmt.Errorf("applying %s %s: %w", wanted.GetKind(), wanted.GetName(), err)
	}
	return wanted, nil
}

// remove deletes an object of an operand that is switched off, if it is ours.
func (a Applier) remove(ctx context.Context, object *unstructured.Unstructured) error {
	live := api.New(object.GroupVersionKind())
	err := a.Client.Get(ctx, client.ObjectKeyFromObject(object), live)
	if err == nil && ownedBy(live, a.Owner) {
		err = a.Client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func ownedBy(object client.Object, owner metav1.OwnerReference) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner.UID {
			return true
		}
	}
	return false
}

func hashOf(object *unstructured.Unstructured) (string, error) {
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8]), nil
}

func daemonSetWaitsFor(live *unstructured.Unstructured) (string, error) {
	daemonSet := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, daemonSet); err != nil {
		return "", err
	}
	return WaitsFor(daemonSet), nil
}

// WaitsFor returns "" for a DaemonSet that counts as ready, else what is missing. Ready means: the controller has seen
// the latest generation, and all desired pods are available and up to date. Zero desired pods are ready too.
func WaitsFor(daemonSet *appsv1.DaemonSet) string {
	status := daemonSet.Status
	switch desired := status.DesiredNumberScheduled; {
	case status.ObservedGeneration < daemonSet.Generation:
		return fmt.Sprintf("DaemonSet %s: generation %d not yet observed", daemonSet.Name, daemonSet.Generation)
	case desired != status.NumberAvailable || desired != status.UpdatedNumberScheduled:
		return fmt.Sprintf("DaemonSet %s: %d desired, %d available, %d up to date",
			daemonSet.Name, desired, status.NumberAvailable, status.UpdatedNumberScheduled)
	}
	return ""
}
