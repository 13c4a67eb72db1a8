# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From what is and what is wanted to an ordered plan; the plan is also the diff, the list of device names and the reason why it must wait."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..dra.rules import gpu_device_name, is_skipped, mig_device_name
from ..reasons import FleetError, finding
from .catalogue import Gpu, Instance, Process
from .layout import DISABLED, ENABLED, UNMANAGED, Layout
from .resolve import Target, describe_offer, resolve, unlisted
from .solver import Placed, Present, conflict, solve
from .steps import CREATE_COMPUTE_INSTANCE, CREATE_GPU_INSTANCE, DESTROY_COMPUTE_INSTANCE, DESTROY_GPU_INSTANCE, SET_MODE, Step


@dataclass(frozen=True)
class GpuPlan:
    """What happens to one GPU. ``kept`` instances stay untouched but for those also in ``refilled``, whose compute instances are made again."""

    gpu: Gpu
    target: Target
    kept: tuple[Instance, ...]
    refilled: tuple[Instance, ...]
    destroyed: tuple[Instance, ...]
    created: tuple[Placed, ...]
    mode_after: bool
    changes_mode: bool

    @property
    def steps(self) -> list[Step]:
        """Return the steps in order: what goes, the mode, what comes. One instance after the other, so that a failure leaves at most one half done."""
        gpu = self.gpu
        steps = []
        for item in self.refilled + self.destroyed:
            for compute_id, slices in zip(item.compute_instance_ids, item.compute_slices):
                steps.append(replace(self._step(DESTROY_COMPUTE_INSTANCE, item), compute_slices=slices, compute_instance_id=compute_id))
            if item in self.destroyed:
                steps.append(self._step(DESTROY_GPU_INSTANCE, item))
        if self.changes_mode:
            steps.append(Step(SET_MODE, gpu.uuid, gpu.label, enable=self.mode_after))
        steps += [self._step(CREATE_COMPUTE_INSTANCE, item) for item in self.refilled]
        for placed in self.created:
            profile = placed.profile
            for action in (CREATE_GPU_INSTANCE, CREATE_COMPUTE_INSTANCE):
                steps.append(Step(action, gpu.uuid, gpu.label, profile.name, profile.id, placed.start, profile.size, profile.compute_slices))
        return steps

    def _step(self, action: str, item: Instance) -> Step:
        profile = self.gpu.profile_by_id(item.profile_id)
        return Step(action, self.gpu.uuid, self.gpu.label, item.profile, item.profile_id, item.start, item.size,
                    None if profile is None else profile.compute_slices, item.gpu_instance_id)

    @property
    def blockers(self) -> list[Process]:
        """Return the processes that this plan would hurt: on instances that go, or anywhere on a GPU whose mode changes or that is first partitioned."""
        first_instance = bool(self.created) and not self.gpu.instances
        if self.changes_mode:
            return list(self.gpu.processes)
        going = {item.gpu_instance_id for item in self.destroyed + self.refilled}
        return [p for p in self.gpu.processes if p.gpu_instance_id in going or (first_instance and p.gpu_instance_id is None)]

    @property
    def device_names(self) -> list[str]:
        """Return the devices that the DRA driver publishes for this GPU afterwards: whole GPU instances, or the GPU itself while MIG mode is off."""
        gpu = self.gpu
        if is_skipped(gpu.product):
            return []
        if not self.mode_after:
            return [gpu_device_name(gpu.minor)]
        whole = [item for item in self.kept if item in self.refilled or is_whole(gpu, item)]
        names = [mig_device_name(gpu.minor, _dra_name(gpu, item.profile_id, item.profile), item.profile_id, item.start) for item in whole]
        names += [mig_device_name(gpu.minor, placed.profile.dra_name, placed.profile.id, placed.start) for placed in self.created]
        return sorted(names)

    @property
    def before_lines(self) -> list[str]:
        """Return the GPU as it is, one line for the mode and one per instance. Each line names the GPU, so a diff needs no context."""
        return [self._mode_line(self.gpu.mode_current, self.gpu.mode_pending)] + [self._line(item) for item in self.gpu.instances]

    @property
    def after_lines(self) -> list[str]:
        """Return the GPU as it will be. New instances have no UUID yet."""
        pending = self.mode_after if self.changes_mode else self.gpu.mode_pending
        rows = [(item.start, self._line(item, item in self.refilled)) for item in self.kept]
        rows += [(p.start, f"{self._prefix}: {p.profile.name} at start {p.start} (profile id {p.profile.id}) new") for p in self.created]
        return [self._mode_line(self.mode_after, pending)] + [line for _start, line in sorted(rows)]

    @property
    def _prefix(self) -> str:
        return f"{self.gpu.uuid} {self.gpu.product}"

    def _mode_line(self, current: bool, pending: bool) -> str:
        if not self.gpu.mig_capable:
            return f"{self._prefix}: no MIG"
        note = "" if current == pending else f" (pending: {_on_off(pending)})"
        return f"{self._prefix}: MIG mode {_on_off(current)}{note}"

    def _line(self, item: Instance, refilled: bool = False) -> str:
        if refilled:
            content = "compute instance new"
        elif is_whole(self.gpu, item):
            content = " ".join(item.uuids)
        else:
            content = f"compute instances {' '.join(f'{slices}c' for slices in item.compute_slices) or 'none'}"
        return f"{self._prefix}: {item.profile} at start {item.start} (profile id {item.profile_id}) {content}".rstrip()


