// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package cleanup

import (
	"context"
	"strings"
	"testing"
	"time"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
	"gpufleet.dra/sandbox/gpu-operator/internal/fakeapi"
)

func TestDeleteGPUCluster(t *testing.T) {
	server := fakeapi.New(fakeapi.Named(api.GPUClusterKind, api.GPUClusterName, nil))
	if err := DeleteGPUCluster(context.Background(), server, time.Second); err != nil {
		t.Fatal(err)
	}
	if exists, err := api.Exists(context.Background(), server, api.GPUClusterKind); err != nil || exists {
		t.Errorf("still there: %v, %v", exists, err)
	}
	if err := DeleteGPUCluster(context.Background(), server, time.Second); err != nil {
		t.Errorf("one that does not exist must be fine: %v", err)
	}
}

func TestDeleteGPUClusterWaitsForTheFinalizer(t *testing.T) {
	held := fakeapi.Named(api.GPUClusterKind, api.GPUClusterName, nil)
	held.SetFinalizers([]string{api.Finalizer})
	err := DeleteGPUCluster(context.Background(), fakeapi.New(held), 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "waiting for GPUCluster gpu-cluster to go") {
		t.Errorf("got %v", err)
	}
}
