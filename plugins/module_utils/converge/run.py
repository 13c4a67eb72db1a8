# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the GPUs, plans, carries the plan out and reads back: the whole of a change, under the node's lock, with a journal and within bounded time.

How it is done: ``worker`` takes one GPU's steps, ``actions`` and ``mode`` act through NVML, ``rollback`` takes back, ``journal`` remembers,
``deadline`` bounds.
"""
from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Optional

from ..mig.catalogue import gpus_from_facts
from ..mig.gate import refuse_unhealthy
from ..mig.layout import Layout
from ..mig.plan import Plan, layout_of, make_plan, present_device_names
from ..nvml.codes import NvmlError
from ..nvml.device_nodes import NodeChanges, put_device_nodes_right, wrong_device_nodes
from ..nvml.inventory import read_inventory, survey
from ..nvml.session import NvmlSession
from ..nvml.unreadable import as_fleet_error
from ..reasons import Finding, FleetError, finding
from .busy import Patience, wait_until_free
from .deadline import READ, Overrun, PhaseClock, run_bounded
from .journal import FINISHED, ROLLED_BACK, RUN_FAILED, Journal, is_unfinished, summary
from .leftover import UNKNOWN, left_behind
from .lock import NodeLock
from .mode import ModeTools, Reset
from .worker import GpuWorker

STATE_DIR = "/var/lib/gpufleet"
_NODE = "this node"
# Of GPUs that wait for different reasons, the one that takes most decides what the run says.
_WAITS = ("RebootRequired", "GpuResetFailed", "ResetRequired")


@dataclass(frozen=True)
class Policy:
    """How far a change may go.

    ``unlisted``: keep or disable GPUs that no rule names. ``wait_s``: seconds to wait for the lock and for GPUs in use. ``reset``: resets GPUs together by
    their UUIDs, None when not allowed. ``phase_timeout_s``: seconds that each phase of each GPU may take (read, destroy, mode, reset, create, rollback).
    ``state_dir``: folder of the lock and the journal. ``ignore_health``: partition GPUs that report faults, too.
    """

    unlisted: str = "keep"
    wait_s: float = 0.0
    reset: Optional[Reset] = None
    phase_timeout_s: float = 120.0
    state_dir: str = STATE_DIR
    ignore_health: bool = False


def read_plan(session: NvmlSession, layout: Layout, policy: Policy) -> tuple[dict[str, Any], Plan]:
    """Return the NVML facts document as it is now, and the plan from there to ``layout``. Touches nothing. Raises what :func:`make_plan` raises."""
    facts = read_inventory(session)
    return facts, make_plan(gpus_from_facts(facts), layout, policy.unlisted)


def look(session: NvmlSession, layout: Layout, policy: Policy) -> dict[str, Any]:
    """Return the result of a run that only looks: the plan, the layout before and as it would be, the facts, and as ``warnings`` what would stand in the way.

    Raises what :func:`make_plan` raises, NvmlError, and FleetError PhaseTimeout.
    """
    run = _Run(session, layout, policy, {})
    try:
        return run_bounded(run.look, run.clock)
    except Overrun as overrun:
        raise run.give_up(overrun) from overrun


def apply_layout(session: NvmlSession, layout: Layout, policy: Policy, result: dict[str, Any]) -> None:
    """Make the GPUs match ``layout`` and prove it by reading them again; ``result`` is filled with what is true, also when this raises.

    Raises FleetError for what :func:`make_plan` and :func:`refuse_unhealthy` refuse, LayoutLocked, StateDirUnusable, InstanceBusy, InstanceDestroyFailed,
    InstanceCreateFailed, ModeChangeFailed, ResetRequired, GpuResetFailed, RebootRequired, ReadBackMismatch or PhaseTimeout; NvmlError when the GPUs cannot be
    read to begin with. After PhaseTimeout a call may still hang in the driver: the session and the lock are left as they are and the process should end.
    """
    ends = time.monotonic() + policy.wait_s
    with NodeLock(policy.state_dir, policy.wait_s) as lock:
        run = _Run(session, layout, policy, result, ends)
        try:
            run_bounded(run.work, run.clock)
        except Overrun as overrun:
            lock.keep()
            raise run.give_up(overrun) from overrun


class _Run:
    """One run. :meth:`look` and :meth:`work` run in a thread of their own, :meth:`give_up` in the one that waits for it."""

    def __init__(self, session: NvmlSession, layout: Layout, policy: Policy, result: dict[str, Any], ends: float = 0.0) -> None:
        self.clock = PhaseClock(policy.phase_timeout_s)
        self._session, self._layout, self._policy, self._result = session, layout, policy, result
        self._patience = Patience(ends, self.clock)
        self._journal = Journal(policy.state_dir)

    def look(self) -> dict[str, Any]:
        """Return what a run would do. Writes nothing."""
        warnings: list[str] = []
        earlier = self._earlier_run(warnings, set_aside=False)
        facts, plan = self._read()
        if not self._policy.ignore_health:
            try:
                refuse_unhealthy(facts, plan)
            except FleetError as error:
                warnings.append(error.finding.sentence())
        warnings += [item.sentence() for item in plan.findings]
        warnings += [f"{row['kind']} process {row['pid']} uses what has to go on {row['parent_uuid']}; the change would fail or wait (on_busy)"
                     for row in plan.summary()["blockers"]]
        wrong = [] if plan.changed else wrong_device_nodes(facts, self._session.driver_root)
        return {**_description(facts, plan), "changed": plan.changed or bool(wrong), "journal": str(self._journal.path), "rolled_back": [],
                "resumed": summary(earlier) if earlier else None, "device_nodes": NodeChanges(made=wrong).as_dict(), "warnings": warnings}

    def work(self) -> None:
        """Make the layout."""
        warnings: list[str] = []
        earlier = self._earlier_run(warnings, set_aside=True)
        self._result.update(changed=False, journal=str(self._journal.path), rolled_back=[], resumed=summary(earlier) if earlier else None, warnings=warnings)
        plan = wait_until_free(self._read_healthy, self._patience)
        warnings += [item.sentence() for item in plan.findings]
        before = self._result["nvml"]
        if plan.changed:
            self._journal.begin(self._result["before"], plan.steps)
            self._carry_out(plan, before)
        elif earlier:
            self._journal.conclude(earlier)
        self._put_device_nodes_right(before)

    def give_up(self, overrun: Overrun) -> FleetError:
        """Return the failure of a run whose worker does not come back, after writing it down."""
        call = self._session.abandon()
        left = f"The journal {self._journal.path} says: {self._journal.text()}" if self._journal.touched else "Nothing was changed"
        details = {"phase": overrun.phase, "limit_s": overrun.limit_s, "step": overrun.act, "call": call}
        failed = finding("PhaseTimeout", overrun.subject, details, phase=overrun.phase, limit=f"{overrun.limit_s:g}", act=overrun.act,
                         call=f" (NVML call {call})" if call else "", left=left)
        self._result.update(changed=self._journal.touched, executed=list(self._journal.executed))
        if self._journal.touched:
            self._forget()
        with suppress(FleetError):
            self._journal.finish(RUN_FAILED, failed.sentence())
        return FleetError(failed)

    # -- before the change -------------------------------------------------------------------------------------------------------------------------

    def _earlier_run(self, warnings: list[str], set_aside: bool) -> dict[str, Any] | None:
        """Return the journal of an earlier run that did not come to its end. One that cannot be read only makes a warning."""
        try:
            document = self._journal.read()
        except ValueError as error:
            where = f", and was moved to {self._journal.set_aside()}" if set_aside else ""
            warnings.append(f"The journal {self._journal.path} cannot be used: {error}{where}. What an earlier run left is taken from the GPUs alone.")
            return None
        return document if is_unfinished(document) else None

    def _read(self) -> tuple[dict[str, Any], Plan]:
        self.clock.enter(READ, _NODE)
        return read_plan(self._session, self._layout, self._policy)

    def _read_healthy(self) -> tuple[dict[str, Any], Plan]:
        facts, plan = self._read()
        self._result.update({**_description(facts, plan), **_as_read(facts), "changed": False})
        if not self._policy.ignore_health:
            refuse_unhealthy(facts, plan)
        return facts, plan

    # -- the change --------------------------------------------------------------------------------------------------------------------------------

    def _carry_out(self, plan: Plan, facts: dict[str, Any]) -> None:
        def mode_states() -> dict[str, str]:
            return {worker.gpu.uuid: worker.mode_state for worker in workers if worker.mode_state is not None}

        tools = ModeTools(self._session, self.clock, self._patience, self._policy.reset, mode_states)
        partners = {row["uuid"]: row.get("nvlink_peers") or [] for row in facts["gpus"]}
        workers = [
            GpuWorker(tools, gpu_plan.gpu, partners[gpu_plan.gpu.uuid], self._journal, self._journal.entries_of(gpu_plan.gpu.uuid))
            for gpu_plan in plan.gpus if gpu_plan.steps
        ]
        try:
            converge(workers)
            self._read_back()
        except (FleetError, NvmlError) as error:
            self._fail(plan, workers, facts, error)
        self._result.update(changed=True, executed=list(self._journal.executed))
        self._journal.finish(FINISHED)

    def _read_back(self) -> None:
        facts, remaining = self._read()
        self._result.update(_as_read(facts), reset_required=False)
        if remaining.changed:
            differences = "; ".join(f"it would still have to {step.text}" for step in remaining.steps)
            details = {"remaining": [step.as_dict() for step in remaining.steps]}
            raise FleetError(finding("ReadBackMismatch", remaining.steps[0].gpu_label, details, differences=differences))

    def _fail(self, plan: Plan, workers: Sequence[GpuWorker], facts: dict[str, Any], error: FleetError | NvmlError) -> NoReturn:
        """Say how the GPUs are left, in the result, in the journal and in the error."""
        found = as_fleet_error(error).finding
        before = self._result["before"]
        try:
            self._result.update(_as_read(self._survey()))
            text, states = left_behind(before, plan.layout_after(), self._result["after"])
            changed = self._result["after"] != before
        except NvmlError as unreadable:
            text, states = f"The GPUs cannot be read any more ({unreadable})", {}
            changed = self._journal.touched
            self._forget()
        if not states or UNKNOWN in states.values():
            text += f"; by the journal: {self._journal.text()}"
        self._result.update(
            changed=changed, executed=list(self._journal.executed), rolled_back=[worker.gpu.label for worker in workers if worker.rolled_back],
            reset_required=found.code in ("ResetRequired", "GpuResetFailed"), reboot_required=found.code == "RebootRequired",
        )
        failed = replace(found, remedy=f"{found.remedy} {text}.", details={**found.details, "left": states})
        half_done = any(worker.half_done for worker in workers) or all(worker.finished for worker in workers)
        with suppress(FleetError):
            self._journal.finish(RUN_FAILED if half_done else ROLLED_BACK, failed.sentence())
        if self._result["nvml"] is not None:
            # Of a GPU that does not answer it is not known which instances it has.
            answering = {gpu["uuid"] for gpu in self._result["nvml"]["gpus"]}
            self._put_device_nodes_right({**facts, "gpus": [gpu for gpu in facts["gpus"] if gpu["uuid"] in answering]})
        raise FleetError(failed) from error

    def _forget(self) -> None:
        """Take out of the result what was read before and may be true no longer."""
        self._result.update(nvml=None, after=None, device_names=None)

    def _survey(self) -> dict[str, Any]:
        """Return the facts of the GPUs that answer, by a second try where one did not. Raises NvmlError."""
        self.clock.enter(READ, _NODE)
        with suppress(NvmlError):
            facts = survey(self._session)
            if not facts["unreadable_gpus"]:
                return facts
        return survey(self._session)

    def _put_device_nodes_right(self, before: dict[str, Any]) -> None:
        changes = put_device_nodes_right(before, self._result["nvml"], self._session.driver_root)
        self._result["device_nodes"] = changes.as_dict()
        self._result["warnings"] += changes.problems
        self._result["changed"] = self._result["changed"] or bool(changes.made or changes.removed)


def converge(workers: Sequence[GpuWorker]) -> None:
    """Let each GPU's worker do its steps; those that had to be postponed again whenever the others have come further.

    After a failure those not begun stay as they are. Raises FleetError: what a worker raises, or, when all others are done, ResetRequired, GpuResetFailed or
    RebootRequired for the GPUs that wait.
    """
    tried: dict[str, int] = {}
    while True:
        came = sum(worker.steps_done for worker in workers)
        ready = [worker for worker in workers if not worker.finished and tried.get(worker.gpu.uuid) != came]
        if not ready:
            break
        for worker in ready:
            worker.run()
            tried[worker.gpu.uuid] = sum(worker.steps_done for worker in workers)
    waiting = [worker.postponed for worker in workers if worker.postponed is not None]
    if waiting:
        raise FleetError(_merge(waiting))


def _merge(findings: Sequence[Finding]) -> Finding:
    """Return one finding for all GPUs that wait, with the cause of each; what takes most, being enough for each, decides the reason."""
    first = min(findings, key=lambda item: _WAITS.index(item.code))
    details = {"gpus": [item.details["gpu"] for item in findings], "findings": [item.as_dict() for item in findings]}
    if len(findings) == 1:
        return replace(first, details=details)
    return replace(first, subject=_NODE, cause="; ".join(f"{item.subject}: {item.cause}" for item in findings), details=details)


def _description(facts: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return what is known before anything is done: the plan, the layout before and as it will be, and the facts."""
    before = layout_of(gpus_from_facts(facts))
    return {
        "changed": plan.changed, "diff": plan.diff(), **plan.summary(), "before": before, "after": plan.layout_after(), "nvml": facts,
        "executed": [], "reset_required": any(row["mode_current"] != row["mode_pending"] for row in before), "reboot_required": False,
    }


def _as_read(facts: dict[str, Any]) -> dict[str, Any]:
    gpus = gpus_from_facts(facts)
    return {"nvml": facts, "after": layout_of(gpus), "device_names": present_device_names(gpus)}
