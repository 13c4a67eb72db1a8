// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package nodelabels

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
)

// resync bounds how long a label that somebody removed stays away.
const resync = time.Minute

// Reconciler labels one node per pass.
type Reconciler struct {
	Client           client.Client
	FeatureDiscovery bool
}

// SetupWithManager registers the controller: nodes, and the GPUCluster whose coming starts the labelling of all.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("node-label-controller").
		For(&corev1.Node{}).
		Watches(api.New(api.GPUClusterKind), handler.EnqueueRequestsFromMapFunc(r.allNodes)).
		Complete(r)
}

// Reconcile brings the labels of one node into order. While a GPUCluster and a ClusterPolicy exist together no operand
// label is maintained at all, as with the operator.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	gpuCluster, err := api.Exists(ctx, r.Client, api.GPUClusterKind)
	if err != nil {
		return ctrl.Result{}, err
	}
	clusterPolicy, err := api.Exists(ctx, r.Client, api.ClusterPolicyKind)
	if err != nil {
		return ctrl.Result{}, err
	}
	duties := Duties{FeatureDiscovery: r.FeatureDiscovery, Operator: gpuCluster && !clusterPolicy}
	if patch := Patch(node.Labels, duties); len(patch) > 0 {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": patch}})
		if err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, body)); err != nil {
			return ctrl.Result{}, fmt.Errorf("labelling node %s: %w", node.Name, err)
		}
		log.FromContext(ctx).Info("labelled node", "patch", string(body))
	}
	if gpuCluster && clusterPolicy {
		log.FromContext(ctx).Info("GPUCluster and ClusterPolicy cannot co-exist: the operand labels stay as they are")
	}
	return ctrl.Result{RequeueAfter: resync}, nil
}

func (r *Reconciler) allNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	nodes := &corev1.NodeList{}
	if err := r.Client.List(ctx, nodes); err != nil {
		log.FromContext(ctx).Error(err, "listing nodes")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(nodes.Items))
	for i := range nodes.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])})
	}
	return requests
}
