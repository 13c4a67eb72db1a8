// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package operands

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"gpufleet.dra/sandbox/gpu-operator/internal/api"
)

func values(t *testing.T, change func(*api.GPUClusterSpec)) Values {
	t.Helper()
	spec, err := api.ParseGPUClusterSpec(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"draDriver": map[string]any{"repository": "sandbox.local", "image": "dra-driver-nvidia-gpu", "version": "v0.5.0"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&spec)
	}
	result, err := NewValues(spec, "gpu-operator", "sandbox.local/gpu-operator:26.7.2", "")
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// typed decodes a rendered object strictly: a field that Kubernetes does not know fails the test.
func typed(t *testing.T, object *unstructured.Unstructured) runtime.Object {
	t.Helper()
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded, _, err := decoder.Decode(encoded, nil, nil)
	if err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return decoded
}

func daemonSet(t *testing.T, manifest string, values Values) *appsv1.DaemonSet {
	t.Helper()
	objects, err := render(manifest, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if result, isDaemonSet := typed(t, object).(*appsv1.DaemonSet); isDaemonSet {
			return result
		}
	}
	t.Fatalf("no DaemonSet in %s", manifest)
	return nil
}

func TestEveryManifestIsUsedAndKnownToKubernetes(t *testing.T) {
	var used []string
	for _, state := range States {
		for _, unit := range state.units {
			used = append(used, unit.manifest)
			objects, err := render(unit.manifest, values(t, func(spec *api.GPUClusterSpec) {
				spec.DRADriver.FeatureGates = map[string]bool{"DynamicMIG": true}
				spec.DRADriver.GPUs.KubeletPlugin.Env = []api.EnvVar{{Name: "CONSUMABLE_SHARES", Value: "memory"}}
				spec.Daemonsets.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}))
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				typed(t, object)
			}
		}
	}
	entries, err := fs.ReadDir(manifests, "manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(used, strings.TrimSuffix(entry.Name(), extension)) {
			t.Errorf("manifest %s belongs to no state", entry.Name())
		}
	}
}

func TestPluginPod(t *testing.T) {
	plugin := daemonSet(t, "dra-driver-daemonset", values(t, func(spec *api.GPUClusterSpec) {
		spec.DRADriver.FeatureGates = map[string]bool{"TimeSlicingSettings": true, "DynamicMIG": false}
		spec.DRADriver.GPUs.KubeletPlugin.Env = []api.EnvVar{{Name: "CONSUMABLE_SHARES", Value: "memory"}}
		spec.HostPaths.KubeletRootDir = "/data/kubelet"
		spec.Daemonsets.Labels = map[string]string{"app": "mine", "app.kubernetes.io/part-of": "mine", "team": "ml"}
	}))
	labels := plugin.Spec.Template.Labels
	if labels["app"] != "nvidia-dra-driver-kubelet-plugin" || labels["app.kubernetes.io/part-of"] != "gpu-operator" ||
		labels["team"] != "ml" {
		t.Errorf("wrong pod labels: %v", labels)
	}
	pod := plugin.Spec.Template.Spec
	if len(pod.InitContainers) != 1 || pod.InitContainers[0].Name != "driver-validation" ||
		len(pod.Containers) != 1 || pod.Containers[0].Name != "gpus" {
		t.Fatalf("wrong containers: %v, %v", pod.InitContainers, pod.Containers)
	}
	environment := map[string]string{}
	for _, variable := range pod.Containers[0].Env {
		environment[variable.Name] = variable.Value
	}
	for name, want := range map[string]string{
		"FEATURE_GATES":                  "DynamicMIG=false,TimeSlicingSettings=true",
		"CONSUMABLE_SHARES":              "memory",
		"HEALTHCHECK_PORT":               "51516",
		"KUBELET_PLUGINS_DIRECTORY_PATH": "/data/kubelet/plugins",
		"IMAGE_NAME":                     "sandbox.local/dra-driver-nvidia-gpu:v0.5.0",
		"CDI_ROOT":                       "/var/run/cdi",
	} {
		if environment[name] != want {
			t.Errorf("%s is %q, want %q", name, environment[name], want)
		}
	}
	if probe := pod.Containers[0].LivenessProbe; probe == nil || probe.GRPC.Port != 51516 || *probe.GRPC.Service != "liveness" {
		t.Errorf("wrong liveness probe: %v", probe)
	}
}

