#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pause and resume the DRA plugin on a node."""
from __future__ import annotations

DOCUMENTATION = r"""
module: dra_node_pause
short_description: Take NVIDIA's DRA plugin off a node for a MIG change, and put it back
version_added: 0.1.0
author:
  - gpufleet.dra contributors (@gpufleet)
description:
  - Static MIG layouts have to be changed while nothing holds the GPUs, and the DRA plugin looks at them only when it starts. This module
    pauses the plugin and the GPU Operator's monitoring on one node in the order that leaves no pod hanging, and puts them back.
  - A pause records the deploy labels and the cordon of the Node in the annotation C(gpufleet.dra/paused), cordons the node, sets the deploy
    labels of validator, DCGM and DCGM exporter to C(paused-for-mig-change), waits until their pods are gone, and does the same with the plugin.
  - An interrupted run is finished by the next one, from the annotation.
  - A node that the operator does not manage and that has no plugin pod is left as it is.
  - Runs on the controller; give it C(delegate_to=localhost).
options:
  name:
    description:
      - Name of the Node.
    type: str
    required: true
  state:
    description:
      - With V(paused) the plugin is taken off the node. Refused, with the node as it was found, while a claim holds one of O(devices) or while
        the operator upgrades the node's driver. In check mode both are warnings.
      - With V(cordoned) only the record of a pause is written and the node cordoned, so that pods can be drained while the plugin is there to
        release their claims. V(paused) goes on from there, and V(resumed) lifts the cordon again.
      - With V(resumed) the node is put back as recorded. The module waits for a new plugin pod that is ready, and until it publishes
        O(published_devices), then uncordons the node if it was the pause that had cordoned it. Pause values that are left without a record are
        replaced by the operator's V(true).
      - With V(probe) nothing is changed; the result says how the node stands.
    type: str
    choices: [paused, cordoned, resumed, probe]
    default: paused
  devices:
    description:
      - Names of the devices that will change. Claims on other devices of the node do not count. By default all devices of O(driver) count.
    type: list
    elements: str
  claims_timeout:
    description:
      - Seconds to wait with O(state=paused), the node cordoned, until no claim holds one of O(devices) any more. Nothing is evicted. When the
        time is over the module fails and the node is as it was found.
      - With V(0) claims are refused at once, before anything changes.
    type: int
    default: 0
  published_devices:
    description:
      - Names of the devices that the node has to publish before O(state=resumed) uncordons it, such as RV(gpufleet.dra.mig_layout#module:device_names).
        Slices of an old layout outlive the old plugin pod by some seconds, and the scheduler would allocate devices from them that are gone.
      - By default a ready plugin pod is enough.
    type: list
    elements: str
  details:
    description:
      - Whether O(state=probe) also lists the claims that hold O(devices), for which all claims of the cluster are read, and the plugin pods.
    type: bool
    default: false
  driver:
    description:
      - The DRA driver.
    type: str
    default: gpu.nvidia.com
  plugin_selector:
    description:
      - Label selector of the plugin's pods.
    type: str
    default: app=nvidia-dra-driver-kubelet-plugin
  plugin_namespace:
    description:
      - Namespace of the operator's pods. By default pods are looked for in all namespaces, which needs the right to list them there.
    type: str
  timeout:
    description:
      - Seconds that each of the waits may take, for the operands to go, for the plugin to go, for the plugin to come back, for it to publish.
    type: int
    default: 300
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpufleet.dra.attributes
  - gpufleet.dra.attributes.kubernetes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: gpufleet.dra.mig_layout
"""

