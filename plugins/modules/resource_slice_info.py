#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read-only view of the devices that DRA drivers publish."""
from __future__ import annotations

DOCUMENTATION = r"""
module: resource_slice_info
short_description: Read what DRA drivers publish in ResourceSlices
version_added: 0.1.0
author:
  - gpufleet.dra contributors (@gpufleet)
description:
  - Reads the ResourceSlices of a cluster (C(resource.k8s.io/v1)), forms the pools that they make up, and returns pools and devices.
  - A pool is what stands at its highest generation. It is complete when it has as many slices as each of them announces; the scheduler
    skips incomplete pools, so a device in one cannot be allocated.
  - The list is read in pages of 500 slices; one request per 500 slices, however many nodes the cluster has.
options:
  driver:
    description:
      - Only slices of this DRA driver, for example V(gpu.nvidia.com).
    type: str
  node_name:
    description:
      - Only slices that belong to this node.
    type: str
  pool:
    description:
      - Only this pool. NVIDIA's driver names a node's pool after the node.
    type: str
  query:
    description:
      - JMESPath expression over the result (keys RV(slices), RV(pools), RV(devices)); what it gives is returned as RV(result).
      - Needs the Python library jmespath where the module runs.
    type: str
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpufleet.dra.attributes
  - gpufleet.dra.attributes.kubernetes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The module changes nothing.
  idempotent:
    support: full
seealso:
  - module: gpufleet.dra.dra_verify
"""

EXAMPLES = r"""
- name: Read all GPUs and MIG devices of the cluster
  gpufleet.dra.resource_slice_info:
    kubeconfig: ~/.kube/config
    driver: gpu.nvidia.com
  delegate_to: localhost
  run_once: true
  register: published

- name: Refuse to go on while a pool is incomplete
  ansible.builtin.assert:
    that: published.pools | rejectattr('complete') | length == 0

- name: Count the 1g.10gb devices of each node
  gpufleet.dra.resource_slice_info:
    driver: gpu.nvidia.com
    query: "devices[?attributes.profile=='1g.10gb'].node_name"
  delegate_to: localhost
  run_once: true
  register: small
"""

RETURN = r"""
slices:
  description: The ResourceSlices, of all generations, in the order of the API.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the object.
      type: str
    driver:
      description: The DRA driver.
      type: str
    pool:
      description: Name of the pool.
      type: str
    generation:
      description: Generation of the pool that this slice belongs to.
      type: int
    resource_slice_count:
      description: How many slices the pool has at this generation.
      type: int
    node_name:
      description: The node, empty for devices that belong to no single node.
      type: str
    devices:
      description: Names of the devices.
      type: list
      elements: str
    counter_sets:
      description: Names of the shared counter sets (partitionable devices).
      type: list
      elements: str
pools:
  description: The pools at their highest generation, sorted by driver and name.
  returned: success
  type: list
  elements: dict
  contains:
    driver:
      description: The DRA driver.
      type: str
    name:
      description: Name of the pool.
      type: str
    node_name:
      description: The node, empty for devices that belong to no single node.
      type: str
    generation:
      description: The highest generation.
      type: int
    resource_slice_count:
      description: How many slices belong to it.
      type: int
    slices:
      description: Names of the slices at this generation.
      type: list
      elements: str
    obsolete_slices:
      description: Names of slices of lower generations.
      type: list
      elements: str
    complete:
      description: Whether all slices are there.
      type: bool
    devices:
      description: Names of the devices.
      type: list
      elements: str
    duplicate_devices:
      description: Device names that occur more than once; the scheduler refuses such a pool.
      type: list
      elements: str
devices:
  description: The devices of all pools.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the device.
      type: str
      sample: gpu-0-mig-3g40gb-9-4
    driver:
      description: The DRA driver.
      type: str
    pool:
      description: Name of the pool.
      type: str
    node_name:
      description: The node.
      type: str
    slice:
      description: Name of the ResourceSlice.
      type: str
    attributes:
      description: Attribute values by name. Names in the driver's own domain are bare.
      type: dict
    capacities:
      description: Capacities by name, as Kubernetes quantities.
      type: dict
      sample: {memory: 40448Mi, multiprocessors: "60"}
    taints:
      description: Taints of the device.
      type: list
      elements: dict
result:
  description: What O(query) gives.
  returned: when O(query) is given
  type: raw
"""

import copy
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.slices import device_dict, form_pools, parse_slice, slice_dict
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.client import RESOURCE_SLICES, KubeApi
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.query import search
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule


def argument_spec() -> dict[str, Any]:
    """Return the options, with kubernetes.core's authentication options among them."""
    spec = copy.deepcopy(AUTH_ARG_SPEC)
    spec.update(driver={"type": "str"}, node_name={"type": "str"}, pool={"type": "str"}, query={"type": "str"})
    return spec


def read(params: dict[str, Any]) -> dict[str, Any]:
    """Return slices, pools, devices and, where asked for, the query's result. Raises FleetError."""
    fields = {"spec.driver": params["driver"], "spec.nodeName": params["node_name"]}
    selector = ",".join(f"{name}={value}" for name, value in fields.items() if value)
    raw = KubeApi.connect(params).list_all(RESOURCE_SLICES, **({"field_selector": selector} if selector else {}))
    # spec.pool.name is a field selector from Kubernetes 1.37 on only.
    slices = [item for item in map(parse_slice, raw) if params["pool"] in (None, item.pool)]
    pools = form_pools(slices)
    found: dict[str, Any] = {
        "slices": [slice_dict(item) for item in slices],
        "pools": [pool.as_dict() for pool in pools],
        "devices": [device_dict(device, pool) for pool in pools for device in pool.devices],
    }
    if params["query"]:
        found["result"] = search(params["query"], found, "query")
    return found


def main() -> None:
    """Run the module."""
    module = AnsibleK8SModule(module_class=AnsibleModule, argument_spec=argument_spec(), supports_check_mode=True, check_pyyaml=False)
    try:
        module.exit_json(changed=False, **read(module.params))
    except FleetError as error:
        module.fail_json(**error.as_failure())


if __name__ == "__main__":
    main()
