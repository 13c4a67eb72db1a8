#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module mig_layout: static MIG layouts with the fewest instances destroyed."""
from __future__ import annotations

DOCUMENTATION = r"""
module: mig_layout
short_description: Give GPUs a static MIG layout, destroying as little as possible
version_added: 0.1.0
author: gpufleet.dra contributors (@gpufleet)
description:
  - Makes the MIG mode and the GPU instances of each GPU of the node match a layout.
  - Everything is read from the GPU, resolved and solved before anything is touched. An unknown profile, an impossible layout or an instance in use fails with
    the GPUs unchanged.
  - Instances that are already right keep their UUID and their processes. Of all placements that fulfil the layout, one that destroys the fewest instances is
    taken, and every instance is created at an explicit placement.
  - Each GPU instance gets one compute instance of full size, which is what NVIDIA's DRA driver publishes, unless the layout divides it.
  - A GPU that has all that is left as it is, without any changing NVML call.
  - A journal is on disk before and after every act. What an interrupted run left is finished by the next one (RV(resumed)).
  - A GPU on which something fails is put back as it was, as long as no new instance stands on it (RV(rolled_back)). The message says how each GPU was left.
  - The device nodes C(/dev/nvidia-caps/nvidia-capN) of all instances are there afterwards and are right, as NVIDIA's tools would have made them, and those of
    instances that are gone are removed. One that cannot be made is a warning.
  - Fails when neither O(layouts) nor O(mig_parted_config) is given and O(unlisted) is V(keep), for then there would be nothing to make.
options:
  layouts:
    description:
      - Rules for the GPUs of the node. For each GPU the first rule that matches counts.
      - Names of profiles and intents are resolved for each GPU against what its driver offers, so one list serves GPUs of different models.
    type: list
    elements: dict
    default: []
    suboptions:
      match:
        description:
          - Which GPUs are meant. V(all), which passes over GPUs without MIG, or a mapping with one or more of C(uuid), C(pci_bus_id), C(index) (as NVML
            counts), C(minor) (N of C(/dev/nvidiaN)), C(product) (a glob, any case) and C(pci_device_id) (such as V(0x233010DE), optionally with
            C(:0x) and the subsystem id). Each is a value or a list; all keys must fit.
        type: raw
        required: true
      mode:
        description:
          - V(enabled) and V(disabled) set the MIG mode. V(unmanaged) leaves the GPU as it is.
        type: str
        choices: [enabled, disabled, unmanaged]
        default: enabled
      instances:
        description:
          - Required when the mode is V(enabled). A mapping of profile to count, where V({}) means MIG mode without instances.
          - An intent. V(balanced) is 3g + 2g + 2 x 1g, or 2g + 2 x 1g on GPUs with four compute slices. V(whole) is one instance of the whole GPU.
            V(all-1g) and V(all-<profile>) are as many of one profile as fit.
          - A list of profiles, or of mappings of C(profile) with C(count) or with C(start), the memory slot where the instance must begin, and with
            C(compute_instances), the compute slices of each compute instance in it.
          - A profile is named as the driver names it (V(3g.40gb), V(1g.10gb+me)), or shorter by its slices (V(3g), V(1g+me)). V(1c.3g.40gb) names a
            compute instance, which shares a GPU instance with others of its kind.
        type: raw
  mig_parted_config:
    description:
      - A configuration of nvidia-mig-parted (C(version) v1), as a path on the controller or as a mapping. It means here what it means there.
      - Profiles with a smaller compute instance (V(1c.3g.40gb)) are made, with a warning, for NVIDIA's DRA driver does not start with them.
      - Not together with O(layouts).
    type: raw
  mig_parted_selected:
    description:
      - Name of the configuration below C(mig-configs). Needed when there are several.
    type: str
  mig_parted_source:
    description:
      - Name of the configuration in messages. The action plugin sets it to the path in O(mig_parted_config), so leave it out.
    type: str
    default: mig_parted_config
  unlisted:
    description:
      - What becomes of GPUs that no rule matches. V(keep) leaves them as they are, V(disable) turns their MIG mode off.
    type: str
    choices: [keep, disable]
    default: keep
  allow_reset:
    description:
      - Whether a GPU may be reset (C(nvidia-smi -r)) when its MIG mode needs that to change, as on Ampere. Otherwise the module fails with
        RV(reset_required) after setting the pending mode, and finishes when it is run after the reset or a reboot.
    type: bool
    default: false
  on_busy:
    description:
      - What to do when a process uses an instance that has to go, or another run changes this node. V(fail) at once, or V(wait) for O(timeout) seconds.
    type: str
    choices: [fail, wait]
    default: fail
  timeout:
    description:
      - How long a run waits in all with O(on_busy=wait), in seconds.
    type: int
    default: 300
  phase_timeout:
    description:
      - How long each phase may take for each GPU, in seconds, without the waits of O(timeout). The phases are read, destroy, mode, reset, create and rollback.
      - When a call into the driver hangs, the module fails with what was in progress instead of hanging with it.
    type: int
    default: 120
  ignore_health:
    description:
      - Whether a GPU is partitioned for the first time although it reports a fault, such as a failed row remapping or a recovery action that the driver asks
        for. Most of this cannot be asked any more once there are instances.
    type: bool
    default: false
  state_dir:
    description:
      - Folder on the node for the lock file that keeps two runs apart, and for the journal.
    type: path
    default: /var/lib/gpufleet
attributes:
  check_mode:
    support: full
    description: Reads the GPUs and returns the plan; changes nothing. What the change would fail on or wait for is a warning.
  diff_mode:
    support: full
    description: Shows one line per GPU mode and per instance, before and after.
  idempotent:
    support: full
    description: A second run makes no changing NVML call.
extends_documentation_fragment:
  - gpufleet.dra.nvml
notes:
  - Changing MIG needs root, so use C(become).
  - NVIDIA's DRA plugin must be restarted after a change. The role P(gpufleet.dra.mig#role) does it in the right order.
seealso:
  - module: gpufleet.dra.nvml_info
"""

