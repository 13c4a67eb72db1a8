// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package gpucluster reconciles the one GPUCluster: it applies the operands, reports the status and, on deletion,
// drains the operands that hold ResourceClaims before it lets the object go.
package gpucluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
	"gpufleet.dra/sandbox/gpu-operator/internal/operands"
)

const (
	// resync bounds how long an edit of a managed object lives. Only DaemonSets are watched.
	resync = time.Minute
	// retry is the pace while something is not ready, fails or is being deleted.
	retry = 5 * time.Second
	// adminAccessLabel lets a namespace hold claims with adminAccess. It is set and never taken off.
	adminAccessLabel = "resource.kubernetes.io/admin-access"
)

// Reconciler brings a cluster to what its GPUCluster asks for.
type Reconciler struct {
	Client client.Client
	// Recorder emits the event DrainingClaimConsumers.
	Recorder recorder.EventRecorder
	// Namespace is the operator's own.
	Namespace string
	// ValidatorImage and DRADriverImage are the environment variables of the same meaning.
	ValidatorImage, DRADriverImage string
}

// SetupWithManager registers the controller; it runs one reconcile at a time.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("gpu-cluster-controller").
		For(api.New(api.GPUClusterKind)).
		Watches(&appsv1.DaemonSet{}, handler.EnqueueRequestForOwner(
			manager.GetScheme(), manager.GetRESTMapper(), api.New(api.GPUClusterKind), handler.OnlyControllerOwner())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(r)
}

// Reconcile makes one pass.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	gpuCluster := api.New(api.GPUClusterKind)
	if err := r.Client.Get(ctx, request.NamespacedName, gpuCluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !gpuCluster.GetDeletionTimestamp().IsZero() {
		return r.delete(ctx, gpuCluster)
	}
	if controllerutil.AddFinalizer(gpuCluster, api.Finalizer) {
		if err := r.Client.Update(ctx, gpuCluster); err != nil {
			return ctrl.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	verdict, err := r.sync(ctx, gpuCluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if api.SetStatus(gpuCluster, verdict, r.Namespace, time.Now()) {
		if err := r.Client.Status().Update(ctx, gpuCluster); err != nil {
			return ctrl.Result{}, fmt.Errorf("writing the status: %w", err)
		}
	}
	return ctrl.Result{RequeueAfter: pace(verdict)}, nil
}

// pace returns when to look again: within a minute, or soon where something fails or is awaited.
func pace(verdict api.Verdict) time.Duration {
	switch verdict.Reason {
	case api.ReasonReconcileFailed, api.ReasonOperandNotReady:
		return retry
	}
	return resync
}

// sync applies all states, also after one that is not ready, and judges the outcome. Beside a ClusterPolicy it touches
// nothing: what runs keeps running.
func (r *Reconciler) sync(ctx context.Context, gpuCluster *unstructured.Unstructured) (api.Verdict, error) {
	clusterPolicy, err := api.Exists(ctx, r.Client, api.ClusterPolicyKind)
	if err != nil {
		return api.Verdict{}, err
	}
	if clusterPolicy {
		return api.Bad(api.ReasonPrerequisiteNotMet,
			"a ClusterPolicy exists; ClusterPolicy and GPUCluster cannot co-exist: remove one of them"), nil
	}
	spec, err := api.ParseGPUClusterSpec(gpuCluster)
	if err != nil {
		return api.Bad(api.ReasonReconcileFailed, err.Error()), nil
	}
	values, err := operands.NewValues(spec, r.Namespace, r.ValidatorImage, r.DRADriverImage)
	if err != nil {
		return api.Bad(api.ReasonReconcileFailed, err.Error()), nil
	}
	if err := r.labelNamespace(ctx); err != nil {
		return api.Bad(api.ReasonReconcileFailed, err.Error()), nil
	}

	applier := operands.Applier{Client: r.Client, Owner: ownerReference(gpuCluster)}
	var waiting, failed []string
	for _, state := range operands.States {
		waitingFor, err := applier.Sync(ctx, state, values)
		if err != nil {
			failed = append(failed, state.Name+": "+oneLine(err))
		}
		if waitingFor != "" {
			waiting = append(waiting, state.Name+": "+waitingFor)
		}
	}
	return judge(failed, waiting), nil
}

// judge turns the outcome of all states into a verdict; a failure outweighs a wait.
func judge(failed, waiting []string) api.Verdict {
	switch {
	case len(failed) > 0:
		return api.Bad(api.ReasonReconcileFailed, strings.Join(failed, "; "))
	case len(waiting) > 0:
		return api.Bad(api.ReasonOperandNotReady, strings.Join(waiting, "; "))
	}
	return api.Good()
}

// oneLine writes joined errors as one sentence, for a condition's message.
func oneLine(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func ownerReference(gpuCluster *unstructured.Unstructured) metav1.OwnerReference {
	return *metav1.NewControllerRef(gpuCluster, api.GPUClusterKind)
}

func (r *Reconciler) labelNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: r.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading namespace %s: %w", r.Namespace, err)
	}
	if namespace.Labels[adminAccessLabel] == "true" {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{adminAccessLabel: "true"}}})
	if err == nil {
		err = r.Client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("labelling namespace %s: %w", r.Namespace, err)
	}
	return nil
}

// delete removes the operands that hold claims and waits for them, then drops the finalizer. The rest, the plugin
// among it, goes by owner reference. Pods of users that hold claims are not drained.
func (r *Reconciler) delete(ctx context.Context, gpuCluster *unstructured.Unstructured) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(gpuCluster, api.Finalizer) {
		return ctrl.Result{}, nil
	}
	holders, err := r.claimHolders(ctx, gpuCluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(holders) == 0 {
		controllerutil.RemoveFinalizer(gpuCluster, api.Finalizer)
		if err := r.Client.Update(ctx, gpuCluster); err != nil {
			return ctrl.Result{}, fmt.Errorf("dropping the finalizer: %w", client.IgnoreNotFound(err))
		}
		return ctrl.Result{}, nil
	}
	var failures []error
	names := make([]string, 0, len(holders))
	for i := range holders {
		names = append(names, holders[i].Name)
		if holders[i].DeletionTimestamp.IsZero() {
			err := r.Client.Delete(ctx, &holders[i], client.PropagationPolicy(metav1.DeletePropagationForeground))
			failures = append(failures, client.IgnoreNotFound(err))
		}
	}
	r.Recorder.Eventf(gpuCluster, nil, corev1.EventTypeNormal, "DrainingClaimConsumers", "Delete",
		"waiting for the DaemonSets that hold ResourceClaims to go: %s", strings.Join(names, ", "))
	return ctrl.Result{RequeueAfter: retry}, errors.Join(failures...)
}

// claimHolders returns this GPUCluster's own DaemonSets whose pods hold ResourceClaims.
func (r *Reconciler) claimHolders(ctx context.Context, gpuCluster *unstructured.Unstructured) ([]appsv1.DaemonSet, error) {
	daemonSets := &appsv1.DaemonSetList{}
	if err := r.Client.List(ctx, daemonSets, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("listing DaemonSets: %w", err)
	}
	var holders []appsv1.DaemonSet
	for _, daemonSet := range daemonSets.Items {
		if metav1.IsControlledBy(&daemonSet, gpuCluster) && len(daemonSet.Spec.Template.Spec.ResourceClaims) > 0 {
			holders = append(holders, daemonSet)
		}
	}
	return holders, nil
}
