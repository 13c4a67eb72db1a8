// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

package operands

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unit is a manifest and the condition under which its objects exist.
type unit struct {
	manifest string
	wanted   func(Values) bool
}

// State is one of the operator's states: a name, the objects that it applies and the ones that it takes away.
type State struct {
	Name  string
	units []unit
	// unmet names what was asked for and cannot be given; nil where nothing is missing.
	unmet func(Values) error
}

func always(Values) bool { return true }

func computeDomains(v Values) bool { return v.DRADriver.ComputeDomainsEnabled() }

func dcgm(v Values) bool { return v.DCGMEnabled() }

func dcgmExporter(v Values) bool { return v.DCGMExporterEnabled() }

// errComputeDomains is reported after everything else of the state has been applied.
var errComputeDomains = errors.New("draDriver.computeDomains.enabled: the sandbox has no compute domains (no IMEX " +
	"channels, no NVLink fabric); its DeviceClasses are there, the container compute-domains is not; set it to false")

// States lists all states in the order in which the operator syncs them.
var States = []State{
	{
		Name: "state-dra-driver",
		units: []unit{
			{"dra-driver-rbac", always},
			{"dra-driver-device-classes", always},
			{"compute-domain-device-classes", computeDomains},
			{"dra-driver-admission-policy", always},
			{"dra-driver-daemonset", always},
		},
		unmet: func(v Values) error {
			if computeDomains(v) {
				return errComputeDomains
			}
			return nil
		},
	},
	{Name: "state-dcgm", units: []unit{{"dcgm", dcgm}}},
	{Name: "state-dcgm-exporter", units: []unit{{"dcgm-exporter", dcgmExporter}}},
	{Name: "state-dra-validation", units: []unit{{"dra-validator", always}}},
}

// Objects renders a state: the objects that must exist and the ones that must not.
func (s State) Objects(values Values) (wanted, unwanted []*unstructured.Unstructured, err error) {
	for _, unit := range s.units {
		objects, err := render(unit.manifest, values)
		if err != nil {
			return nil, nil, err
		}
		if unit.wanted(values) {
			wanted = append(wanted, objects...)
		} else {
			unwanted = append(unwanted, objects...)
		}
	}
	return wanted, unwanted, nil
}