EXAMPLES = r"""
- name: Take the plugin off the node
  gpufleet.dra.dra_node_pause:
    name: "{{ dra_node_name | default(inventory_hostname) }}"
    state: paused
  delegate_to: localhost

- name: Change the layout
  gpufleet.dra.mig_layout:
    layouts:
      - match: all
        mode: enabled
        instances: all-1g
  become: true
  register: layout

- name: Put the plugin back and wait until it publishes the new devices
  gpufleet.dra.dra_node_pause:
    name: "{{ dra_node_name | default(inventory_hostname) }}"
    state: resumed
    published_devices: "{{ layout.device_names }}"
  delegate_to: localhost

- name: See which pods hold two devices
  gpufleet.dra.dra_node_pause:
    name: node-3
    state: probe
    details: true
    devices: [gpu-0, gpu-1]
  delegate_to: localhost
  register: node
"""

RETURN = r"""
before:
  description: Deploy labels, cordon and pause of the Node before.
  returned: success
  type: dict
  contains: &view
    labels:
      description: The deploy labels that are there.
      type: dict
      sample: {nvidia.com/gpu.deploy.dra-driver: "true"}
    unschedulable:
      description: Whether the node is cordoned.
      type: bool
    paused:
      description: Whether the node has the record of a pause.
      type: bool
after:
  description: The same afterwards; in check mode, as it would be.
  returned: success
  type: dict
  contains: *view
claims:
  description: Claims without admin access that hold the devices in question.
  returned: when O(state=probe) and O(details=true)
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the claim.
      type: str
    name:
      description: Name of the claim.
      type: str
    devices:
      description: Devices of the node that it holds.
      type: list
      elements: str
    pods:
      description: Pods that it is reserved for.
      type: list
      elements: str
plugin_pods:
  description: Names of the plugin pods on the node.
  returned: when O(state=probe) and O(details=true)
  type: list
  elements: str
"""

import copy
from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.client import KubeApi
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.pause import NodePause, PauseOptions
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule


def argument_spec() -> dict[str, Any]:
    """Return the options, with kubernetes.core's authentication options among them."""
    spec = copy.deepcopy(AUTH_ARG_SPEC)
    spec.update(
        name={"type": "str", "required": True},
        state={"type": "str", "choices": ["paused", "cordoned", "resumed", "probe"], "default": "paused"},
        devices={"type": "list", "elements": "str"},
        claims_timeout={"type": "int", "default": 0},
        published_devices={"type": "list", "elements": "str"},
        details={"type": "bool", "default": False},
        driver={"type": "str", "default": "gpu.nvidia.com"},
        plugin_selector={"type": "str", "default": "app=nvidia-dra-driver-kubelet-plugin"},
        plugin_namespace={"type": "str"},
        timeout={"type": "int", "default": 300},
    )
    return spec


def run(params: dict[str, Any], check_mode: bool, warn: Callable[[str], None]) -> dict[str, Any]:
    """Bring the node into the state that was asked for and return the module's result. Raises FleetError."""
    options = PauseOptions(
        node=params["name"],
        driver=params["driver"],
        devices=params["devices"],
        plugin_selector=params["plugin_selector"],
        namespace=params["plugin_namespace"],
        timeout_s=params["timeout"],
        claims_timeout_s=params["claims_timeout"],
        published=params["published_devices"],
        check_mode=check_mode,
    )
    pause = NodePause(KubeApi.connect(params), options)
    more: dict[str, Any] = {}
    if params["state"] == "paused":
        pause.pause()
    elif params["state"] == "cordoned":
        pause.cordon()
    elif params["state"] == "resumed":
        pause.resume()
    elif params["details"]:
        more["claims"] = [claim.as_dict() for claim in pause.claims()]
        more["plugin_pods"] = [pod["metadata"]["name"] for pod in pause.plugin_pods()]
    for warning in pause.warnings:
        warn(warning)
    return dict(more, changed=pause.changed, before=pause.before, after=pause.after, diff={"before": pause.before, "after": pause.after})


def main() -> None:
    """Run the module."""
    module = AnsibleK8SModule(module_class=AnsibleModule, argument_spec=argument_spec(), supports_check_mode=True, check_pyyaml=False)
    try:
        module.exit_json(**run(module.params, module.check_mode, module.warn))
    except FleetError as error:
        module.fail_json(**error.as_failure())


if __name__ == "__main__":
    main()
