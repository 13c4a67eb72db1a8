#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module nvml_info: the GPUs of a node as NVML sees them."""
from __future__ import annotations

DOCUMENTATION = r"""
module: nvml_info
short_description: Read GPUs, MIG profiles and MIG instances through NVML
version_added: 0.1.0
author: gpufleet.dra contributors (@gpufleet)
description:
  - Returns the GPUs of the node with their MIG mode, the MIG profiles that the driver offers for each, the GPU and compute instances that exist, the
    processes that use them, and what NVML tells about their health.
  - A GPU that does not answer (lost, not ready, waiting for a reset) does not hide the others. It is listed apart, with a warning. The module fails only for
    what concerns the whole node, such as a driver that is not loaded.
  - Works on a bare node. The Python binding (nvidia-ml-py) is carried along from the controller, its checksum verified against its installation record.
  - Lists are sorted, so two readings of the same state are equal.
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
extends_documentation_fragment:
  - gpufleet.dra.nvml
seealso:
  - module: gpufleet.dra.mig_layout
"""

EXAMPLES = r"""
- name: Read the GPUs
  gpufleet.dra.nvml_info:
  become: true
  register: gpus

- name: Show what each GPU offers
  ansible.builtin.debug:
    msg: "{{ item.product }}: {{ item.mig.profiles | map(attribute='name') | join(', ') }}"
  loop: "{{ gpus.nvml.gpus }}"
  loop_control:
    label: "{{ item.uuid }}"

- name: See that every GPU answers and is healthy
  ansible.builtin.assert:
    that:
      - gpus.nvml.unreadable_gpus == []
      - gpus.nvml.gpus | map(attribute='health.reasons') | flatten == []

- name: Read the GPUs of a driver that runs in a container
  gpufleet.dra.nvml_info:
    driver_root: /run/nvidia/driver
  become: true
"""