EXAMPLES = r"""
- name: Seven small instances on every H100, a mix on the first GPU
  gpufleet.dra.mig_layout:
    layouts:
      - match: {index: 0}
        instances: {3g.40gb: 1, 1g.10gb: 4}
      - match: {product: "*H100*"}
        instances: all-1g
  become: true

- name: The same intent for a mixed fleet, GPUs without MIG left out
  gpufleet.dra.mig_layout:
    layouts:
      - match: all
        instances: balanced
  become: true

- name: Fixed places
  gpufleet.dra.mig_layout:
    layouts:
      - match: {uuid: GPU-5d1f2a44-8c3e-5b0f-9a77-0d7a1c6e2b90}
        instances:
          - {profile: 3g.40gb, start: 4}
          - {profile: 1g.10gb, count: 4}
  become: true

- name: A file of nvidia-mig-parted as people have it
  gpufleet.dra.mig_layout:
    mig_parted_config: files/mig-parted.yaml
    mig_parted_selected: all-balanced
    unlisted: disable
  become: true

- name: MIG off everywhere, waiting up to ten minutes for processes to end
  gpufleet.dra.mig_layout:
    layouts:
      - match: all
        mode: disabled
    allow_reset: true
    on_busy: wait
    timeout: 600
  become: true
"""

RETURN = r"""
plan:
  description: The steps from the layout before to the one that is wanted, in order.
  returned: success
  type: list
  elements: dict
  sample:
    - {action: create_gpu_instance, parent_uuid: GPU-5d1f2a44, profile: 3g.40gb, profile_id: 9, start: 4, size: 4,
       text: "create GPU instance 3g.40gb at start 4 on GPU 0 (NVIDIA H100 80GB HBM3, GPU-5d1f2a44)"}
executed:
  description: What was done, in order, also when a later step failed; what was taken back again begins with C(undo). Empty in check mode.
  returned: always, when the GPUs could be read
  type: list
  elements: str
  sample: ["destroy GPU instance 3g.40gb at start 4 on GPU 0 (NVIDIA H100 80GB HBM3, GPU-5d1f2a44)"]
rolled_back:
  description: The GPUs that were put back as they were after a step on them had failed.
  returned: always, when the GPUs could be read
  type: list
  elements: str
  sample: ["GPU 0 (NVIDIA H100 80GB HBM3, GPU-5d1f2a44)"]
resumed:
  description:
    - What an earlier run left unfinished, by its journal. V(null) when it came to its end.
    - This run went on from what the GPUs really hold.
  returned: always, when the GPUs could be read
  type: dict
  contains:
    started:
      description: When that run began, in UTC.
      type: str
      sample: "2026-09-01T06:12:44Z"
    status:
      description: V(running) for a run that was interrupted, V(failed) for one that failed and left something half done.
      type: str
    done:
      description: The steps that it had done.
      type: list
      elements: str
    doing:
      description: The steps that it had begun, or that waited for a reset.
      type: list
      elements: str
journal:
  description: The journal's file on the node. It is written by the first run that changes something.
  returned: always, when the GPUs could be read
  type: str
  sample: /var/lib/gpufleet/mig-journal.json
device_nodes:
  description: Device nodes that were made (or made anew) and removed, and a sentence for each that could not be. In check mode those that would be made.
  returned: success
  type: dict
  sample: {made: [/dev/nvidia-caps/nvidia-cap66], removed: [], problems: []}
fixed_layouts:
  description: The outcome as O(layouts) with every GPU by its UUID and every place fixed, which makes the same again after a reboot.
  returned: success
  type: list
  elements: dict
  sample:
    - {match: {uuid: GPU-5d1f2a44-8c3e-5b0f-9a77-0d7a1c6e2b90}, mode: enabled, instances: [{profile: 3g.40gb, start: 4}]}
layout_findings:
  description: What is odd about the layout, such as an entry that decides nothing. Each is a warning, too.
  returned: success
  type: list
  elements: dict
kept:
  description: Instances that stay, each with parent_uuid, profile, profile_id, start and device_name.
  returned: success
  type: list
  elements: dict
created:
  description: Instances that come, in the same form.
  returned: success
  type: list
  elements: dict
destroyed:
  description: Instances that go, in the same form.
  returned: success
  type: list
  elements: dict
blockers:
  description: Processes that use what has to go, with parent_uuid, gpu_instance_id, pid and kind. In check mode they do not fail the module.
  returned: success
  type: list
  elements: dict
device_names:
  description:
    - The devices that NVIDIA's DRA driver publishes for all GPUs of the node with this layout.
    - After a failure, with the layout as it was left; V(null) when the GPUs could not be read any more.
  returned: always, when the GPUs could be read
  type: list
  elements: str
  sample: [gpu-0-mig-1g10gb-19-0, gpu-0-mig-3g40gb-9-4, gpu-1]
before:
  description: The layout before, per GPU with uuid, index, product, mode_current, mode_pending and instances.
  returned: success
  type: list
  elements: dict
after:
  description: The layout afterwards, in the same form. In check mode, as it would be. V(null) when the GPUs could not be read any more.
  returned: always, when the GPUs could be read
  type: list
  elements: dict
reset_required:
  description: Whether a GPU reset (or a reboot) is needed before a pending MIG mode takes effect.
  returned: always
  type: bool
reboot_required:
  description: Whether only a reboot makes a pending MIG mode take effect.
  returned: always
  type: bool
nvml:
  description: The facts read last, as RV(gpufleet.dra.nvml_info#module:nvml). V(null) when the GPUs could not be read any more.
  returned: always, when the GPUs could be read
  type: dict
"""

