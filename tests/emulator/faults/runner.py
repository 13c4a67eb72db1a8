# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the engine in a child that faults may kill, as the module mig_layout runs it. Nothing is started for a run: the child lives until it dies of one."""
from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, NoReturn, Optional

import pynvml
from ansible_collections.gpufleet.dra.plugins.module_utils.converge import busy
from ansible_collections.gpufleet.dra.plugins.module_utils.converge.run import Policy, apply_layout
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.layout import parse_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.module_edge import failures
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.session import NvmlSession
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding

from sandbox.nvml.control.library import Emulator, EmulatorError
from tests.emulator.faults.kinds import RESET, Fault
from tests.emulator.faults.transitions import Transition

_HANGS_S = 120.0
_TOLD = ("changed", "executed", "rolled_back", "resumed", "reset_required", "warnings")

Outcome = Optional[dict[str, Any]]
"""How a run ended: ``result``; ``error`` (reason, msg, left) when it failed as it should; ``crash`` (a traceback) when not; None when it was killed."""


class Order(NamedTuple):
    """What the child shall do: one run, in which it meets ``fault`` only where that is at a reset, which is no NVML call."""

    fault: Optional[Fault]
    phase_s: float


class Hung(Exception):
    """A run that did not end."""


class Runner:
    """Runs one transition. To be closed."""

    def __init__(self, transition: Transition, emulator: Emulator, state_dir: str) -> None:
        self._engine = _Engine(transition, emulator, state_dir)
        self._child: Optional[BaseProcess] = None

    def run(self, order: Order) -> Outcome:
        """Run, and return how it ended. Raises Hung."""
        if self._child is None:
            self._connection, theirs = multiprocessing.Pipe()
            self._child = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs, self._engine), daemon=True)
            self._child.start()
            theirs.close()
        self._connection.send(order)
        if not self._connection.poll(_HANGS_S):
            self.close()
            raise Hung
        try:
            outcome, lives = self._connection.recv()
        except EOFError:
            outcome, lives = None, False
        if not lives:
            self.close()
        return outcome

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.join()
            self._child = None
            self._connection.close()


def _serve(connection: Connection, engine: _Engine) -> None:
    """Do runs in this child until one leaves something behind that the next could stumble over."""
    lives = True
    while lives:
        order = connection.recv()
        try:
            outcome = engine.apply(order)
        except BaseException:
            outcome = {"crash": traceback.format_exc()}
        if order.fault is not None and order.fault.kind.late:
            # A call that comes back late shall have its chance to do harm.
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join(_HANGS_S)
        lives = not _is_open()
        connection.send((outcome, lives))


def _is_open() -> bool:
    try:
        pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return error.value != pynvml.NVML_ERROR_UNINITIALIZED
    return True


class _Engine:
    """Does what the module does."""

    def __init__(self, transition: Transition, emulator: Emulator, state_dir: str) -> None:
        self._transition = transition
        self._layout = parse_layouts(transition.layouts)
        self._emulator = emulator
        self._state_dir = state_dir

    def apply(self, order: Order) -> dict[str, Any]:
        """Make the layout, and return the outcome."""
        busy.open_handles = lambda facts: []  # no process has an emulated GPU open, and looking at all of them at every IN_USE takes most of the time
        result: dict[str, Any] = {}
        resets = _Resets(self._emulator, order)
        policy = Policy(reset=resets.reset if self._transition.after_reset else None, phase_timeout_s=order.phase_s, state_dir=self._state_dir)
        try:
            with failures(_Module(), result), NvmlSession() as session:
                apply_layout(session, self._layout, policy, result)
        except _Failed as failed:
            left = (failed.said.get("details") or {}).get("left")
            return {"result": _told(result), "error": {"reason": failed.said.get("reason"), "msg": failed.said["msg"], "left": left}}
        return {"result": _told(result)}


def _told(result: dict[str, Any]) -> dict[str, Any]:
    return {key: result[key] for key in _TOLD if key in result}


class _Failed(Exception):
    """What a module says when it fails."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(said["msg"])
        self.said = said


class _Module:
    """The part of AnsibleModule that failures need."""

    def warn(self, text: str) -> None:
        """Tell nobody: warnings are part of the result."""

    def fail_json(self, **said: Any) -> NoReturn:
        raise _Failed(said)


class _Resets:
    """Resets GPUs as nvidia-smi -r does, and meets faults at it."""

    def __init__(self, emulator: Emulator, order: Order) -> None:
        self._emulator = emulator
        self._fault = order.fault if order.fault is not None and order.fault.call.symbol == RESET else None
        self._late_s = 1.5 * order.phase_s

    def reset(self, uuids: Sequence[str]) -> None:
        """Reset the GPUs. Raises FleetError GpuResetFailed."""
        self._meet("before")
        try:
            for uuid in uuids:
                self._emulator.reset(self._emulator.gpu_index(uuid))
        except EmulatorError as error:
            raise FleetError(finding("GpuResetFailed", ",".join(uuids), error=str(error))) from error
        self._meet("after")

    def _meet(self, when: str) -> None:
        if self._fault is None or self._fault.when != when:
            return
        if self._fault.kind.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if not self._fault.kind.late:
            raise FleetError(finding("GpuResetFailed", "GPU", error=self._fault.kind.name))
        time.sleep(self._late_s)
