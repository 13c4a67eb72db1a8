#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation of the action plugin dra_verify, which runs on the controller."""
from __future__ import annotations

DOCUMENTATION = r"""
module: dra_verify
short_description: Prove that a cluster publishes exactly the GPUs and MIG devices that its nodes have
version_added: 0.1.0
author:
  - gpufleet.dra contributors (@gpufleet)
description:
  - Compares, for all hosts of a play at once, what NVML reports on the host with what NVIDIA's DRA driver has published in ResourceSlices.
    Each GPU and MIG instance must stand there with its right name, UUID, memory, attributes and capacities, and nothing else may.
  - The prediction is made from NVML facts alone, by the rules of the driver. Attributes that do not come from NVML (C(pcieRoot),
    C(numaNode)) are not judged.
  - Also checked are that the host's Node exists and is this very host, that a ready plugin pod stands behind the slices, that pools are
    complete, that MIG mode is not on without instances, that each GPU instance has a compute instance of its full size, and, where the play
    has asked M(gpufleet.dra.mig_layout) in check mode, that the layout is the one asked for.
  - Runs once per play, on the controller, and changes nothing. It takes one snapshot of the cluster, and another one only while there are
    differences that the driver puts right by itself.
  - What it judges comes from variables of each host, which role P(gpufleet.dra.dra_verify#role) registers.
    C(dra_verify_nvml) is the result of M(gpufleet.dra.nvml_info), also a failed one; C(dra_verify_layout) the result of
    M(gpufleet.dra.mig_layout) in check mode (optional); C(dra_verify_machine_id) the content of C(/etc/machine-id) (optional);
    C(dra_node_name) the name of the host's Node (default the inventory name).
options:
  hosts:
    description:
      - The hosts to judge. A host that failed, cannot be reached, or is not in the play is listed as not judged, never as right.
      - By default all hosts of the play. Under C(--limit) that includes those that the limit leaves out, as long as the play names its hosts
        by groups and host names without further pattern syntax.
    type: list
    elements: str
  driver:
    description:
      - The DRA driver whose devices are judged.
    type: str
    default: gpu.nvidia.com
  plugin_selector:
    description:
      - Label selector of the driver's plugin pods.
    type: str
    default: app=nvidia-dra-driver-kubelet-plugin
  plugin_namespace:
    description:
      - Namespace of the plugin pods. By default they are looked for in all namespaces, which needs the right to list pods there.
    type: str
  timeout:
    description:
      - Seconds to wait while all errors are of a kind that the driver puts right by itself, such as a missing device. An error that needs
        somebody, such as a wrong layout, ends the wait at once.
    type: int
    default: 60
  report_dir:
    description:
      - Folder on the controller for C(verdict.json) and C(junit.xml); it is made if it is missing. Nothing is written in check mode.
    type: path
  expectations:
    description:
      - Expectations of your own over the verification document, which is what C(verdict.json) holds.
      - Needs the Python library jmespath on the controller.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: What is expected, in words.
        type: str
        required: true
      query:
        description: JMESPath expression over the document.
        type: str
        required: true
      equals:
        description: The value that it has to give.
        type: raw
        required: true
  fail_on:
    description:
      - The lowest severity of a finding that makes the task fail. With V(never) the result has the findings and the task succeeds.
    type: str
    choices: [error, warning, never]
    default: error
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpufleet.dra.attributes
  - gpufleet.dra.attributes.kubernetes
attributes:
  check_mode:
    support: full
    details: The comparison is the same in check mode; only the report files are not written.
  diff_mode:
    support: none
    details: The action changes nothing.
  idempotent:
    support: full
seealso:
  - module: gpufleet.dra.nvml_info
  - module: gpufleet.dra.resource_slice_info
"""

EXAMPLES = r"""
- name: Verify the fleet
  hosts: gpu_nodes
  gather_facts: false
  tasks:
    - name: Read the GPUs
      gpufleet.dra.nvml_info:
      become: true
      register: dra_verify_nvml

    - name: Compare them with what the cluster publishes
      gpufleet.dra.dra_verify:
        kubeconfig: ~/.kube/config
        report_dir: /var/lib/gpu-verdicts
        expectations:
          - name: the training nodes have 16 whole H100
            query: "length(gpus[?layout=='MIG off' && contains(gpu.product, 'H100')])"
            equals: 16
      run_once: true
      register: verdict

    - name: Show the table
      ansible.builtin.debug:
        msg: "{{ verdict.summary.splitlines() }}"
      run_once: true
"""

RETURN = r"""
verdict:
  description: V(right) if there is no finding of severity error, else V(wrong).
  returned: always
  type: str
summary:
  description: An aligned table with a line per GPU, and one sentence.
  returned: always
  type: str
table:
  description: The table as data.
  returned: always
  type: list
  elements: dict
  contains:
    node:
      description: Name of the Node.
      type: str
    gpu:
      description: Index, product and UUID; null for a host that was not judged, and for devices that belong to no GPU of the node.
      type: dict
    layout:
      description: The MIG layout by placement.
      type: str
      sample: 4x 1g.10gb + 3g.40gb
    devices_published:
      description: How many devices of this GPU are published.
      type: int
    devices:
      description: Their names.
      type: list
      elements: str
    verdict:
      description: V(right), V(wrong) or V(not judged).
      type: str
findings:
  description: Everything that was found, errors and warnings.
  returned: always
  type: list
  elements: dict
  contains:
    reason:
      description: Code of the reason registry.
      type: str
      sample: DeviceMissing
    severity:
      description: V(error) or V(warning).
      type: str
    object:
      description: What the finding is about.
      type: str
    cause:
      description: What is wrong.
      type: str
    remedy:
      description: What to do.
      type: str
    details:
      description: Node, GPU, device, and what was expected and found.
      type: dict
report:
  description: Paths of the files on the controller.
  returned: when O(report_dir) is given and not in check mode
  type: dict
  sample: {json: /var/lib/gpu-verdicts/verdict.json, junit: /var/lib/gpu-verdicts/junit.xml}
msg:
  description: One sentence, followed by a sentence for each error.
  returned: always
  type: str
"""
