// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package cleanup is the chart's pre-delete hook: it deletes the GPUCluster while the operator still runs, so that the
// operands that hold claims are drained before the plugin goes.
package cleanup

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
)

// DeleteGPUCluster deletes the GPUCluster and waits until it is gone. One that does not exist is fine.
func DeleteGPUCluster(ctx context.Context, writer client.Client, timeout time.Duration) error {
	gpuCluster := api.New(api.GPUClusterKind)
	gpuCluster.SetName(api.GPUClusterName)
	err := writer.Delete(ctx, gpuCluster, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting GPUCluster %s: %w", api.GPUClusterName, err)
	}
	gone := func(ctx context.Context) (bool, error) {
		err := writer.Get(ctx, client.ObjectKeyFromObject(gpuCluster), api.New(api.GPUClusterKind))
		return err != nil && client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, gone); err != nil {
		return fmt.Errorf("waiting for GPUCluster %s to go: %w", api.GPUClusterName, err)
	}
	return nil
}
