# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From what is and what is wanted to an ordered plan; the plan is also the diff, the list of device names and the reason why it must wait."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from ..dra.rules import gpu_device_name, is_skipped, mig_device_name
from ..reasons import Finding, FleetError, finding
from .catalogue import Compute, Gpu, Instance, Process
from .compute import Place, Refit
from .layout import DISABLED, ENABLED, UNMANAGED, Layout
from .resolve import Target, describe_offer, resolve, unlisted
from .solver import Placed, Present, conflict, slots_of, solve
from .steps import CREATE_COMPUTE_INSTANCE, CREATE_GPU_INSTANCE, DESTROY_COMPUTE_INSTANCE, DESTROY_GPU_INSTANCE, SET_MODE, Step


@dataclass(frozen=True)
class Kept:
    """A GPU instance that stays. ``gone`` and ``new`` say what changes in it: the compute instances destroyed, and the places of those created."""

    instance: Instance
    gone: tuple[Compute, ...] = ()
    new: tuple[Place, ...] = ()

    @property
    def remaining(self) -> tuple[Compute, ...]:
        """Return the compute instances that nothing happens to."""
        return tuple(item for item in self.instance.computes if item not in self.gone)

    @property
    def content(self) -> tuple[int, ...]:
        """Return the slices of its compute instances afterwards, largest first."""
        return tuple(sorted([item.slices for item in self.remaining] + [slices for slices, _start in self.new], reverse=True))


