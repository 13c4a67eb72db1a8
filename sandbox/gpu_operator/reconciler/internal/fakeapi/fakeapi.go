// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package fakeapi gives tests an API server in memory that knows the operator's custom resources.
package fakeapi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
)

// Namespace exists in every fake API server; it stands for the operator's own.
const Namespace = "gpu-operator"

// New returns a client of an API server that holds the given objects.
func New(objects ...client.Object) client.Client {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		panic(err)
	}
	builder := fake.NewClientBuilder()
	for _, kind := range []schema.GroupVersionKind{api.GPUClusterKind, api.ClusterPolicyKind, api.NVIDIADriverKind} {
		known.AddKnownTypeWithName(kind, api.New(kind))
		known.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), api.NewList(kind))
		builder.WithStatusSubresource(api.New(kind))
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	return builder.WithScheme(known).WithObjects(append(objects, namespace)...).Build()
}

// Named returns an empty custom resource with a name and a specification.
func Named(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	object := api.New(kind)
	object.SetName(name)
	object.SetUID(types.UID("uid-of-" + name))
	object.Object["spec"] = spec
	return object
}