@dataclass(frozen=True)
class Plan:
    """The plan of a node: one :class:`GpuPlan` per GPU, in the order of the facts document."""

    gpus: tuple[GpuPlan, ...]

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
        """Return the plain data of a result: plan (steps), kept, created and destroyed instances, device names, and who blocks."""
        return {
            "plan": [step.as_dict() for step in self.steps],
            "kept": [_identity(gpu.gpu, item.profile, item.profile_id, item.start) for gpu in self.gpus for item in gpu.kept],
            "destroyed": [_identity(gpu.gpu, item.profile, item.profile_id, item.start) for gpu in self.gpus for item in gpu.destroyed],
            "created": [_identity(gpu.gpu, p.profile.name, p.profile.id, p.start) for gpu in self.gpus for p in gpu.created],
            "device_names": self.device_names,
            "blockers": [
                {"parent_uuid": gpu.gpu.uuid, "pid": process.pid, "gpu_instance_id": process.gpu_instance_id, "kind": process.kind}
                for gpu in self.gpus for process in gpu.blockers
            ],
        }

    def layout_after(self) -> list[dict[str, Any]]:
        """Return the predicted layout in the form of :func:`layout_of`; instances to be created have an empty ``uuids``."""
        rows = []
        for gpu in self.gpus:
            instances = [_instance_row(item.profile, item.profile_id, item.start, item.size, () if item in gpu.refilled else item.uuids)
                         for item in gpu.kept]
            instances += [_instance_row(p.profile.name, p.profile.id, p.start, p.profile.size, ()) for p in gpu.created]
            rows.append(_gpu_row(gpu.gpu, gpu.mode_after, gpu.mode_after if gpu.changes_mode else gpu.gpu.mode_pending, instances))
        return rows


def make_plan(gpus: Sequence[Gpu], layout: Layout, unlisted_policy: str) -> Plan:
    """Return the plan that makes ``gpus`` match ``layout`` with the fewest instances destroyed; ``unlisted_policy`` is ``keep`` or ``disable``.

    Touches nothing. Raises FleetError for everything that :func:`resolve` refuses, LayoutMatchesNothing and ImpossibleLayout.
    """
    layout.check_matches(gpus)
    plans = []
    for gpu in gpus:
        rule = layout.rule_for(gpu)
        plans.append(plan_gpu(gpu, unlisted(gpu, unlisted_policy) if rule is None else resolve(rule, gpu)))
    return Plan(tuple(plans))


