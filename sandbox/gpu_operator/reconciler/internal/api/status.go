// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package api

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verdict is what a reconcile pass found: the state and, where it is not ready, the reason and the sentence.
type Verdict struct {
	State   string
	Reason  string
	Message string
}

// Good is the verdict on a resource that is as it should be.
func Good() Verdict {
	return Verdict{State: StateReady, Reason: ReasonReconciled}
}

// Bad is the verdict notReady with a reason of the condition Error.
func Bad(reason, message string) Verdict {
	return Verdict{State: StateNotReady, Reason: reason, Message: message}
}

// conditions returns the pair Ready and Error: True/Reconciled with False/Ready, or False/Error with True/<reason>.
func (v Verdict) conditions() []map[string]any {
	if v.State == StateReady {
		return []map[string]any{
			{"type": ConditionReady, "status": "True", "reason": v.Reason, "message": v.Message},
			{"type": ConditionError, "status": "False", "reason": ReasonReady, "message": ""},
		}
	}
	return []map[string]any{
		{"type": ConditionReady, "status": "False", "reason": ReasonError, "message": v.Message},
		{"type": ConditionError, "status": "True", "reason": v.Reason, "message": v.Message},
	}
}

// SetStatus writes a verdict into status (state, namespace, conditions; there is no observedGeneration) and tells
// whether that changed anything. A condition keeps its lastTransitionTime while its status stays the same.
// namespace is the operator's; kinds whose status has none pass "".
func SetStatus(object *unstructured.Unstructured, verdict Verdict, namespace string, now time.Time) bool {
	before, _, _ := unstructured.NestedMap(object.Object, "status")
	old, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	conditions := make([]any, 0, 2)
	for _, condition := range verdict.conditions() {
		condition["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
		for _, entry := range old {
			previous, isMap := entry.(map[string]any)
			if isMap && previous["type"] == condition["type"] && previous["status"] == condition["status"] {
				condition["lastTransitionTime"] = previous["lastTransitionTime"]
			}
		}
		conditions = append(conditions, condition)
	}
	status := map[string]any{"state": verdict.State, "conditions": conditions}
	if namespace != "" {
		status["namespace"] = namespace
	}
	object.Object["status"] = status
	return !equality.Semantic.DeepEqual(before, status)
}
