#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module driver_info: the NVIDIA driver of a host, as it is and as its package sources offer it."""
from __future__ import annotations

DOCUMENTATION = r"""
module: driver_info
short_description: Read the NVIDIA driver of a host, and what its package sources offer
version_added: 0.1.0
author: gpufleet.dra contributors (@gpufleet)
description:
  - Returns all that the role P(gpufleet.dra.nvidia_driver#role) decides on, in one execution. That is the host and its kernels, the GPUs on PCI, the driver
    that is loaded, the one that is installed, what NVML answers, packages with their origin and holds, services, and traces of drivers from elsewhere.
  - Nothing of the host is changed. NVML is not called while no driver is loaded, for it would load one.
  - With O(view) the package sources are asked as well, through a private copy of the package manager's configuration in a temporary folder. So versions and
    the whole transaction are known before anything is written, also on a fresh host and in check mode. It needs root and the network that an installation
    needs.
  - The key of a repository is fetched by Python. Where the way out is a proxy, give it in the environment of the task, as for the package managers.
  - Works without a driver. The Python binding (nvidia-ml-py) is carried along from the controller.
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
options:
  view:
    description: What to ask the package sources for. Without it they are not asked.
    type: dict
    suboptions:
      repository:
        description: The repository with the driver. Without it the host's own package sources are asked.
        type: dict
        suboptions:
          kind:
            description: The package manager that reads it.
            type: str
            choices: [apt, dnf, zypper]
            required: true
          url:
            description: Address of the repository.
            type: str
            required: true
          key_url:
            description: Address of the OpenPGP key that signs it.
            type: str
            required: true
          fingerprint:
            description: Fingerprint of the key that is expected, as hexadecimal digits. The key is refused when it has another.
            type: str
            required: true
          distribution_repos:
            description: Whether the host's own package sources are asked as well, for what the driver needs from the distribution.
            type: bool
            default: true
      branch:
        description: Driver branch, such as V(580).
        type: str
        required: true
      version:
        description: Exact driver version. Empty for the newest of the branch.
        type: str
        default: ""
      stream:
        description: Module stream of C(nvidia-driver) to enable, where dnf has one.
        type: str
      install:
        description:
          - Names of the packages to install. Those that O(view.pins) matches get the driver's version.
        type: list
        elements: str
        required: true
      pins:
        description: Globs of package names that must carry the driver's version, also when they come in as dependencies.
        type: list
        elements: str
        required: true
      remove:
        description: Names of packages that have to go in the same transaction.
        type: list
        elements: str
        default: []
extends_documentation_fragment:
  - gpufleet.dra.nvml
seealso:
  - plugin: gpufleet.dra.driver_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the driver
  gpufleet.dra.driver_info:
  become: true
  register: info

- name: See that the loaded driver is the installed one
  ansible.builtin.assert:
    that:
      - info.driver.loaded.module.version == info.driver.library.version
      - info.driver.packages | map(attribute='origin') | unique == ['nvidia']

- name: Ask NVIDIA's repository for the newest driver of a branch, and what an installation would do
  gpufleet.dra.driver_info:
    view:
      repository:
        kind: apt
        url: https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/
        key_url: https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/3bf863cc.pub
        fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC
      branch: "595"
      install: [nvidia-driver-cuda, nvidia-kernel-open-dkms]
      pins: ["nvidia-*", "libnvidia-*", "libcuda1"]
  become: true
  register: info

- name: Show it
  ansible.builtin.debug:
    msg: "{{ info.driver.view.version }} with {{ info.driver.view.transaction.install | map(attribute='name') | join(', ') }}"
"""