def present_device_names(gpus: Sequence[Gpu]) -> list[str]:
    """Return the names of all devices that the DRA driver publishes for ``gpus`` as they are, sorted."""
    return Plan(tuple(plan_gpu(gpu, unlisted(gpu, "keep")) for gpu in gpus)).device_names


def plan_gpu(gpu: Gpu, target: Target) -> GpuPlan:
    """Return the plan of one GPU. Raises FleetError ImpossibleLayout."""
    if target.mode == UNMANAGED or not gpu.mig_capable:
        return GpuPlan(gpu, target, gpu.instances, (), (), (), gpu.mode_current, False)
    settled = gpu.mode_current == gpu.mode_pending == (target.mode == ENABLED)
    if target.mode == DISABLED:
        return GpuPlan(gpu, target, (), (), gpu.instances, (), False, not settled)
    present = [_present(gpu, item) for item in gpu.instances]
    solution = solve(target.wanted, present, gpu.slots)
    if solution is None:
        names = [item.profile.name for item in target.wanted]
        wanted = ", ".join(f"{name} x{names.count(name)}" for name in dict.fromkeys(names))
        why = conflict(target.wanted, gpu.slots) or "the placements that the driver offers cannot hold them side by side"
        raise FleetError(finding("ImpossibleLayout", target.where, {"gpu": gpu.uuid}, wanted=wanted, gpu=gpu.label, why=why, offered=describe_offer(gpu)))
    survivors = [placed.kept for placed in solution if placed.kept is not None]
    kept = tuple(gpu.instances[number] for number in survivors)
    return GpuPlan(
        gpu, target, kept,
        refilled=tuple(item for item in kept if not is_whole(gpu, item)),
        destroyed=tuple(item for number, item in enumerate(gpu.instances) if number not in survivors),
        created=tuple(placed for placed in solution if placed.kept is None),
        mode_after=True, changes_mode=not settled,
    )


def is_whole(gpu: Gpu, item: Instance) -> bool:
    """Return whether the GPU instance holds exactly one compute instance, of full size: what the DRA driver publishes."""
    profile = gpu.profile_by_id(item.profile_id)
    return profile is not None and item.compute_slices == (profile.compute_slices,)


def layout_of(gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """Return the layout of a node as short plain data: per GPU uuid, index, mode_current, mode_pending and instances."""
    return [
        _gpu_row(gpu, gpu.mode_current, gpu.mode_pending,
                 [_instance_row(item.profile, item.profile_id, item.start, item.size, item.uuids) for item in gpu.instances])
        for gpu in gpus
    ]


def _present(gpu: Gpu, item: Instance) -> Present:
    busy = any(process.gpu_instance_id == item.gpu_instance_id for process in gpu.processes)
    return Present(item.profile_id, item.start, item.size, intact=not item.compute_slices or is_whole(gpu, item), busy=busy)


def _dra_name(gpu: Gpu, profile_id: int, fallback: str) -> str:
    profile = gpu.profile_by_id(profile_id)
    return fallback if profile is None else profile.dra_name


def _on_off(enabled: bool) -> str:
    return "enabled" if enabled else "disabled"


def _identity(gpu: Gpu, profile: str, profile_id: int, start: int) -> dict[str, Any]:
    device = mig_device_name(gpu.minor, _dra_name(gpu, profile_id, profile), profile_id, start)
    return {"parent_uuid": gpu.uuid, "profile": profile, "profile_id": profile_id, "start": start, "device_name": device}


def _instance_row(profile: str, profile_id: int, start: int, size: int, uuids: Sequence[str]) -> dict[str, Any]:
    return {"profile": profile, "profile_id": profile_id, "start": start, "size": size, "uuids": list(uuids)}


def _gpu_row(gpu: Gpu, current: bool, pending: bool, instances: list[dict[str, Any]]) -> dict[str, Any]:
    return {"uuid": gpu.uuid, "index": gpu.index, "product": gpu.product, "mode_current": current, "mode_pending": pending,
            "instances": sorted(instances, key=lambda row: row["start"])}