@dataclass(frozen=True)
class GpuPlan:
    """What happens to one GPU."""

    gpu: Gpu
    target: Target
    kept: tuple[Kept, ...]
    destroyed: tuple[Instance, ...]
    created: tuple[Placed, ...]
    mode_after: bool
    changes_mode: bool

    @property
    def steps(self) -> list[Step]:
        """Return the steps in order: what goes, the mode, what comes. One instance after the other, so that a failure leaves at most one half done."""
        gpu = self.gpu
        steps = []
        for kept in self.kept:
            steps += [self._destroy_compute(kept.instance, item) for item in kept.gone]
        for instance in self.destroyed:
            steps += [self._destroy_compute(instance, item) for item in instance.computes]
            steps.append(self._step(DESTROY_GPU_INSTANCE, instance))
        if self.changes_mode:
            steps.append(Step(SET_MODE, gpu.uuid, gpu.label, enable=self.mode_after))
        for kept in self.kept:
            steps += [replace(self._step(CREATE_COMPUTE_INSTANCE, kept.instance), compute_slices=slices, compute_start=start) for slices, start in kept.new]
        for placed in self.created:
            profile = placed.profile
            create = Step(CREATE_GPU_INSTANCE, gpu.uuid, gpu.label, profile.name, profile.id, placed.start, profile.size)
            steps.append(create)
            steps += [replace(create, action=CREATE_COMPUTE_INSTANCE, compute_slices=slices, compute_start=start) for slices, start in placed.refit.new]
        return steps

    def _step(self, action: str, item: Instance) -> Step:
        return Step(action, self.gpu.uuid, self.gpu.label, item.profile, item.profile_id, item.start, item.size, gpu_instance_id=item.gpu_instance_id)

    def _destroy_compute(self, instance: Instance, item: Compute) -> Step:
        step = self._step(DESTROY_COMPUTE_INSTANCE, instance)
        return replace(step, compute_slices=item.slices, compute_start=item.start, compute_instance_id=item.id)

    @property
    def blockers(self) -> list[Process]:
        """Return the processes that this plan would hurt: on instances that go, or anywhere on a GPU whose mode changes or that is first partitioned."""
        if self.changes_mode:
            return list(self.gpu.processes)
        first_instance = bool(self.created) and not self.gpu.instances
        return [p for p in self.gpu.processes if self._loses(p) or (first_instance and p.gpu_instance_id is None)]

    def _loses(self, process: Process) -> bool:
        if any(uses(process, instance) for instance in self.destroyed):
            return True
        return any(uses(process, kept.instance, item) for kept in self.kept for item in kept.gone)

    @property
    def going(self) -> list[str]:
        """Return the instances that go, for messages."""
        names = [f"{item.profile} at start {item.start}" for item in self.destroyed]
        return names + [f"compute instance {item.id} of {kept.instance.profile} at start {kept.instance.start}" for kept in self.kept for item in kept.gone]

    @property
    def divided(self) -> list[str]:
        """Return the instances, such as ``3g.40gb at start 4 with 2c and 1c``, whose compute instances will be smaller than themselves."""
        rows = [(kept.instance.profile, kept.instance.start, kept.content, is_whole(self.gpu, kept.instance.profile_id, kept.content)) for kept in self.kept]
        rows += [(p.profile.name, p.start, _sizes(p.refit.new), is_whole(self.gpu, p.profile.id, _sizes(p.refit.new))) for p in self.created]
        return [f"{name} at start {start} with {' and '.join(f'{size}c' for size in content)}" for name, start, content, whole in rows if content and not whole]

    @property
    def device_names(self) -> list[str]:
        """Return the devices that the DRA driver publishes for this GPU afterwards: whole GPU instances, or the GPU itself while MIG mode is off."""
        gpu = self.gpu
        if is_skipped(gpu.product):
            return []
        if not self.mode_after:
            return [gpu_device_name(gpu.minor)]
        whole = [kept.instance for kept in self.kept if is_whole(gpu, kept.instance.profile_id, kept.content)]
        names = [mig_device_name(gpu.minor, _dra_name(gpu, item.profile_id, item.profile), item.profile_id, item.start) for item in whole]
        names += [mig_device_name(gpu.minor, placed.profile.dra_name, placed.profile.id, placed.start)
                  for placed in self.created if is_whole(gpu, placed.profile.id, _sizes(placed.refit.new))]
        return sorted(names)

    @property
    def before_lines(self) -> list[str]:
        """Return the GPU as it is, one line for the mode and one per instance. Each line names the GPU, so a diff needs no context."""
        return [self._mode_line(self.gpu.mode_current, self.gpu.mode_pending)] + [self._line(Kept(item)) for item in self.gpu.instances]

    @property
    def after_lines(self) -> list[str]:
        """Return the GPU as it will be. New instances have no UUID yet."""
        pending = self.mode_after if self.changes_mode else self.gpu.mode_pending
        rows = [(kept.instance.start, self._line(kept)) for kept in self.kept]
        rows += [(p.start, f"{self._prefix}: {p.profile.name} at start {p.start} (profile id {p.profile.id}) new{_division(p)}") for p in self.created]
        return [self._mode_line(self.mode_after, pending)] + [line for _start, line in sorted(rows)]

    @property
    def _prefix(self) -> str:
        return f"{self.gpu.uuid} {self.gpu.product}"

    def _mode_line(self, current: bool, pending: bool) -> str:
        if not self.gpu.mig_capable:
            return f"{self._prefix}: no MIG"
        note = "" if current == pending else f" (pending: {_on_off(pending)})"
        return f"{self._prefix}: MIG mode {_on_off(current)}{note}"

    def _line(self, kept: Kept) -> str:
        item = kept.instance
        parts = [f"{f'{one.slices}c ' if not is_whole(self.gpu, item.profile_id, kept.content) else ''}{one.uuid or 'without UUID'}" for one in kept.remaining]
        parts += ["compute instance new" if is_whole(self.gpu, item.profile_id, kept.content) else f"{slices}c new" for slices, _start in kept.new]
        return f"{self._prefix}: {item.profile} at start {item.start} (profile id {item.profile_id}) {', '.join(parts) or 'no compute instance'}"


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
            "kept": [_identity(gpu.gpu, item.profile, item.profile_id, item.start) for gpu in self.gpus for item in (kept.instance for kept in gpu.kept)],
            "destroyed": [_identity(gpu.gpu, item.profile, item.profile_id, item.start) for gpu in self.gpus for item in gpu.destroyed],
            "created": [_identity(gpu.gpu, p.profile.name, p.profile.id, p.start) for gpu in self.gpus for p in gpu.created],
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
        rows = []
        for gpu in self.gpus:
            instances = [_instance_row(kept.instance.profile, kept.instance.profile_id, kept.instance.start, kept.instance.size, kept.content,
                                       [item.uuid for item in kept.remaining if item.uuid]) for kept in gpu.kept]
            instances += [_instance_row(p.profile.name, p.profile.id, p.start, p.profile.size, _sizes(p.refit.new), ()) for p in gpu.created]
            rows.append(_gpu_row(gpu.gpu, gpu.mode_after, gpu.mode_after if gpu.changes_mode else gpu.gpu.mode_pending, instances))
        return rows

    def fixed_layouts(self) -> list[dict[str, Any]]:
        """Return the outcome as a ``layouts`` option with every place fixed, for the GPUs that the layout decides about: the same again after a reboot."""
        rules: list[dict[str, Any]] = []
        for gpu in self.gpus:
            if gpu.target.mode == UNMANAGED or not gpu.gpu.mig_capable:
                continue
            match = {"uuid": gpu.gpu.uuid}
            if not gpu.mode_after:
                rules.append({"match": match, "mode": DISABLED})
                continue
            instances = [_fixed(gpu.gpu, kept.instance.profile, kept.instance.profile_id, kept.instance.start, kept.content) for kept in gpu.kept]
            instances += [_fixed(gpu.gpu, p.profile.name, p.profile.id, p.start, _sizes(p.refit.new)) for p in gpu.created]
            rules.append({"match": match, "mode": ENABLED, "instances": sorted(instances, key=lambda item: item["start"])})
        return rules


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


