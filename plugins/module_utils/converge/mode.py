# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Changing the MIG mode of one GPU.

NVML gives two results, the return code and the activation status, and may still not have done it: so the mode counts as changed only when both the current and
the pending one are read as wanted. Hopper and later change at once. Ampere notes the mode and needs a GPU reset, which NVML tries itself; where that is not
possible the reset is ours, if allowed: of this GPU alone, or, where NVLink partners have to go along, of all of them, if that hurts nobody.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

from ..mig.catalogue import Gpu, gpu_from_facts
from ..nvml.codes import IN_USE, NOT_SUPPORTED, NvmlError, code_name
from ..nvml.inventory import read_inventory
from ..nvml.session import NvmlSession
from ..reasons import Finding, FleetError, finding
from .busy import Patience, find_holders
from .deadline import RESET, PhaseClock
from .journal import PLANNED, WAITING

Reset = Callable[[Sequence[str]], None]
"""Resets the GPUs with these UUIDs together. Raises FleetError GpuResetFailed. No NVML session may be open."""


class Postponed(Exception):
    """The mode is set, but takes effect only after a reset or a reboot that could not be done now."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.sentence())
        self.found = found


@dataclass(frozen=True)
class ModeTools:
    """What mode changes of all GPUs have in common. ``reset`` is None when no GPU may be reset.

    ``states()`` gives, for each GPU (UUID) whose mode is to change, how far that step is: a state of the journal.
    """

    session: NvmlSession
    clock: PhaseClock
    patience: Patience
    reset: Optional[Reset]
    states: Callable[[], dict[str, str]]


class ModeChange:
    """Changes the mode of one GPU. ``partners`` are its NVLink partners, by UUID or PCI bus id."""

    def __init__(self, tools: ModeTools, gpu: Gpu, partners: Sequence[str]) -> None:
        self._tools = tools
        self._session = tools.session
        self._gpu = gpu
        self._partners = partners

    def change(self, wanted: bool) -> None:
        """Set the mode and see that it is in effect. Raises Postponed, NvmlError (also by the activation status), or FleetError if NVML cannot be opened."""
        if self._mode() == (wanted, wanted):
            return
        status = self._activate(wanted)
        mode = self._mode_after_reopen()
        if mode == (wanted, wanted):
            return
        if self._gpu.reset_free or mode is None or mode[1] != wanted:
            raise NvmlError(status, "nvmlDeviceSetMigMode (activation status)")
        if status == NOT_SUPPORTED:
            raise self._postponed("RebootRequired", wanted, code_name(status), status)
        if self._tools.reset is None:
            raise self._postponed("ResetRequired", wanted, code_name(status) + self._used_by(status), status)
        self._reset_gpu(self._tools.reset, wanted, status)
        if self._mode_after_reopen() != (wanted, wanted):
            raise self._postponed("RebootRequired", wanted, "a GPU reset did not activate it", status)

    def can_go_back(self) -> bool:
        """Return whether the mode from before the run can be had without a reset: where none is ever needed, or when only the pending mode was changed.

        A mode that was on its way to change already stays on its way.
        """
        gpu = self._gpu
        if gpu.mode_current != gpu.mode_pending:
            return False
        return bool(gpu.reset_free) or self._mode_current() == gpu.mode_current

    def is_on(self) -> bool:
        """Return whether MIG mode is in effect, so that instances can be made."""
        return bool(self._mode_current())

    def go_back(self) -> bool:
        """Set the mode as it was before the run and return whether it is so. Raises NvmlError."""
        self._set(self._gpu.mode_pending)
        return self._mode_after_reopen() == (self._gpu.mode_current, self._gpu.mode_pending)

    def _activate(self, wanted: bool) -> int:
        """Set the mode and return the activation status, trying again while it is IN_USE and there is time."""
        while True:
            status = self._tools.patience.call(lambda: self._set(wanted))
            if status != IN_USE or not self._tools.patience.pause():
                return status

    def _set(self, enable: bool) -> int:
        device = self._device()
        self._tools.clock.check()  # the lookup may have taken too long
        return self._session.set_mig_mode(device, enable)

    # -- reset -------------------------------------------------------------------------------------------------------------------------------------

    def _reset_gpu(self, reset: Reset, wanted: bool, status: int) -> None:
        failed = self._without_session(reset, [self._gpu.uuid])
        if failed is not None and self._partners:
            partners, hindered = self._look_at_partners()
            if hindered:
                why = f"it is not reset alone, and with it these NVLink partners cannot be: {', '.join(hindered)}"
                raise self._postponed("ResetRequired", wanted, why, status)
            failed = self._without_session(reset, [self._gpu.uuid, *partners])
        if failed is not None:
            held = find_holders(self._session, self._gpu)
            cause = f"{failed.cause}, in use by {held.text}" if held.details else failed.cause
            raise Postponed(replace(failed, subject=self._gpu.label, cause=cause, details={"gpu": self._gpu.uuid, "holders": held.details}))

    def _without_session(self, reset: Reset, uuids: Sequence[str]) -> Finding | None:
        """Reset GPUs while no session is open; return why that failed, or None."""
        self._tools.clock.enter(RESET, self._gpu.label)
        self._session.close()
        try:
            reset(uuids)
        except FleetError as error:
            return error.finding
        finally:
            self._session.open()
        return None

    def _look_at_partners(self) -> tuple[list[str], list[str]]:
        """Return the partners' UUIDs, and the labels of those that cannot be reset now: with instances or processes, or with a mode still to be set.

        Partners that wait for a reset themselves are no hindrance. One reset has to serve all of them, for afterwards they get their instances.
        """
        states = self._tools.states()
        seen = {name: gpu for gpu in map(gpu_from_facts, read_inventory(self._session)["gpus"]) for name in (gpu.uuid, gpu.pci_bus_id)}
        uuids, hindered = [], []
        for name in self._partners:
            gpu = seen.get(name) or seen.get(name.lower())
            if gpu is None:
                hindered.append(f"{name}, which this node does not show")
            else:
                uuids.append(gpu.uuid)
                state = states.get(gpu.uuid)
                if state == PLANNED or (state != WAITING and (gpu.instances or gpu.processes)):
                    hindered.append(gpu.label)
        return uuids, hindered

    # -- reading and failures ----------------------------------------------------------------------------------------------------------------------

    def _device(self) -> Any:
        return self._session.device(self._gpu.uuid)

    def _mode(self) -> tuple[bool, bool] | None:
        return self._session.mig_mode(self._device())

    def _mode_current(self) -> bool | None:
        try:
            mode = self._mode()
        except NvmlError:
            return None
        return None if mode is None else mode[0]

    def _mode_after_reopen(self) -> tuple[bool, bool] | None:
        self._session.reopen()
        return self._mode()

    def _used_by(self, status: int) -> str:
        return f", in use by {find_holders(self._session, self._gpu).text}" if status == IN_USE else ""

    def _postponed(self, code: str, wanted: bool, why: str, status: int) -> Postponed:
        details = {"gpu": self._gpu.uuid, "activation_status": code_name(status)}
        return Postponed(finding(code, self._gpu.label, details, mode="enabled" if wanted else "disabled", status=why))
