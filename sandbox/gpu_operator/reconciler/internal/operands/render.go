// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package operands renders and applies what a GPUCluster deploys: the DRA driver, the telemetry workloads and the
// validator, each a "state" in the operator's words.
package operands

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
)

//go:embed manifests/*.yaml.tmpl
var manifests embed.FS

// extension of the manifests: YAML written by text/template.
const extension = ".yaml.tmpl"

// gpusHealthcheckPort is the default port of the gRPC health service in the container `gpus`.
const gpusHealthcheckPort = 51516

// Values is what the manifests are rendered from.
type Values struct {
	api.GPUClusterSpec
	// Namespace is the operator's own, where all operands run.
	Namespace string
	// DRADriverImage and ValidatorImage are full references.
	DRADriverImage, ValidatorImage string
}

// NewValues resolves the images of a specification. validatorImage and draDriverFallback are the operator's environment
// variables VALIDATOR_IMAGE and DRA_DRIVER_IMAGE.
func NewValues(spec api.GPUClusterSpec, namespace, validatorImage, draDriverFallback string) (Values, error) {
	driverImage, err := spec.DRADriver.Reference("draDriver", draDriverFallback)
	if err != nil {
		return Values{}, err
	}
	if validatorImage == "" {
		return Values{}, errors.New("no image for the validator: the operator's VALIDATOR_IMAGE is empty")
	}
	return Values{GPUClusterSpec: spec, Namespace: namespace, DRADriverImage: driverImage, ValidatorImage: validatorImage}, nil
}

// GPUsHealthcheckPort returns the port of the container `gpus`, or 0 where its health service is off.
func (v Values) GPUsHealthcheckPort() int32 {
	return v.DRADriver.GPUs.KubeletPlugin.HealthcheckPort(gpusHealthcheckPort)
}

// FeatureGates returns the gates as the plugin reads them: name=bool, sorted, joined by commas.
func (v Values) FeatureGates() string {
	gates := make([]string, 0, len(v.DRADriver.FeatureGates))
	for _, name := range slices.Sorted(maps.Keys(v.DRADriver.FeatureGates)) {
		gates = append(gates, fmt.Sprintf("%s=%t", name, v.DRADriver.FeatureGates[name]))
	}
	return strings.Join(gates, ",")
}

var functions = template.FuncMap{
	"json":        toJSON,
	"podLabels":   podLabels,
	"pullSecrets": pullSecrets,
}

// toJSON writes a value as JSON, which is YAML on one line.
func toJSON(value any) (string, error) {
	encoded, err := json.Marshal(value)
	return string(encoded), err
}

// podLabels merges the labels of spec.daemonsets under a pod template's own; `app` and part-of cannot be overridden.
func podLabels(values Values, own ...string) (string, error) {
	labels := map[string]string{}
	for i := 0; i+1 < len(own); i += 2 {
		labels[own[i]] = own[i+1]
	}
	fixed := map[string]string{"app": labels["app"], "app.kubernetes.io/part-of": "gpu-operator"}
	maps.Copy(labels, values.Daemonsets.Labels)
	maps.Copy(labels, fixed)
	return toJSON(labels)
}

func pullSecrets(names []string) (string, error) {
	references := make([]corev1.LocalObjectReference, 0, len(names))
	for _, name := range names {
		references = append(references, corev1.LocalObjectReference{Name: name})
	}
	return toJSON(references)
}

// render returns the objects of one manifest, in its order, without the fields that came out null.
func render(manifest string, values Values) ([]*unstructured.Unstructured, error) {
	source, err := manifests.ReadFile("manifests/" + manifest + extension)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(manifest).Option("missingkey=error").Funcs(functions).Parse(string(source))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, values); err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(&text, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("manifest %s: %w", manifest, err)
		}
		if object.Object == nil {
			continue
		}
		dropNulls(object.Object)
		objects = append(objects, object)
	}
}

func dropNulls(value any) {
	switch typed := value.(type) {
	case map[string]any:
		for key, child := range typed {
			if child == nil {
				delete(typed, key)
				continue
			}
			dropNulls(child)
		}
	case []any:
		for _, child := range typed {
			dropNulls(child)
		}
	}
}