RETURN = r"""
device_names:
  description: Names of the devices that the DRA driver publishes for the GPUs as they are, sorted. Those of unreadable GPUs are not among them.
  returned: success
  type: list
  elements: str
  sample: [gpu-0, gpu-1-mig-1g10gb-19-0]
nvml:
  description: The facts of the node.
  returned: success
  type: dict
  contains:
    driver_version:
      description: Version of the NVIDIA driver.
      type: str
      sample: 595.91.07
    nvml_version:
      description: Version of the NVML library.
      type: str
    cuda_driver_version:
      description: CUDA version that the driver supports, as 1000 * major + 10 * minor.
      type: int
      sample: 13020
    driver_root:
      description: The option driver_root.
      type: str
    library:
      description: The NVML library file that was loaded.
      type: str
    gpus:
      description: The GPUs, sorted by PCI bus id.
      type: list
      elements: dict
      contains:
        uuid:
          description: UUID of the GPU.
          type: str
        index:
          description: NVML index. It may change at a reboot.
          type: int
        minor:
          description: N of C(/dev/nvidiaN).
          type: int
        pci_bus_id:
          description: PCI address with a domain of eight digits.
          type: str
          sample: "00000000:41:00.0"
        pci_device_id:
          description: Device and vendor id.
          type: str
          sample: "0x233010DE"
        pci_subsystem_id:
          description: Subsystem device and vendor id.
          type: str
        product:
          description: Product name.
          type: str
          sample: NVIDIA H100 80GB HBM3
        brand:
          description: Brand as NVML numbers it.
          type: int
        architecture:
          description: Architecture as NVML numbers it.
          type: int
        architecture_name:
          description: Name of the architecture.
          type: str
          sample: Hopper
        cuda_compute_capability:
          description: CUDA compute capability.
          type: str
          sample: "9.0"
        memory_bytes:
          description: Total memory in bytes. Null for a GPU without memory of its own.
          type: int
        memory_mib:
          description: Total memory in MiB.
          type: int
        addressing_mode:
          description: Addressing mode as NVML numbers it (0 none, 1 HMM, 2 ATS). Null where the driver does not tell.
          type: int
        mig:
          description:
            - C(capable), C(current) and C(pending) mode as booleans, and C(reset_free), whether the mode changes without a GPU reset.
            - C(profiles) that the driver offers, with name, id, enum, compute and memory slices, memory in MiB, engines and placements.
            - C(instances) that exist, with GPU instance id, profile, start, size and compute instances.
          type: dict
        processes:
          description: Processes on the GPU and its instances, with pid, kind, instance ids and used memory in MiB.
          type: list
          elements: dict
        health:
          description:
            - What NVML tells about the health of the GPU. A value is null where the GPU, the driver or the user's rights do not give it; many have no answer
              while MIG instances exist.
          type: dict
          contains:
            ecc:
              description:
                - Whether ECC is C(enabled) and will be after the next reset (C(pending)).
                - Uncorrected memory errors since the driver was loaded (C(uncorrected_volatile)) and over the GPU's life (C(uncorrected_aggregate)).
                - C(sram_threshold_exceeded), whether there were more uncorrectable SRAM errors than NVIDIA allows.
              type: dict
            row_remap:
              description: Memory rows remapped after C(correctable) and C(uncorrectable) errors; whether one is C(pending) until a reset or has C(failed).
              type: dict
            recovery_action:
              description:
                - What the driver asks for to recover the GPU.
                - One of C(none), C(gpu_reset), C(node_reboot), C(drain_p2p), C(drain_and_reset), C(recover_imex_domain), C(bus_reset), C(system_reboot), or
                  C(unknown-N) for one that is newer than this collection. Null for drivers before R565.
              type: str
              sample: none
            fabric:
              description:
                - Registration at the NVLink fabric. Null for a GPU without one. It says nothing while MIG mode is on.
                - C(state) is one of C(not_supported), C(not_started), C(in_progress), C(completed); C(status) is an NVML return code.
                - C(health_mask) is NVML's bit mask; C(summary) is one of C(not_supported), C(healthy), C(unhealthy), C(limited_capacity), or null for older
                  drivers.
              type: dict
            clock_event_reasons:
              description: Why the clocks are not at their highest, such as C(gpu_idle) or C(hw_thermal_slowdown).
              type: list
              elements: str
            repair:
              description: Whether a repair of memory channels (C(channel_pending)) or of processors (C(tpc_pending)) waits for a reset.
              type: dict
            reasons:
              description:
                - Reason codes that follow, errors first. Empty for a healthy GPU.
                - "Errors, with which a GPU is not partitioned: C(GpuResetNeeded), C(NodeRebootNeeded), C(GpuRecoveryNeeded), C(RowRemapFailed),
                  C(RowRemapPending), C(SramErrorsExceeded)."
                - "Warnings: C(EccDisabled), C(RepairPending), C(ClocksHeldBack), C(FabricNotReady)."
              type: list
              elements: str
              sample: []
        nvlink_peers:
          description: UUIDs of the GPUs that this one is linked to directly by NVLink; the PCI bus id for one that does not answer or is not of this node.
          type: list
          elements: str
        nvlink_switch:
          description: Whether the GPU is linked to an NVSwitch.
          type: bool
    unreadable_gpus:
      description:
        - GPUs that do not answer, each with its NVML C(index), C(uuid) and C(pci_bus_id) (null where NVML does not tell them any more), the C(call) that failed
          and its C(error), the C(reason) code (C(GpuLost), C(GpuResetNeeded) or C(GpuUnreadable)) and the whole C(message).
      type: list
      elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.catalogue import gpus_from_facts
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import present_device_names
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.inventory import survey
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.module_edge import NVML_ARG_SPEC, failures, require_python
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.session import NvmlSession


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=NVML_ARG_SPEC, supports_check_mode=True)
    with failures(module):
        require_python()
        with NvmlSession(module.params["driver_root"], module.params["pynvml_path"]) as session:
            facts = survey(session)
    for gpu in facts["unreadable_gpus"]:
        module.warn(gpu["message"])
    module.exit_json(changed=False, nvml=facts, device_names=present_device_names(gpus_from_facts(facts)))


if __name__ == "__main__":
    main()
