# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gives random layout files to the engine on an emulated machine, and judges what it did.

``python -m tests.emulator.faults.fuzzed_runs DIRECTORY REFUSED APPLIED`` prints the reasons with their counts, and what was wrong, as JSON. It needs the
emulator's library as the one that the loader finds.
"""
from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.converge.run import Policy, apply_layout
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.parted import layout_from_options
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.session import NvmlSession
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError

from sandbox.nvml.control.library import Emulator
from tests.unit.mig.layout_fuzzer import LayoutFuzzer

SEED = 4
APPLIED = "applied"
_MODELS = ["h100-80gb-hbm3", "h100-80gb-hbm3", "rtx-pro-6000-server", "a100-80gb-pcie"]
_FILES = 5_000


class Fuzzed:
    """A machine with some instances, to which layouts are given one after the other, each from the same state."""

    def __init__(self, folder: Path) -> None:
        (folder / "machine").mkdir(parents=True)
        self._log = folder / "machine" / "calls.jsonl"
        self._state_dir = str(folder / "state")
        self._emulator = Emulator(str(folder / "machine"))
        self._emulator.create("fuzz", _MODELS, None)
        for gpu, instances in ((0, [("3g.40gb", 4), ("1g.10gb", 0)]), (2, [("2g.48gb", 0)])):
            self._emulator.set_mode(gpu, True)
            self._emulator.repartition(gpu, instances)
        self._snapshot = self._emulator.save()
        self._before = self._emulator.show()

    def give(self, options: dict[str, Any]) -> tuple[str, list[str]]:
        """Apply a layout; return the reason of its refusal (or APPLIED), and what was wrong about it."""
        self._emulator.restore(self._snapshot)
        reason, calls = self._apply(options)
        if reason != APPLIED:
            return reason, [f"{reason}, and it called {calls}"] * bool(calls) + [f"{reason}, and the machine changed"] * (self._emulator.show() != self._before)
        after = self._emulator.show()
        again, calls = self._apply(options)
        return reason, [f"a second run: {again}, it called {calls}"] * (again != APPLIED or bool(calls) or self._emulator.show() != after)

    def _apply(self, options: dict[str, Any]) -> tuple[str, list[str]]:
        """Return the reason code or APPLIED, and the calls that change something."""
        self._log.write_bytes(b"")
        reason = APPLIED
        try:
            layout = layout_from_options(options)
            with NvmlSession() as session:
                apply_layout(session, layout, Policy(unlisted=options["unlisted"], state_dir=self._state_dir), {})
        except FleetError as error:
            reason = error.finding.code
        return reason, [json.loads(line)["symbol"] for line in self._log.read_bytes().splitlines()]


def main(folder: str, refused: str, applied: str) -> None:
    """Give the first so many files that are refused, and that are not."""
    machine = Fuzzed(Path(folder))
    left = {True: int(applied), False: int(refused)}
    reasons: Counter[str] = Counter()
    violations = []
    for options in LayoutFuzzer(SEED).options(_FILES):
        if not any(left.values()):
            break
        reason, wrong = machine.give(options)
        if left[reason == APPLIED]:
            left[reason == APPLIED] -= 1
            reasons[reason] += 1
            violations += wrong
    json.dump({"reasons": reasons, "violations": violations}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
