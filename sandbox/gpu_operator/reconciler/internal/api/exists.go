// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package api

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Exists tells whether there is at least one object of a cluster-wide kind. It asks the API server, not the cache.
func Exists(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind) (bool, error) {
	list := NewList(kind)
	if err := reader.List(ctx, list, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing %s objects: %w", kind.Kind, err)
	}
	return len(list.Items) > 0, nil
}
