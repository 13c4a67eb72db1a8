// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package unsupported reports, on the operator's other resources, that this stand-in does not act on them.
package unsupported

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
)

// resync is the operator's pace for both kinds.
const resync = time.Minute

// Reconciler writes the status of one kind and does nothing else.
type Reconciler struct {
	Client client.Client
	Kind   schema.GroupVersionKind
	// Judge returns the verdict, given whether an object of the kind that decides about it exists.
	Judge func(otherExists bool) api.Verdict
	// Other is that kind.
	Other schema.GroupVersionKind
}

// ClusterPolicy judges a ClusterPolicy: refused beside a GPUCluster, not implemented without one.
func ClusterPolicy(writer client.Client) *Reconciler {
	judge := func(gpuCluster bool) api.Verdict {
		if gpuCluster {
			return api.Bad(api.ReasonReconcileFailed, "ClusterPolicy and GPUCluster cannot co-exist: remove one of them")
		}
		return api.Bad(api.ReasonReconcileFailed, "the sandbox deploys the operands of a GPUCluster only")
	}
	return &Reconciler{Client: writer, Kind: api.ClusterPolicyKind, Other: api.GPUClusterKind, Judge: judge}
}

// NVIDIADriver judges an NVIDIADriver: disabled beside a ClusterPolicy, not implemented otherwise.
func NVIDIADriver(writer client.Client) *Reconciler {
	judge := func(clusterPolicy bool) api.Verdict {
		verdict := api.Bad(api.ReasonReconcileFailed,
			"the sandbox's nodes have the driver on the host and take no driver containers: set driver.enabled=false")
		if clusterPolicy {
			verdict.State = api.StateDisabled
			verdict.Message = "a ClusterPolicy without driver.useNvidiaDriverCRD owns the driver"
		}
		return verdict
	}
	return &Reconciler{Client: writer, Kind: api.NVIDIADriverKind, Other: api.ClusterPolicyKind, Judge: judge}
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(api.New(r.Kind)).Complete(r)
}

// Reconcile writes the status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := api.New(r.Kind)
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	other, err := api.Exists(ctx, r.Client, r.Other)
	if err != nil {
		return ctrl.Result{}, err
	}
	if api.SetStatus(object, r.Judge(other), "", time.Now()) {
		if err := r.Client.Status().Update(ctx, object); err != nil {
			return ctrl.Result{}, fmt.Errorf("writing the status of %s %s: %w", r.Kind.Kind, object.GetName(), err)
		}
	}
	return ctrl.Result{RequeueAfter: resync}, nil
}
