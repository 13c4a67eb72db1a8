# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What became of a step that failed, and taking back the steps of a GPU.

Only what was destroyed is made again, and the mode set back where no reset is needed. Once a new instance stands, nothing is taken back: that would destroy it.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..mig.steps import CREATE_COMPUTE_INSTANCE, CREATE_GPU_INSTANCE, DESTROY_GPU_INSTANCE, SET_MODE, Step
from ..nvml.codes import NvmlError
from .actions import InstanceActions, inverse
from .deadline import ROLLBACK, PhaseClock
from .journal import DOING, DONE, FAILED, UNDOING, UNDONE, WAITING, Entry, Journal
from .mode import ModeChange

# To know what a failure has left, and to make again what was destroyed, is worth more than one try.
_ATTEMPTS = 2


def settle(entry: Entry, actions: InstanceActions, journal: Journal, error: str) -> bool:
    """Note what became of a step that ended with ``error``, by reading: it may have taken effect all the same. Returns whether it has.

    What cannot be read, not even by a second try, stays noted as in progress.
    """
    for _attempt in range(_ATTEMPTS):
        try:
            outcome = _outcome(entry.step, actions)
        except NvmlError:
            actions.see_to_session()
            continue
        journal.mark(entry, outcome, error)
        return outcome == DONE
    return False


def _outcome(step: Step, actions: InstanceActions) -> str:
    if actions.is_effective(step):
        return DONE
    return WAITING if step.action == SET_MODE and actions.is_pending(step) else FAILED


def take_back(entries: Sequence[Entry], actions: InstanceActions, mode: ModeChange, journal: Journal, clock: PhaseClock, label: str) -> bool:
    """Take back what was done to a GPU, in an order in which each instance is whole before the next, and return whether the GPU is as it was before.

    Does nothing when an instance was created, or when it is not known what a step did.
    """
    created = (CREATE_GPU_INSTANCE, CREATE_COMPUTE_INSTANCE)
    if any(entry.state == DOING or (entry.step.action in created and entry.state == DONE) for entry in entries):
        return False
    clock.enter(ROLLBACK, label)
    modes = [entry for entry in entries if entry.step.action == SET_MODE and entry.state in (DONE, WAITING)]
    destroyed = [entry for entry in entries if entry.step.action != SET_MODE and entry.state == DONE]
    back = all(_put_mode_back(entry, mode, journal, clock) for entry in modes)
    # A mode that was on its way to change already stays on its way; what was destroyed can come back all the same while MIG is on.
    again = (back or mode.is_on()) and all(_make_again(entry, actions, journal, clock) for entry in _by_instance(destroyed))
    return back and again


def _put_mode_back(entry: Entry, mode: ModeChange, journal: Journal, clock: PhaseClock) -> bool:
    if not mode.can_go_back():
        return False
    state = entry.state
    clock.check(f"undo: {entry.step.text}")
    journal.mark(entry, UNDOING, entry.error)
    try:
        back = mode.go_back()
    except NvmlError:
        return False
    journal.mark(entry, UNDONE if back else state, entry.error)
    return back


def _make_again(entry: Entry, actions: InstanceActions, journal: Journal, clock: PhaseClock) -> bool:
    step, error = inverse(entry.step), ""
    for _attempt in range(_ATTEMPTS):
        clock.check(f"undo: {entry.step.text}")
        journal.mark(entry, UNDOING, error)
        try:
            actions.perform(step)
        except NvmlError as refused:
            error = str(refused)
            try:
                made = actions.is_effective(step)
            except NvmlError:
                continue
            if not made:
                journal.mark(entry, DONE, error)
                continue
        journal.mark(entry, UNDONE, error)
        return True
    return False


def _by_instance(destroyed: Sequence[Entry]) -> list[Entry]:
    """Return entries that destroyed something in the order of taking back: one GPU instance after the other, each before its compute instances."""
    places = list(dict.fromkeys(_place(entry.step) for entry in destroyed))
    return sorted(destroyed, key=lambda entry: (places.index(_place(entry.step)), entry.step.action != DESTROY_GPU_INSTANCE))


def _place(step: Step) -> tuple[object, object]:
    return step.profile_id, step.start
