// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package api

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestImageReference(t *testing.T) {
	for name, test := range map[string]struct {
		image    Image
		fallback string
		want     string
	}{
		"three parts":           {Image{Repository: "r/x", Image: "i", Version: "v1"}, "", "r/x/i:v1"},
		"digest":                {Image{Repository: "r", Image: "i", Version: "sha256:ab"}, "", "r/i@sha256:ab"},
		"image alone":           {Image{Image: "r/i:v1"}, "fallback", "r/i:v1"},
		"nothing":               {Image{}, "fallback", "fallback"},
		"nothing, no fallback":  {Image{}, "", ""},
		"parts, no version":     {Image{Repository: "r", Image: "i"}, "fallback", ""},
		"version alone":         {Image{Version: "v1"}, "fallback", ""},
		"repository and a tag":  {Image{Repository: "r", Version: "v1"}, "fallback", ""},
		"image and a tag alone": {Image{Image: "i", Version: "v1"}, "fallback", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.image.Reference("draDriver", test.fallback)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func parse(t *testing.T, spec map[string]any) GPUClusterSpec {
	t.Helper()
	parsed, err := ParseGPUClusterSpec(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestSwitchesWithoutEnabled(t *testing.T) {
	absent := parse(t, map[string]any{"draDriver": map[string]any{}})
	if absent.DRADriver.ComputeDomainsEnabled() || absent.DCGMEnabled() || absent.DCGMExporterEnabled() {
		t.Error("an absent object must mean off")
	}
	present := parse(t, map[string]any{
		"draDriver":    map[string]any{"computeDomains": map[string]any{}},
		"dcgm":         map[string]any{},
		"dcgmExporter": map[string]any{},
	})
	if !present.DRADriver.ComputeDomainsEnabled() || present.DCGMEnabled() || !present.DCGMExporterEnabled() {
		t.Error("an object without `enabled` means on for computeDomains and dcgmExporter, off for dcgm")
	}
}

func TestDefaults(t *testing.T) {
	spec := parse(t, map[string]any{"draDriver": map[string]any{}})
	if spec.HostPaths.DriverInstallDir != "/run/nvidia/driver" || spec.HostPaths.KubeletRootDir != "/var/lib/kubelet" ||
		spec.Daemonsets.PriorityClassName != "system-node-critical" {
		t.Errorf("wrong defaults: %+v", spec)
	}
}

func conditionOf(t *testing.T, object *unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if entry := condition.(map[string]any); entry["type"] == name {
			return entry
		}
	}
	t.Fatalf("no condition %s in %v", name, object.Object["status"])
	return nil
}

func TestSetStatus(t *testing.T) {
	object := New(GPUClusterKind)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	if !SetStatus(object, Bad(ReasonOperandNotReady, "waiting"), "ns", start) {
		t.Error("the first status must count as a change")
	}
	if SetStatus(object, Bad(ReasonOperandNotReady, "waiting"), "ns", start.Add(time.Hour)) {
		t.Error("the same verdict must not count as a change")
	}
	failed := conditionOf(t, object, ConditionError)
	if failed["status"] != "True" || failed["reason"] != ReasonOperandNotReady || failed["message"] != "waiting" {
		t.Errorf("wrong condition Error: %v", failed)
	}
	if ready := conditionOf(t, object, ConditionReady); ready["status"] != "False" || ready["reason"] != ReasonError {
		t.Errorf("wrong condition Ready: %v", ready)
	}

	if !SetStatus(object, Bad(ReasonReconcileFailed, "broken"), "ns", start.Add(time.Hour)) {
		t.Error("another reason must count as a change")
	}
	if conditionOf(t, object, ConditionError)["lastTransitionTime"] != "2026-01-01T00:00:00Z" {
		t.Error("another reason with the same status is no transition")
	}

	SetStatus(object, Good(), "ns", start.Add(time.Hour))
	ready := conditionOf(t, object, ConditionReady)
	if ready["status"] != "True" || ready["reason"] != ReasonReconciled || ready["lastTransitionTime"] != "2026-01-01T01:00:00Z" {
		t.Errorf("wrong condition Ready: %v", ready)
	}
	if good := conditionOf(t, object, ConditionError); good["status"] != "False" || good["reason"] != ReasonReady {
		t.Errorf("wrong condition Error: %v", good)
	}
	if state, _, _ := unstructured.NestedString(object.Object, "status", "state"); state != StateReady {
		t.Errorf("wrong state %s", state)
	}
}