RETURN = r"""
driver:
  description: The driver facts. Lists are sorted, so two readings of the same state are equal.
  returned: success
  type: dict
  contains:
    host:
      description:
        - C(distribution), C(version), C(major) and C(pretty) from os-release; C(arch), C(python), C(package_manager) (apt, dnf, zypper, tdnf or null).
        - C(image_based) is the path that shows a system which is updated as a whole, null for others.
        - C(initramfs) is the tool that builds the initramfs, null where there is none.
      type: dict
    kernel:
      description:
        - The kernel that is C(running), the one that boots C(next), and those C(installed), oldest first.
        - For each installed one C(release), C(headers) (whether modules can be built for it) and C(module), which is null or the C(path), C(version),
          C(flavour) (open or proprietary) and C(signer) of the NVIDIA module that it would load.
      type: dict
    secure_boot:
      description: Whether Secure Boot is C(enabled), the C(evidence), and whether the key by which dkms signs modules is enrolled (C(dkms_key_enrolled)).
      type: dict
    pci:
      description:
        - NVIDIA's C(gpus) on PCI with C(address), C(device) and C(class), with C(passed_to) where one is bound to a driver for virtual machines such as
          vfio-pci, and C(switches) with C(address), C(device) and C(vendor).
        - For NVLink 5 the switches' management ports, InfiniBand devices of vendor 15b3, stand for them.
      type: dict
    loaded:
      description: C(version) and C(flavour) of the C(module) that is loaded, or null; whether C(nouveau) is loaded.
      type: dict
    library:
      description: C(path) and C(version) of the file behind C(libnvidia-ml.so.1) below O(driver_root), or null.
      type: dict
    nvml:
      description:
        - Driver C(version) and number of C(gpus) as NVML tells, or the C(error) with C(reason), C(cause), and C(mismatch), which is true when library and
          loaded module have different versions.
      type: dict
    packages:
      description:
        - Installed packages of the driver with C(name), C(version) (the driver's), C(full) (the package's), C(arch), C(origin) (nvidia, distribution or
          unknown) and C(source), what the package says about its maker.
      type: list
      elements: dict
    held:
      description: Installed packages of the driver that are held (dpkg) or locked (dnf versionlock, zypper), also by a lock with wildcards.
      type: list
      elements: str
    broken_packages:
      description: Packages of any kind whose installation by dpkg was interrupted.
      type: list
      elements: str
    trusted_keys:
      description: Ids of the keys that rpm trusts, eight hexadecimal digits each. Empty with apt.
      type: list
      elements: str
    stream:
      description: Enabled stream of dnf's module C(nvidia-driver), or null.
      type: str
    traces:
      description:
        - C(runfile) lists files of NVIDIA's installer and a NVML library that no package owns, C(container_driver) signs of a driver container, and
          C(repositories) other package sources that offer drivers, with C(path) and C(url).
        - C(library_package) is the package that owns the NVML library of the host, or null.
      type: dict
    services:
      description: For nvidia-persistenced, nvidia-fabricmanager and nvidia-imex whether they are C(present), C(active), C(enabled) (also units that need not
        be, as they have no [Install] section), C(masked).
      type: dict
    holders:
      description: Processes that have device files of the driver open, with C(pid), C(command) and C(files).
      type: list
      elements: dict
    files:
      description: Texts of the files that the role writes on such a host, null for those that do not exist.
      type: dict
    record:
      description: What the role wrote down about its installation, or null.
      type: dict
    reboot_hints:
      description: What the distribution says about a reboot that kernel or driver packages need.
      type: list
      elements: str
    cluster_hint:
      description: C(kubelet) tells whether a kubelet is active.
      type: dict
    view:
      description: What the package sources offer.
      returned: with O(view)
      type: dict
      contains:
        available:
          description: Versions of the branch that every package with the driver's version is offered in, newest first.
          type: list
          elements: str
        version:
          description: The version asked for, or the newest of the branch.
          type: str
        key:
          description: The signing key, ASCII-armoured. Empty without O(view.repository).
          type: str
        packages:
          description: Package versions of O(view.install), by name.
          type: dict
          sample: {nvidia-driver-cuda: 595.91.07-1}
        missing:
          description: Names in O(view.install) that no package source offers. The transaction is without them.
          type: list
          elements: str
        transaction:
          description: What a package manager would C(install), C(upgrade), C(downgrade) and C(remove); each a list of C(name) and C(full) version.
          type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.node import Node
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.survey import read_driver
from ansible_collections.gpufleet.dra.plugins.module_utils.driver_facts.view import read_view
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.addresses import credentials
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.module_edge import NVML_ARG_SPEC, failures, require_python

_REPOSITORY = {
    "kind": {"type": "str", "choices": ["apt", "dnf", "zypper"], "required": True},
    "url": {"type": "str", "required": True},
    "key_url": {"type": "str", "required": True, "no_log": False},
    "fingerprint": {"type": "str", "required": True},
    "distribution_repos": {"type": "bool", "default": True},
}
_VIEW = {
    "repository": {"type": "dict", "options": _REPOSITORY},
    "branch": {"type": "str", "required": True},
    "version": {"type": "str", "default": ""},
    "stream": {"type": "str"},
    "install": {"type": "list", "elements": "str", "required": True},
    "pins": {"type": "list", "elements": "str", "required": True},
    "remove": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Run the module."""
    spec = {**NVML_ARG_SPEC, "view": {"type": "dict", "options": _VIEW}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    repository = (module.params["view"] or {}).get("repository") or {}
    module.no_log_values.update(filter(None, (credentials(repository.get(name) or "") for name in ("url", "key_url"))))
    with failures(module):
        require_python()
        node = Node()
        driver = read_driver(node, module.params["driver_root"], module.params["pynvml_path"])
        if module.params["view"] is not None:
            driver["view"] = read_view(node, driver, module.params["view"])
    module.exit_json(changed=False, driver=driver)


if __name__ == "__main__":
    main()