from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.dra.plugins.module_utils.converge.deadline import end_process_soon
from ansible_collections.gpufleet.dra.plugins.module_utils.converge.run import STATE_DIR, Policy, apply_layout, look
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.parted import layout_from_options
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.module_edge import NVML_ARG_SPEC, failures, give_warnings, require_python
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.reset import reset_gpus, reset_limit_s
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.session import NvmlSession
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding

ARG_SPEC: dict[str, dict[str, Any]] = {
    **NVML_ARG_SPEC,
    "layouts": {
        "type": "list", "elements": "dict", "default": [],
        "options": {
            "match": {"type": "raw", "required": True},
            "mode": {"type": "str", "choices": ["enabled", "disabled", "unmanaged"], "default": "enabled"},
            "instances": {"type": "raw"},
        },
    },
    "mig_parted_config": {"type": "raw"},
    "mig_parted_selected": {"type": "str"},
    "mig_parted_source": {"type": "str", "default": "mig_parted_config"},
    "unlisted": {"type": "str", "choices": ["keep", "disable"], "default": "keep"},
    "allow_reset": {"type": "bool", "default": False},
    "on_busy": {"type": "str", "choices": ["fail", "wait"], "default": "fail"},
    "timeout": {"type": "int", "default": 300},
    "phase_timeout": {"type": "int", "default": 120},
    "ignore_health": {"type": "bool", "default": False},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def policy_of(module: AnsibleModule) -> Policy:
    """Return the options as the engine's policy. Raises FleetError InvalidLayout."""
    params = module.params
    if params["phase_timeout"] < 1:
        raise FleetError(finding("InvalidLayout", "phase_timeout", problem=f"it is {params['phase_timeout']}", allowed="Give 1 second or more"))
    reset = partial(reset_gpus, driver_root=params["driver_root"], run=module.run_command, timeout_s=reset_limit_s(params["phase_timeout"]))
    return Policy(
        unlisted=params["unlisted"],
        wait_s=params["timeout"] if params["on_busy"] == "wait" else 0,
        reset=reset if params["allow_reset"] else None,
        phase_timeout_s=params["phase_timeout"],
        state_dir=params["state_dir"],
        ignore_health=params["ignore_health"],
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARG_SPEC, supports_check_mode=True)
    result: dict[str, Any] = {"changed": False, "reset_required": False, "reboot_required": False}
    with failures(module, result):
        require_python()
        layout = layout_from_options(module.params)
        policy = policy_of(module)
        try:
            with NvmlSession(module.params["driver_root"], module.params["pynvml_path"]) as session:
                if module.check_mode:
                    result.update(look(session, layout, policy))
                else:
                    apply_layout(session, layout, policy, result)
        except FleetError as error:
            if error.finding.code == "PhaseTimeout":
                end_process_soon()
            raise
    give_warnings(module, result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
