# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of a node: the plans of its GPUs, as steps, as a diff, as the result of a module, as the devices that follow."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..reasons import Finding, finding
from .catalogue import Gpu
from .gpu_plan import GpuPlan, Outcome, plan_gpu
from .layout import DISABLED, ENABLED, UNMANAGED, Layout
from .resolve import resolve, unlisted
from .steps import Step


@dataclass(frozen=True)
class Plan:
    """The plan of a node: one :class:`GpuPlan` per GPU, in the order of the facts document, and what is odd about the layout."""

    gpus: tuple[GpuPlan, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def steps(self) -> list[Step]:
        """Return all steps, GPU by GPU."""
        return [step for gpu in self.gpus for step in gpu.steps]

    @property
    def changed(self) -> bool:
        """Return whether there is anything to do."""
        return bool(self.steps)

    @property
    def device_names(self) -> list[str]:
        """Return the names of all devices that the DRA driver will publish for this node, sorted."""
        return sorted(name for gpu in self.gpus for name in gpu.device_names)

    def diff(self) -> dict[str, str]:
        """Return the plan as Ansible's diff: the layout before and after, one line per GPU mode and per instance."""
        before = "".join(f"{line}\n" for gpu in self.gpus for line in gpu.before_lines)
        after = "".join(f"{line}\n" for gpu in self.gpus for line in gpu.after_lines)
        return {"before_header": "MIG layout", "after_header": "MIG layout", "before": before, "after": after}

    def summary(self) -> dict[str, Any]:
        """Return the plain data of a result: plan (steps), kept, created and destroyed instances, device names, findings, and who blocks."""
        return {
            "plan": [step.as_dict() for step in self.steps],
            "kept": [_identity(gpu, kept.instance.profile, kept.instance.profile_id, kept.instance.start) for gpu in self.gpus for kept in gpu.kept],
            "destroyed": [_identity(gpu, item.profile, item.profile_id, item.start) for gpu in self.gpus for item in gpu.destroyed],
            "created": [_identity(gpu, p.profile.name, p.profile.id, p.start) for gpu in self.gpus for p in gpu.created],
            "device_names": self.device_names,
            "fixed_layouts": self.fixed_layouts(),
            "layout_findings": [item.as_dict() for item in self.findings],
            "blockers": [
                {"parent_uuid": gpu.gpu.uuid, "pid": process.pid, "gpu_instance_id": process.gpu_instance_id, "kind": process.kind}
                for gpu in self.gpus for process in gpu.blockers
            ],
        }

    def layout_after(self) -> list[dict[str, Any]]:
        """Return the predicted layout in the form of :func:`layout_of`; compute instances to be created have no UUID yet."""
        return [
            _gpu_row(gpu.gpu, gpu.mode_after, gpu.mode_after if gpu.changes_mode else gpu.gpu.mode_pending,
                     [_instance_row(item.profile, item.profile_id, item.start, item.size, item.content, item.uuids) for item in gpu.outcome])
            for gpu in self.gpus
        ]

    def fixed_layouts(self) -> list[dict[str, Any]]:
        """Return the outcome as a ``layouts`` option with every place fixed, for the GPUs that the layout decides about: the same again after a reboot."""
        return [
            {"match": {"uuid": gpu.gpu.uuid}, "mode": ENABLED, "instances": [_fixed(item) for item in gpu.outcome]}
            if gpu.mode_after else {"match": {"uuid": gpu.gpu.uuid}, "mode": DISABLED}
            for gpu in self.gpus if gpu.target.mode != UNMANAGED and gpu.gpu.mig_capable
        ]


def make_plan(gpus: Sequence[Gpu], layout: Layout, unlisted_policy: str) -> Plan:
    """Return the plan that makes ``gpus`` match ``layout`` with the fewest instances destroyed; ``unlisted_policy`` is ``keep`` or ``disable``.

    Touches nothing. Raises FleetError for everything that :func:`resolve` refuses, LayoutMatchesNothing and ImpossibleLayout.
    """
    layout.check_matches(gpus)
    plans = []
    for gpu in gpus:
        rule = layout.rule_for(gpu)
        plans.append(plan_gpu(gpu, unlisted(gpu, unlisted_policy) if rule is None else resolve(rule, gpu)))
    divided = [finding("DividedInstance", plan.target.where, gpu=plan.gpu.label, instances=", ".join(plan.divided))
               for plan in plans if plan.divided and plan.target.mode != UNMANAGED]
    return Plan(tuple(plans), (*layout.findings(gpus), *divided))


def present_device_names(gpus: Sequence[Gpu]) -> list[str]:
    """Return the names of all devices that the DRA driver publishes for ``gpus`` as they are, sorted."""
    return Plan(tuple(plan_gpu(gpu, unlisted(gpu, "keep")) for gpu in gpus)).device_names


def layout_of(gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """Return the layout of a node as short plain data: per GPU uuid, index, mode_current, mode_pending and instances."""
    return [
        _gpu_row(gpu, gpu.mode_current, gpu.mode_pending,
                 [_instance_row(item.profile, item.profile_id, item.start, item.size, item.content, item.uuids) for item in gpu.instances])
        for gpu in gpus
    ]


def _identity(plan: GpuPlan, profile: str, profile_id: int, start: int) -> dict[str, Any]:
    return {"parent_uuid": plan.gpu.uuid, "profile": profile, "profile_id": profile_id, "start": start,
            "device_name": plan.device_name(profile, profile_id, start)}


def _fixed(item: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"profile": item.profile, "start": item.start}
    return row if item.whole else {**row, "compute_instances": list(item.content)}


def _instance_row(profile: str, profile_id: int, start: int, size: int, content: Sequence[int], uuids: Sequence[str]) -> dict[str, Any]:
    return {"profile": profile, "profile_id": profile_id, "start": start, "size": size, "compute_slices": list(content), "uuids": list(uuids)}


def _gpu_row(gpu: Gpu, current: bool, pending: bool, instances: list[dict[str, Any]]) -> dict[str, Any]:
    return {"uuid": gpu.uuid, "index": gpu.index, "product": gpu.product, "mode_current": current, "mode_pending": pending,
            "instances": sorted(instances, key=lambda row: row["start"])}
