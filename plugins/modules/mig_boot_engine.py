#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation of the action plugin mig_boot_engine, which packs the engine on the controller."""
from __future__ import annotations

DOCUMENTATION = r"""
module: mig_boot_engine
short_description: Install the program that makes a node's MIG layout again at boot
version_added: 0.1.0
author: gpufleet.dra contributors (@gpufleet)
description:
  - Packs the MIG engine of this collection and the controller's nvidia-ml-py into one file, and writes it to the node with the settings of the node. Any
    Python from 3.9 on runs it, and nothing else has to be installed there.
  - Both files are written only where they differ; an unchanged engine is an unchanged file.
  - The role P(gpufleet.dra.mig#role) uses it and adds the systemd unit that runs the program before the kubelet.
  - With O(on_failure=pause) the settings say how the node's kubelet reaches the API server, read from the kubelet's kubeconfig on the node. They hold paths of
    its client certificate and key, never a key.
options:
  state:
    description:
      - V(probe) installs nothing. It reads what O(on_failure=pause) needs of the node, and fails where that cannot be used.
    type: str
    choices: [present, probe]
    default: present
  path:
    description:
      - Where the program goes.
    type: path
    default: /usr/local/lib/gpufleet/gpufleet-mig.pyz
  settings:
    description:
      - Where the settings go. The program looks for them in the default path.
    type: path
    default: /etc/gpufleet/mig-boot.json
  layouts:
    description:
      - The layout to make at boot, as RV(gpufleet.dra.mig_layout#module:fixed_layouts), with UUID and places of each GPU.
    type: list
    elements: dict
    default: []
  allow_reset:
    description:
      - Whether a GPU may be reset when its MIG mode needs that to change.
    type: bool
    default: false
  ignore_health:
    description:
      - Whether to put a GPU into MIG mode, or partition it, although it reports a fault.
    type: bool
    default: false
  phase_timeout:
    description:
      - Seconds that each phase of the change (read, destroy, mode, reset, create) may take for each GPU.
    type: int
    default: 120
  wait:
    description:
      - Seconds that each wait may take at boot, for the driver to be loaded, for a busy GPU or another run to end, for the API server to answer.
    type: int
    default: 60
  timeout:
    description:
      - Seconds that making the layout may take as a whole. After that the program counts it as failed.
    type: int
    default: 300
  on_failure:
    description:
      - What the program does when it cannot make the layout. V(hold) only fails, so that the unit holds the kubelet back. V(pause) keeps the DRA plugin off the
        node by a label, so that the kubelet may start.
    type: str
    choices: [hold, pause]
    default: hold
  node_name:
    description:
      - Name of the node's Node object. Needed with O(on_failure=pause).
    type: str
  kubeconfig:
    description:
      - The kubelet's kubeconfig on the node. By default the first that exists of those that kubeadm, k3s and RKE2 make.
    type: path
  api_server:
    description:
      - URL of the API server, in the place of the one in the kubeconfig. Needed where that is an address of the node itself, as with k3s and RKE2.
    type: str
extends_documentation_fragment:
  - gpufleet.dra.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: The settings are shown; of the program only that it differs.
  idempotent:
    support: full
requirements:
  - nvidia-ml-py >= 13.580 on the controller.
notes:
  - Needs C(become), for it writes files of root and reads the kubelet's kubeconfig.
seealso:
  - module: gpufleet.dra.mig_layout
"""

EXAMPLES = r"""
- name: Make the layout
  gpufleet.dra.mig_layout:
    layouts:
      - match: all
        instances: all-1g
  become: true
  register: made

- name: Install what makes it again at boot
  gpufleet.dra.mig_boot_engine:
    layouts: "{{ made.fixed_layouts }}"
    on_failure: pause
    node_name: "{{ inventory_hostname }}"
  become: true
"""

RETURN = r"""
# The result says what every module says: changed, and in diff mode diff.
"""
