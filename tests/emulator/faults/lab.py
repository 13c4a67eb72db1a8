# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs one transition on an emulated machine, again and again from the same state, with one fault at a time.

The emulator's library has to be the one that the loader finds.
"""
from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from tests.emulator.faults.kinds import RESET, Call, Fault
from tests.emulator.faults.machines import build_machine
from tests.emulator.faults.runner import Order, Outcome, Runner
from tests.emulator.faults.transitions import Transition

_UNDISTURBED = Order(None, 60.0)


@dataclass(frozen=True)
class Run:
    """What is seen after a run: how it ended, the machine, the journal (None when there is none), and the calls that tried to change something.

    ``hit``: the fault came, and ``changes_after_hit`` of the calls that tried to change something came after it.
    """

    outcome: Outcome
    shown: dict[str, Any]
    journal: Optional[dict[str, Any]]
    changes: tuple[dict[str, Any], ...]
    hit: bool
    changes_after_hit: int

    @property
    def succeeded(self) -> bool:
        """Whether the engine said that the layout is reached."""
        return self.outcome is not None and not self.outcome.get("error") and not self.outcome.get("crash")


class Lab:
    """The machine of one transition, in ``folder``. To be closed."""

    def __init__(self, transition: Transition, folder: Path) -> None:
        self.transition = transition
        self._state_dir = folder / "state"
        self._log = folder / "machine" / "calls.jsonl"
        self.emulator = build_machine(transition, folder / "machine")
        self._snapshot = self.emulator.save()
        self.before = self.emulator.show()
        self._runner = Runner(transition, self.emulator, str(self._state_dir))

    def close(self) -> None:
        """End the child in which the engine runs."""
        self._runner.close()

    def undisturbed(self, freed: bool = False) -> tuple[Run, list[Call]]:
        """Run from the beginning without a fault, with ``freed`` also without clients, and return also all calls in order."""
        self._rewind()
        self.emulator.set_knob(0, "log", 1)
        if freed:
            self.free()
        calls: list[dict[str, Any]] = []
        run = self._run(_UNDISTURBED, calls)
        return run, [Call(call["symbol"], call["mutating"]) for call in calls]

    def disturbed(self, fault: Fault, phase_s: float) -> Run:
        """Run from the beginning with one fault; a late call takes half as long again as a phase may, ``phase_s``. Raises Hung."""
        self._rewind()
        kind = fault.kind
        if fault.call.symbol != RESET:
            self.emulator.add_fault(nth=fault.number, times=0 if kind.lasting else 1, code=kind.code or None, kill=kind.kill,
                                    delay=1.5 * phase_s if kind.late else None, when="after" if fault.when == "after" else "before")
        try:
            return self._run(Order(fault, phase_s if kind.late else _UNDISTURBED.phase_s))
        finally:
            self.emulator.clear_faults()

    def free(self) -> None:
        """Let all processes end that use the GPUs."""
        self.emulator.remove_client(None)

    def again(self) -> Run:
        """Run without a fault, from where the run before left the machine and the state folder. Raises Hung."""
        return self._run(_UNDISTURBED)

    def journal_bytes(self) -> bytes | None:
        """Return the journal as it is on disk."""
        path = self._state_dir / "mig-journal.json"
        return path.read_bytes() if path.exists() else None

    def _rewind(self) -> None:
        self.emulator.restore(self._snapshot)
        shutil.rmtree(self._state_dir, ignore_errors=True)

    def _run(self, order: Order, calls: list[dict[str, Any]] | None = None) -> Run:
        """Run, and note in ``calls`` what was logged."""
        calls = [] if calls is None else calls
        self._log.write_bytes(b"")
        outcome = self._runner.run(order)
        calls += [json.loads(line) for line in self._log.read_bytes().splitlines()]
        place = next((number for number, call in enumerate(calls) if "fault" in call), len(calls))
        written = self.journal_bytes()
        return Run(
            outcome, self.emulator.show(), None if written is None else json.loads(written), tuple(call for call in calls if call["mutating"]),
            hit=order.fault is None or order.fault.call.symbol == RESET or any(fault["hits"] for fault in self.emulator.faults()),
            changes_after_hit=sum(call["mutating"] for call in calls[place + 1:]),
        )