func TestHealthcheckOffRemovesTheProbes(t *testing.T) {
	off := false
	container := daemonSet(t, "dra-driver-daemonset", values(t, func(spec *api.GPUClusterSpec) {
		spec.DRADriver.GPUs.KubeletPlugin.Healthcheck = &api.Healthcheck{Enabled: &off}
	})).Spec.Template.Spec.Containers[0]
	if container.StartupProbe != nil || container.LivenessProbe != nil {
		t.Error("probes must be absent")
	}
	for _, variable := range container.Env {
		if variable.Name == "HEALTHCHECK_PORT" {
			t.Error("HEALTHCHECK_PORT must be absent")
		}
	}
}

func TestValidatorAsksForOneWholeGPUByAnAdminClaim(t *testing.T) {
	objects, err := render("dra-validator", values(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	index := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceClaimTemplate" })
	requests, _, _ := unstructured.NestedSlice(objects[index].Object, "spec", "spec", "devices", "requests")
	request := requests[0].(map[string]any)["exactly"].(map[string]any)
	if request["adminAccess"] != true || request["allocationMode"] != "ExactCount" ||
		request["deviceClassName"] != "gpu.nvidia.com" {
		t.Errorf("wrong request: %v", request)
	}
	pod := daemonSet(t, "dra-validator", values(t, nil)).Spec.Template
	if pod.Labels["app"] != "nvidia-operator-validator" || pod.Spec.InitContainers[0].Name != "gpu-validation" ||
		len(pod.Spec.ResourceClaims) != 1 {
		t.Errorf("wrong validator pod: %v", pod)
	}
}

func TestWantedAndUnwantedObjects(t *testing.T) {
	yes, no := true, false
	for name, test := range map[string]struct {
		change           func(*api.GPUClusterSpec)
		wanted, unwanted int
	}{
		"all defaults": {func(*api.GPUClusterSpec) {}, 3 + 3 + 2 + 1 + 3, 2 + 3 + 3},
		"everything on": {func(s *api.GPUClusterSpec) {
			s.DCGM = &api.Telemetry{Enabled: &yes}
			s.DCGMExporter = &api.Telemetry{}
		}, 12 + 3 + 3, 2},
		"exporter off":    {func(s *api.GPUClusterSpec) { s.DCGMExporter = &api.Telemetry{Enabled: &no} }, 12, 8},
		"compute domains": {func(s *api.GPUClusterSpec) { s.DRADriver.ComputeDomains = &api.ComputeDomains{} }, 12 + 2, 6},
	} {
		t.Run(name, func(t *testing.T) {
			var wanted, unwanted int
			for _, state := range States {
				w, u, err := state.Objects(values(t, test.change))
				if err != nil {
					t.Fatal(err)
				}
				wanted += len(w)
				unwanted += len(u)
			}
			if wanted != test.wanted || unwanted != test.unwanted {
				t.Errorf("%d wanted, %d unwanted; want %d and %d", wanted, unwanted, test.wanted, test.unwanted)
			}
		})
	}
}

// pods is the status of a DaemonSet whose first generation has been observed.
func pods(desired, available, updated int32) appsv1.DaemonSetStatus {
	return appsv1.DaemonSetStatus{
		ObservedGeneration: 1, DesiredNumberScheduled: desired, NumberAvailable: available, UpdatedNumberScheduled: updated,
	}
}

func TestWaitsFor(t *testing.T) {
	for name, test := range map[string]struct {
		generation int64
		status     appsv1.DaemonSetStatus
		ready      bool
	}{
		"no node":         {1, appsv1.DaemonSetStatus{ObservedGeneration: 1}, true},
		"not observed":    {2, appsv1.DaemonSetStatus{ObservedGeneration: 1}, false},
		"one missing":     {1, pods(2, 1, 2), false},
		"one out of date": {1, pods(2, 2, 1), false},
		"all there":       {1, pods(2, 2, 2), true},
	} {
		t.Run(name, func(t *testing.T) {
			subject := &appsv1.DaemonSet{Status: test.status}
			subject.Generation = test.generation
			if got := WaitsFor(subject); (got == "") != test.ready {
				t.Errorf("waits for %q", got)
			}
		})
	}
}
