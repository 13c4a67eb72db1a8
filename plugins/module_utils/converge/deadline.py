# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bounded phases. A call into the driver can hang for ever, and Python cannot interrupt it; so the work is done in a thread that can be given up.

The thread asks the clock before every act, under one lock with the decision to give it up: when the time is over, no further act begins, whether the call in
progress returns late or never.
"""
from __future__ import annotations

import signal
import threading
import time
from typing import Any, Callable, Optional, TypeVar

_Result = TypeVar("_Result")

_END_S = 10

READ, DESTROY, MODE, RESET, CREATE, ROLLBACK = "read", "destroy", "mode", "reset", "create", "rollback"


class Overrun(Exception):
    """A phase took longer than allowed. ``act`` is what was in progress, ``subject`` the GPU (or the node) it was done to."""

    def __init__(self, phase: str, subject: str, act: str, limit_s: float) -> None:
        super().__init__(f"{subject}: {act}: phase {phase} took longer than {limit_s:g} s")
        self.phase, self.subject, self.act, self.limit_s = phase, subject, act, limit_s


class PhaseClock:
    """The time of the phase in progress, ``limit_s`` seconds for each."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._given_up = False
        self._phase, self._subject, self._act = "", "", ""
        self._ends = time.monotonic() + limit_s

    def enter(self, phase: str, subject: str) -> None:
        """Begin a phase. Raises Overrun when the one before took too long."""
        self.check()
        with self._lock:
            self._phase, self._subject, self._act = phase, subject, phase
            self._ends = time.monotonic() + self._limit_s

    def check(self, act: str = "") -> None:
        """Call this before every act, and name it. Raises Overrun when the time of the phase is over."""
        with self._lock:
            if self._given_up or time.monotonic() >= self._ends:
                self._given_up = True
                raise self._overrun()
            self._act = act or self._act

    def restart(self) -> None:
        """Begin the phase's time again, after having waited on purpose."""
        with self._lock:
            self._ends = time.monotonic() + self._limit_s

    def left_s(self) -> float:
        """Return the seconds that the phase has left."""
        with self._lock:
            return max(0.0, self._ends - time.monotonic())

    def _overrun(self) -> Overrun:
        return Overrun(self._phase, self._subject, self._act, self._limit_s)


def run_bounded(work: Callable[[], _Result], clock: PhaseClock) -> _Result:
    """Return what ``work`` returns, or raise what it raises. Raises Overrun when a phase takes too long; a call that hangs is left behind with its thread."""
    outcome: list[Any] = []
    failure: Optional[BaseException] = None

    def target() -> None:
        nonlocal failure
        try:
            outcome.append(work())
        except BaseException as error:  # handed to the thread that waits
            failure = error

    thread = threading.Thread(target=target, name="mig-engine", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(clock.left_s())
        if thread.is_alive():
            clock.check()
    if failure is not None:
        raise failure
    return outcome[0]


def end_process_soon() -> None:
    """Have the kernel end this process in a few seconds, for after an :class:`Overrun`: whatever ends it in an orderly way may hang in the driver as well."""
    signal.alarm(_END_S)
