# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Carries out the steps of one GPU, with the journal written before and after each, and takes them back when that destroys nothing."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Optional

from ..mig.catalogue import Gpu
from ..mig.steps import CREATE_COMPUTE_INSTANCE, CREATE_GPU_INSTANCE, DESTROY_COMPUTE_INSTANCE, DESTROY_GPU_INSTANCE, SET_MODE, Step
from ..nvml.codes import IN_USE, NOT_FOUND, NOT_SUPPORTED, NvmlError
from ..reasons import Finding, FleetError, finding
from .actions import InstanceActions
from .busy import find_holders
from .deadline import CREATE, DESTROY, MODE
from .journal import DOING, DONE, UNDOING, UNDONE, WAITING, Entry, Journal
from .mode import ModeChange, ModeTools, Postponed
from .rollback import settle, take_back

_PHASES = {
    DESTROY_COMPUTE_INSTANCE: DESTROY, DESTROY_GPU_INSTANCE: DESTROY, SET_MODE: MODE, CREATE_GPU_INSTANCE: CREATE, CREATE_COMPUTE_INSTANCE: CREATE,
}  # fmt: skip
_DESTROYS = (DESTROY_COMPUTE_INSTANCE, DESTROY_GPU_INSTANCE)
# What NVML answers about an instance that is gone: unknown, or MIG mode is off.
_GONE = (NOT_FOUND, NOT_SUPPORTED)


class GpuWorker:
    """The steps of one GPU, as ``entries`` of the journal."""

    def __init__(self, tools: ModeTools, gpu: Gpu, partners: Sequence[str], journal: Journal, entries: Sequence[Entry]) -> None:
        self.gpu = gpu
        self.postponed: Optional[Finding] = None
        self._tools = tools
        self._journal = journal
        self._entries = entries
        self._actions = InstanceActions(tools.session, tools.clock, gpu)
        self._mode = ModeChange(tools, gpu, partners)

    @property
    def steps_done(self) -> int:
        """Return how many steps are done."""
        return sum(entry.state == DONE for entry in self._entries)

    @property
    def finished(self) -> bool:
        """Return whether all steps are done."""
        return self.steps_done == len(self._entries)

    @property
    def mode_state(self) -> Optional[str]:
        """Return how far the change of the GPU's mode is, None when it is not to change."""
        return next((entry.state for entry in self._entries if entry.step.action == SET_MODE), None)

    @property
    def half_done(self) -> bool:
        """Return whether some steps have taken effect, or may have, and others not."""
        return not self.finished and any(entry.state in (DOING, DONE, UNDOING, WAITING) for entry in self._entries)

    @property
    def rolled_back(self) -> bool:
        """Return whether something was taken back, and nothing is left done."""
        return not self.half_done and any(entry.state == UNDONE for entry in self._entries)

    def run(self) -> None:
        """Do the steps that are not done yet; one that waits for a reset is tried again.

        When the mode has to wait, ``postponed`` says for what and the rest stays planned. After a failure the GPU has been put back as it was, if that destroys
        nothing. Raises FleetError InstanceBusy, InstanceDestroyFailed, ModeChangeFailed, InstanceCreateFailed or StateDirUnusable; or Overrun.
        """
        self.postponed = None
        phase = None
        for entry in self._entries:
            if entry.state == DONE:
                continue
            if _PHASES[entry.step.action] != phase:
                phase = _PHASES[entry.step.action]
                self._tools.clock.enter(phase, self.gpu.label)
            try:
                self._do(entry)
            except Postponed as reason:
                # A reset that is said to have failed may have taken effect all the same.
                if not settle(entry, self._actions, self._journal, reason.found.cause):
                    self.postponed = reason.found
                    return
            except (NvmlError, FleetError) as error:
                self._roll_back()
                # Who holds a GPU is looked for only now: what was destroyed should not have to wait for that.
                raise (FleetError(self._failure(entry.step, error)) if isinstance(error, NvmlError) else error) from error

    def _roll_back(self) -> None:
        """Take back what was done to this GPU where that destroys nothing. That this fails, too, must not hide what failed first. Raises Overrun."""
        with suppress(FleetError):
            take_back(self._entries, self._actions, self._mode, self._journal, self._tools.clock, self.gpu.label)

    def _do(self, entry: Entry) -> None:
        step = entry.step
        self._tools.clock.check(step.text)
        self._journal.mark(entry, DOING)
        try:
            if step.action == SET_MODE:
                self._mode.change(bool(step.enable))
            else:
                self._tools.patience.call(lambda: self._actions.perform(step))
        except NvmlError as error:
            effective = settle(entry, self._actions, self._journal, str(error))
            if not (effective and error.code in _GONE and step.action in _DESTROYS):
                raise
        except FleetError as error:
            settle(entry, self._actions, self._journal, error.finding.cause)
            raise
        else:
            self._journal.mark(entry, DONE)

    def _failure(self, step: Step, error: NvmlError) -> Finding:
        details = {"gpu": self.gpu.uuid, "error": error.name}
        if step.action == SET_MODE:
            mode = "enabled" if step.enable else "disabled"
            return finding("ModeChangeFailed", self.gpu.label, details, mode=mode, error=self._why(step, error))
        if error.code == IN_USE and step.action in _DESTROYS:
            held = find_holders(self._tools.session, self.gpu, step.gpu_instance_id)
            return finding("InstanceBusy", self.gpu.label, {**details, "holders": held.details}, what=step.what, holders=held.text)
        code = "InstanceDestroyFailed" if step.action in _DESTROYS else "InstanceCreateFailed"
        return finding(code, self.gpu.label, details, what=step.what, error=self._why(step, error))

    def _why(self, step: Step, error: NvmlError) -> str:
        """Return the error, with who holds the GPU when that is what NVML says."""
        if error.code != IN_USE:
            return str(error)
        return f"{error}, in use by {find_holders(self._tools.session, self.gpu, step.gpu_instance_id).text}"