def plan_gpu(gpu: Gpu, target: Target) -> GpuPlan:
    """Return the plan of one GPU. Raises FleetError ImpossibleLayout."""
    if target.mode == UNMANAGED or not gpu.mig_capable:
        return GpuPlan(gpu, target, tuple(Kept(item) for item in gpu.instances), (), (), gpu.mode_current, False)
    settled = gpu.mode_current == gpu.mode_pending == (target.mode == ENABLED)
    if target.mode == DISABLED:
        return GpuPlan(gpu, target, (), gpu.instances, (), False, not settled)
    solution = solve(target.wanted, [_present(gpu, item) for item in gpu.instances], gpu.profiles)
    if solution is None:
        names = [item.profile.name for item in target.wanted]
        wanted = ", ".join(f"{name} x{names.count(name)}" for name in dict.fromkeys(names))
        why = conflict(target.wanted, slots_of(gpu.profiles)) or "the placements that the driver offers cannot hold them side by side"
        raise FleetError(finding("ImpossibleLayout", target.where, {"gpu": gpu.uuid}, wanted=wanted, gpu=gpu.label, why=why, offered=describe_offer(gpu)))
    survivors = {placed.kept: placed.refit for placed in solution if placed.kept is not None}
    return GpuPlan(
        gpu, target,
        kept=tuple(_kept(gpu.instances[number], change) for number, change in survivors.items()),
        destroyed=tuple(item for number, item in enumerate(gpu.instances) if number not in survivors),
        created=tuple(placed for placed in solution if placed.kept is None),
        mode_after=True, changes_mode=not settled,
    )


def _kept(instance: Instance, change: Refit) -> Kept:
    return Kept(instance, tuple(instance.computes[number] for number in change.gone), change.new)


def is_whole(gpu: Gpu, profile_id: int, content: Sequence[int]) -> bool:
    """Return whether a GPU instance with compute instances of ``content`` slices holds exactly one, of full size: what the DRA driver publishes."""
    profile = gpu.profile_by_id(profile_id)
    return profile is not None and tuple(content) == (profile.compute_slices,)


def uses(process: Process, instance: Instance, compute: Optional[Compute] = None) -> bool:
    """Return whether a process uses a GPU instance, or one compute instance of it; one that names no compute instance may use any."""
    if process.gpu_instance_id != instance.gpu_instance_id:
        return False
    return compute is None or process.compute_instance_id in (None, compute.id)


def layout_of(gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """Return the layout of a node as short plain data: per GPU uuid, index, mode_current, mode_pending and instances."""
    return [
        _gpu_row(gpu, gpu.mode_current, gpu.mode_pending,
                 [_instance_row(item.profile, item.profile_id, item.start, item.size, item.content, item.uuids) for item in gpu.instances])
        for gpu in gpus
    ]


def _present(gpu: Gpu, item: Instance) -> Present:
    busy = frozenset(number for number, compute in enumerate(item.computes) if any(uses(process, item, compute) for process in gpu.processes))
    return Present(item.profile_id, item.start, item.size, tuple((compute.slices, compute.start) for compute in item.computes),
                   busy=any(uses(process, item) for process in gpu.processes), busy_computes=busy)


def _sizes(places: Sequence[Place]) -> tuple[int, ...]:
    return tuple(sorted((slices for slices, _start in places), reverse=True))


def _division(placed: Placed) -> str:
    """Return how a new instance is divided, for the diff; nothing for a whole one."""
    sizes = _sizes(placed.refit.new)
    return "" if sizes == (placed.profile.compute_slices,) else f" with {' and '.join(f'{size}c' for size in sizes)}"


def _fixed(gpu: Gpu, profile: str, profile_id: int, start: int, content: tuple[int, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {"profile": profile, "start": start}
    return row if is_whole(gpu, profile_id, content) else {**row, "compute_instances": list(content)}


def _dra_name(gpu: Gpu, profile_id: int, fallback: str) -> str:
    profile = gpu.profile_by_id(profile_id)
    return fallback if profile is None else profile.dra_name


def _on_off(enabled: bool) -> str:
    return "enabled" if enabled else "disabled"


def _identity(gpu: Gpu, profile: str, profile_id: int, start: int) -> dict[str, Any]:
    device = mig_device_name(gpu.minor, _dra_name(gpu, profile_id, profile), profile_id, start)
    return {"parent_uuid": gpu.uuid, "profile": profile, "profile_id": profile_id, "start": start, "device_name": device}


def _instance_row(profile: str, profile_id: int, start: int, size: int, content: Sequence[int], uuids: Sequence[str]) -> dict[str, Any]:
    return {"profile": profile, "profile_id": profile_id, "start": start, "size": size, "compute_slices": list(content), "uuids": list(uuids)}


def _gpu_row(gpu: Gpu, current: bool, pending: bool, instances: list[dict[str, Any]]) -> dict[str, Any]:
    return {"uuid": gpu.uuid, "index": gpu.index, "product": gpu.product, "mode_current": current, "mode_pending": pending,
            "instances": sorted(instances, key=lambda row: row["start"])}
