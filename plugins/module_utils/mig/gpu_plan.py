# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What happens to one GPU: what stays, goes and comes, the steps to get there, and how it will be."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

from ..dra.rules import gpu_device_name, is_skipped, mig_device_name
from ..reasons import FleetError, finding
from .catalogue import Compute, Gpu, Instance, Process
from .compute import Place, Refit
from .layout import DISABLED, ENABLED, UNMANAGED
from .resolve import Target, describe_offer
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
class Outcome:
    """A GPU instance as it will be. ``content`` are the slices of its compute instances, largest first; new ones have no UUID in ``uuids`` yet."""

    profile: str
    profile_id: int
    start: int
    size: int
    content: tuple[int, ...]
    uuids: tuple[str, ...]
    whole: bool
    device_name: str


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
    def outcome(self) -> list[Outcome]:
        """Return the GPU instances as they will be, by start."""
        items = [self._outcome(kept.instance.profile, kept.instance.profile_id, kept.instance.start, kept.instance.size, kept.content,
                               tuple(item.uuid for item in kept.remaining if item.uuid)) for kept in self.kept]
        items += [self._outcome(placed.profile.name, placed.profile.id, placed.start, placed.profile.size, _sizes(placed.refit.new), ())
                  for placed in self.created]
        return sorted(items, key=lambda item: item.start)

    def _outcome(self, profile: str, profile_id: int, start: int, size: int, content: tuple[int, ...], uuids: tuple[str, ...]) -> Outcome:
        return Outcome(profile, profile_id, start, size, content, uuids, is_whole(self.gpu, profile_id, content), self.device_name(profile, profile_id, start))

    def device_name(self, profile: str, profile_id: int, start: int) -> str:
        """Return the name that the DRA driver gives to the MIG device of a whole GPU instance."""
        offered = self.gpu.profile_by_id(profile_id)
        return mig_device_name(self.gpu.minor, profile if offered is None else offered.dra_name, profile_id, start)

    @property
    def divided(self) -> list[str]:
        """Return the instances, such as ``3g.40gb at start 4 with 2c and 1c``, whose compute instances will be smaller than themselves."""
        return [f"{item.profile} at start {item.start} with {describe_division(item.content)}" for item in self.outcome if item.content and not item.whole]

    @property
    def device_names(self) -> list[str]:
        """Return the devices that the DRA driver publishes for this GPU afterwards: whole GPU instances, or the GPU itself while MIG mode is off."""
        if is_skipped(self.gpu.product):
            return []
        if not self.mode_after:
            return [gpu_device_name(self.gpu.minor)]
        return sorted(item.device_name for item in self.outcome if item.whole)

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


def _present(gpu: Gpu, item: Instance) -> Present:
    busy = frozenset(number for number, compute in enumerate(item.computes) if any(uses(process, item, compute) for process in gpu.processes))
    return Present(item.profile_id, item.start, item.size, tuple((compute.slices, compute.start) for compute in item.computes),
                   busy=any(uses(process, item) for process in gpu.processes), busy_computes=busy)


def _sizes(places: Sequence[Place]) -> tuple[int, ...]:
    return tuple(sorted((slices for slices, _start in places), reverse=True))


def describe_division(content: Sequence[int]) -> str:
    """Return the sizes of compute instances for messages, such as ``2c and 1c``."""
    return " and ".join(f"{size}c" for size in content)


def _division(placed: Placed) -> str:
    """Return how a new instance is divided, for the diff; nothing for a whole one."""
    sizes = _sizes(placed.refit.new)
    return "" if sizes == (placed.profile.compute_slices,) else f" with {describe_division(sizes)}"


def _on_off(enabled: bool) -> str:
    return "enabled" if enabled else "disabled"
