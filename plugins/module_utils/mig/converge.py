# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the GPUs, plans, carries the plan out and reads back. The only part of the engine that acts, waits and looks at a clock.

Every handle is looked up by UUID and id right before it is used, for a mode change or a reset makes old ones stale. Instances are checked against the plan
before they are destroyed: ids are NVML's to reuse.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Optional

from ..nvml.codes import IN_USE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlError, code_name
from ..nvml.inventory import read_inventory
from ..nvml.session import NvmlSession
from ..reasons import Finding, FleetError, finding
from .catalogue import Gpu, gpus_from_facts
from .gpu_plan import GpuPlan
from .layout import Layout
from .plan import Plan, layout_of, make_plan, present_device_names
from .steps import CREATE_COMPUTE_INSTANCE, CREATE_GPU_INSTANCE, DESTROY_COMPUTE_INSTANCE, DESTROY_GPU_INSTANCE, SET_MODE, Step

_POLL_S = 1.0


@dataclass(frozen=True)
class Policy:
    """How far a change may go.

    ``unlisted``: keep or disable GPUs that no rule names. ``wait_s``: seconds to wait for GPUs in use. ``reset``: resets a GPU by UUID, None when not allowed.
    """

    unlisted: str = "keep"
    wait_s: float = 0.0
    reset: Optional[Callable[[str], None]] = None


class StepLog:
    """Remembers which steps are done, so that a failure can say exactly what it left behind."""

    def __init__(self) -> None:
        self.done: list[Step] = []

    def finish(self, step: Step) -> None:
        """Note that the step took effect."""
        self.done.append(step)

    def withdraw(self, step: Step) -> None:
        """Note that a finished step was taken back."""
        self.done.remove(step)

    @property
    def text(self) -> str:
        """Return the finished steps as text for messages."""
        return "; ".join(step.text for step in self.done) or "nothing"


def read_plan(session: NvmlSession, layout: Layout, policy: Policy) -> tuple[dict[str, Any], Plan]:
    """Return the NVML facts document as it is now, and the plan from there to ``layout``. Touches nothing. Raises what :func:`make_plan` raises."""
    facts = read_inventory(session)
    return facts, make_plan(gpus_from_facts(facts), layout, policy.unlisted)


