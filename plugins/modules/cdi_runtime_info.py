#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module cdi_runtime_info: the container runtime of a node and its CDI settings."""
from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_runtime_info
short_description: Read whether the container runtime injects devices by CDI, and what would make it so
version_added: 0.1.0
author: gpufleet.dra contributors (@gpufleet)
description:
  - Finds the container runtime of the node (containerd, CRI-O, or the containerd of k3s or RKE2), reads its effective CDI settings and those of the running
    daemon, and tells which drop-in file would make them right, whether a restart is needed for it, and which pods run.
  - The runtime itself is asked for what is in effect (C(containerd config dump), C(crio config), C(crio status config)), also for the drop-in file before it
    is there, in a private folder. A drop-in that would change more than CDI is refused.
  - The running daemon may have an older configuration than the files. It is read from C(crictl info), C(crio status config) or what containerd wrote to the
    journal at its start; where none of these tells, files that were changed after the daemon was started count as a restart that is due.
  - Changes nothing. The role P(gpufleet.dra.cdi_runtime#role) acts on what it returns.
options:
  name:
    description:
      - The runtime that the kubelet uses. V(auto) takes the one that runs, else the one that is enabled, else the one that is installed, and fails where there
        are several.
    type: str
    choices: [auto, containerd, crio, k3s, rke2]
    default: auto
  spec_dirs:
    description:
      - The folders that CDI specifications have to be read from. Others that the runtime reads stay.
    type: list
    elements: path
    default: [/etc/cdi, /var/run/cdi]
  state:
    description:
      - With V(present), RV(cdi.files) is what makes the settings right. With V(absent) it is what takes away what an earlier run of the role wrote.
    type: str
    choices: [present, absent]
    default: present
extends_documentation_fragment:
  - gpufleet.dra.attributes
attributes:
  check_mode:
    support: full
    description: Runs the same in check mode.
  diff_mode:
    support: N/A
    description: Nothing is changed.
  idempotent:
    support: full
    description: Nothing is changed.
notes:
  - Needs C(become), for it reads configurations and process states of root.
seealso:
  - module: gpufleet.dra.nvml_info
"""

EXAMPLES = r"""
- name: Read the runtime
  gpufleet.dra.cdi_runtime_info:
  become: true
  register: runtime

- name: See that pods can get GPUs
  ansible.builtin.assert:
    that: runtime.cdi.right
    fail_msg: "{{ runtime.cdi.runtime.unit }}: {{ runtime.cdi.restart.reasons | join }}"

- name: Read CRI-O although containerd is there too
  gpufleet.dra.cdi_runtime_info:
    name: crio
  become: true
"""

RETURN = r"""
cdi:
  description: The runtime and its CDI settings.
  returned: success
  type: dict
  contains:
    runtime:
      description: C(name), C(version), systemd C(unit), whether it is C(active), C(binary) and C(config_file).
      type: dict
      sample: {name: containerd, version: 2.2.9, unit: containerd.service, active: true, binary: /usr/bin/containerd, config_file: /etc/containerd/config.toml}
    effective:
      description:
        - The settings by the files as they are (with O(state=absent) as they will be), C(enabled) and C(spec_dirs), and C(source), what told them.
      type: dict
      sample: {enabled: true, spec_dirs: [/etc/cdi, /var/run/cdi], source: containerd config dump}
    running:
      description: The same of the running daemon. Null where it does not run or does not tell.
      type: dict
      sample: {enabled: true, spec_dirs: [/etc/cdi, /var/run/cdi], source: journal}
    newer_files:
      description: Files of the configuration that were changed after the daemon was started.
      type: list
      elements: str
    right:
      description: Whether the runtime runs and serves CDI from all folders of O(spec_dirs).
      type: bool
    files:
      description: Files to write, with C(path), C(content) (null for one to remove) and C(before) (null for one that is not there).
      type: list
      elements: dict
    restart:
      description: Whether the daemon has to be restarted (C(needed)) and C(reasons), a sentence each.
      type: dict
      sample: {needed: false, reasons: []}
    pods:
      description: What runs under the runtime, pods as namespace/name, other containers by their id.
      type: list
      elements: str
    findings:
      description:
        - What keeps a drop-in file from making it right, as in the verification's findings with C(reason), C(cause) and C(remedy). C(CdiImportMissing),
          C(CdiTemplateImportMissing), C(CdiCriDisabled), C(CdiConfigTooOld), C(CdiRuntimeTooOld), C(CdiNotEffective), C(CdiDropInConflict),
          C(CdiSectionHasSecrets).
      type: list
      elements: dict
reason:
  description: Reason code of the failure, such as V(CdiRuntimeMissing), V(CdiRuntimeAmbiguous), V(CdiConfigBroken).
  returned: failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.module_edge import failures, require_python
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.facts import runtime_facts
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.node import Node, node_name

ARGUMENT_SPEC = {
    "name": {"type": "str", "choices": ["auto", "containerd", "crio", "k3s", "rke2"], "default": "auto"},
    "spec_dirs": {"type": "list", "elements": "path", "default": ["/etc/cdi", "/var/run/cdi"]},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    with failures(module):
        require_python()
        facts = runtime_facts(Node(), node_name(), params["name"], tuple(params["spec_dirs"]), params["state"] == "present")
        module.exit_json(changed=False, cdi=facts)


if __name__ == "__main__":
    main()