def describe(facts: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the result of a run that only looks: the plan, the layout before and as it would be after, and the facts."""
    before = layout_of(gpus_from_facts(facts))
    return {
        "changed": plan.changed, "diff": plan.diff(), **plan.summary(), "before": before, "after": plan.layout_after(), "nvml": facts,
        "executed": [], "reset_required": any(row["mode_current"] != row["mode_pending"] for row in before), "reboot_required": False,
    }


def apply_layout(session: NvmlSession, layout: Layout, policy: Policy, result: dict[str, Any]) -> None:
    """Make the GPUs match ``layout`` and prove it by reading them again; ``result`` is filled with what is true, also when this raises.

    Raises FleetError for what :func:`read_plan`, :func:`wait_until_free` and :func:`converge` refuse, and ReadBackMismatch.
    """
    def read() -> Plan:
        facts, plan = read_plan(session, layout, policy)
        result.update({**describe(facts, plan), **_as_read(facts), "changed": False})
        return plan

    plan = wait_until_free(read, policy.wait_s)
    if not plan.changed:
        return
    journal = StepLog()
    try:
        converge(session, plan, journal, policy.wait_s, policy.reset)
    except FleetError as error:
        result.update(reset_required=error.finding.code == "ResetRequired", reboot_required=error.finding.code == "RebootRequired")
        # A GPU that cannot be read any more must not hide why the change failed.
        with suppress(NvmlError):
            result.update(_as_read(read_inventory(session)))
        raise
    finally:
        # A mode that is only pending is a change too, though its step is not done.
        result.update(changed=bool(journal.done) or result["after"] != result["before"], executed=[step.text for step in journal.done])
    facts = read_inventory(session)
    result.update(_as_read(facts), reset_required=False)
    remaining = make_plan(gpus_from_facts(facts), layout, policy.unlisted).steps
    if remaining:
        differences = "; ".join(f"it would still have to {step.text}" for step in remaining)
        raise FleetError(finding("ReadBackMismatch", remaining[0].gpu_label, {"remaining": [step.as_dict() for step in remaining]}, differences=differences))


def _as_read(facts: dict[str, Any]) -> dict[str, Any]:
    gpus = gpus_from_facts(facts)
    return {"nvml": facts, "after": layout_of(gpus), "device_names": present_device_names(gpus)}


def wait_until_free(read: Callable[[], Plan], wait_s: float) -> Plan:
    """Return the first plan of ``read`` that hurts no process, reading again for up to ``wait_s`` seconds.

    Raises FleetError InstanceBusy with the holders when the time is over; nothing has been touched then.
    """
    deadline = time.monotonic() + wait_s
    while True:
        plan = read()
        busy = next((gpu for gpu in plan.gpus if gpu.blockers), None)
        if busy is None:
            return plan
        if time.monotonic() >= deadline:
            holders = [{"pid": p.pid, "kind": p.kind, "gpu_instance_id": p.gpu_instance_id} for p in busy.blockers]
            named = ", ".join(f"{p.kind} process {p.pid}" + ("" if p.gpu_instance_id is None else f" (GPU instance {p.gpu_instance_id})")
                              for p in busy.blockers)
            raise FleetError(finding("InstanceBusy", busy.target.where, {"holders": holders}, what=_going(busy), holders=named))
        time.sleep(_POLL_S)


def _going(plan: GpuPlan) -> str:
    return f"{plan.gpu.label}{', of which ' + ', '.join(plan.going) + ' would go,' if plan.going else ', whose partitioning changes,'}"


def converge(session: NvmlSession, plan: Plan, journal: StepLog, wait_s: float = 0.0, reset: Callable[[str], None] | None = None) -> None:
    """Carry out ``plan``, GPU by GPU.

    ``wait_s`` bounds how long a step is tried again while NVML says IN_USE. ``reset`` resets a GPU by UUID, and is None when that is not allowed. A GPU that
    needs a reset or a reboot does not hold the others up: it is reported at the end.
    Raises FleetError ResetRequired, RebootRequired, ModeChangeFailed, GpuResetFailed, InstanceDestroyFailed, InstanceBusy or InstanceCreateFailed; ``journal``
    then holds what was done.
    """
    postponed: list[Finding] = []
    for gpu_plan in plan.gpus:
        try:
            _GpuWorker(session, gpu_plan.gpu, journal, wait_s, reset).run(gpu_plan.steps)
        except _Postponed as reason:
            postponed.append(reason.found)
    if postponed:
        raise FleetError(_merge(postponed))


class _Postponed(Exception):
    """The rest of this GPU's steps must wait for a reset or reboot."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.sentence())
        self.found = found


def _merge(findings: list[Finding]) -> Finding:
    """Return one finding for all GPUs that wait; a reboot, being enough for each, decides the reason."""
    first = next((item for item in findings if item.code == "RebootRequired"), findings[0])
    subject = ", ".join(item.subject for item in findings)
    return Finding(first.code, first.severity, subject, first.cause, first.remedy, {"gpus": [item.details["gpu"] for item in findings]})


class _GpuWorker:
    """The steps of one GPU."""

    def __init__(self, session: NvmlSession, gpu: Gpu, journal: StepLog, wait_s: float, reset: Callable[[str], None] | None) -> None:
        self._session = session
        self._gpu = gpu
        self._journal = journal
        self._deadline = time.monotonic() + wait_s
        self._reset = reset

    def run(self, steps: list[Step]) -> None:
        actions: dict[str, Callable[[Step], None]] = {
            DESTROY_COMPUTE_INSTANCE: self._destroy_compute_instance,
            DESTROY_GPU_INSTANCE: self._destroy_gpu_instance,
            SET_MODE: self._set_mode,
            CREATE_GPU_INSTANCE: self._create_gpu_instance,
            CREATE_COMPUTE_INSTANCE: self._create_compute_instance,
        }
        for step in steps:
            actions[step.action](step)
            self._journal.finish(step)

    def _patiently(self, call: Callable[[], Any]) -> Any:
        """Return what ``call`` returns, trying again while NVML says IN_USE and there is time."""
        while True:
            try:
                return call()
            except NvmlError as error:
                if error.code != IN_USE or time.monotonic() >= self._deadline:
                    raise
            time.sleep(_POLL_S)

    def _device(self) -> Any:
        return self._session.device(self._gpu.uuid)

    # -- destroy ---------------------------------------------------------------------------------------------------------------------------------

    def _destroy_compute_instance(self, step: Step) -> None:
        def act() -> None:
            instance = self._planned_instance(step)
            if instance is not None and step.compute_instance_id is not None:
                self._session.destroy_compute_instance(self._session.compute_instance(instance, step.compute_instance_id))

        self._destroy(step, act)

    def _destroy_gpu_instance(self, step: Step) -> None:
        def act() -> None:
            instance = self._planned_instance(step)
            if instance is not None:
                self._session.destroy_gpu_instance(instance)

        self._destroy(step, act)

    def _destroy(self, step: Step, act: Callable[[], None]) -> None:
        try:
            self._patiently(act)
        except NvmlError as error:
            if error.code == NOT_FOUND:  # already gone
                return
            self._restore_compute_instances(step)
            if error.code == IN_USE and not self._journal.done:
                raise FleetError(finding("InstanceBusy", self._gpu.label, what=step.what, holders="a client that NVML does not list")) from error
            raise FleetError(finding("InstanceDestroyFailed", self._gpu.label, what=step.what, error=str(error), done=self._journal.text)) from error

    def _restore_compute_instances(self, failed: Step) -> None:
        """Make the compute instances again that were destroyed in a GPU instance which then could not be; NVML derives their UUIDs from the place."""
        for step in [step for step in self._journal.done if _same_instance(step, failed) and step.action == DESTROY_COMPUTE_INSTANCE]:
            with suppress(NvmlError):
                self._make_compute_instance(self._planned_instance(failed), step.compute_slices)
                self._journal.withdraw(step)

    def _planned_instance(self, step: Step) -> Any:
        """Return the handle of the step's GPU instance, or None when it is gone or another one has its id now."""
        if step.gpu_instance_id is None:
            return None
        try:
            instance = self._session.gpu_instance(self._device(), step.gpu_instance_id)
        except NvmlError as error:
            if error.code in (NOT_FOUND, NOT_SUPPORTED, INVALID_ARGUMENT):
                return None
            raise
        facts = self._session.gpu_instance_facts(instance)
        return instance if (facts.profile_id, facts.start) == (step.profile_id, step.start) else None

    # -- mode ------------------------------------------------------------------------------------------------------------------------------------

    def _set_mode(self, step: Step) -> None:
        wanted = bool(step.enable)
        status = self._activate(wanted)
        current_pending = self._mode_after_reopen()
        if current_pending == (wanted, wanted):
            return
        mode = "enabled" if wanted else "disabled"
        details = {"gpu": self._gpu.uuid, "activation_status": code_name(status)}
        if self._gpu.reset_free or current_pending is None or current_pending[1] != wanted:
            raise FleetError(finding("ModeChangeFailed", self._gpu.label, details, mode=mode, error=f"activation status {code_name(status)}"))
        if status == NOT_SUPPORTED:
            raise _Postponed(finding("RebootRequired", self._gpu.label, details, mode=mode, status=code_name(status)))
        if self._reset is None:
            raise _Postponed(finding("ResetRequired", self._gpu.label, details, mode=mode, status=code_name(status)))
        self._session.close()
        try:
            self._reset(self._gpu.uuid)
        finally:
            self._session.open()
        if self._mode_after_reopen() != (wanted, wanted):
            raise _Postponed(finding("RebootRequired", self._gpu.label, details, mode=mode, status="a GPU reset did not activate it"))

    def _activate(self, wanted: bool) -> int:
        """Set the mode and return the activation status, trying again while it is IN_USE and there is time."""
        try:
            while True:
                status = self._patiently(lambda: self._session.set_mig_mode(self._device(), wanted))
                if status != IN_USE or time.monotonic() >= self._deadline:
                    return status
                time.sleep(_POLL_S)
        except NvmlError as error:
            mode = "enabled" if wanted else "disabled"
            raise FleetError(finding("ModeChangeFailed", self._gpu.label, {"gpu": self._gpu.uuid}, mode=mode, error=str(error))) from error

    def _mode_after_reopen(self) -> tuple[bool, bool] | None:
        self._session.reopen()
        return self._session.mig_mode(self._device())

    # -- create ----------------------------------------------------------------------------------------------------------------------------------

    def _create_gpu_instance(self, step: Step) -> None:
        self._create(step, lambda: self._session.create_gpu_instance(self._device(), _known(step.profile_id), _known(step.start), _known(step.size)))

    def _create_compute_instance(self, step: Step) -> None:
        self._create(step, lambda: self._make_compute_instance(self._instance_at(step), step.compute_slices))

    def _make_compute_instance(self, instance: Any, slices: int | None) -> None:
        fitting = [profile.id for profile in self._session.compute_profiles(instance) if profile.slices == slices]
        if not fitting:
            raise NvmlError(NOT_SUPPORTED, f"a compute instance of {slices} slices")
        # Two profiles can have the same slices (7_SLICE_NVL, 1_SLICE_REV1); the lower id is the plain one.
        self._session.create_compute_instance(instance, min(fitting))

    def _create(self, step: Step, act: Callable[[], Any]) -> None:
        try:
            self._patiently(act)
        except NvmlError as error:
            raise FleetError(finding("InstanceCreateFailed", self._gpu.label, what=step.what, error=str(error), done=self._journal.text)) from error

    def _instance_at(self, step: Step) -> Any:
        """Return the handle of the GPU instance of this profile at this start, found by listing: it may have been created a moment ago."""
        device = self._device()
        for profile in self._session.gpu_instance_profiles(device):
            if profile.id == step.profile_id:
                for instance, facts in self._session.gpu_instances(device, profile):
                    if facts.start == step.start:
                        return instance
        raise NvmlError(NOT_FOUND, f"{step.profile} at start {step.start}")


def _same_instance(one: Step, other: Step) -> bool:
    return (one.gpu_uuid, one.gpu_instance_id) == (other.gpu_uuid, other.gpu_instance_id)


def _known(value: int | None) -> int:
    if value is None:
        raise ValueError("a create step without placement")
    return value
