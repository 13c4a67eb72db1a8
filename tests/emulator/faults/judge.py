# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Judges what a disturbed run left behind, by rules that do not come from the engine.

The machine is as before, as wanted, or exactly what the journal says; what is to stay is untouched; the failure is a sentence; and the next run gets there with
the fewest instances destroyed, and the one after it does nothing.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from tests.emulator.faults.kinds import Fault
from tests.emulator.faults.lab import Lab, Run
from tests.emulator.faults.state import Inconsistent, NodeState, Place, identities, possible_states, read_state

_DESTROYING = ("nvmlGpuInstanceDestroy", "nvmlComputeInstanceDestroy")


class Judge:
    """The rules for one transition, from an undisturbed run of it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._old = read_state(lab.before)
        run, self.calls = lab.undisturbed()
        wanted = lab.undisturbed(freed=True)[0] if lab.transition.obstructed else run
        self.new = read_state(wanted.shown)
        self._kept = identities(lab.before) & identities(wanted.shown)
        self._in_use = in_use(lab.before)
        self._destroyed = _destruction(wanted)
        self._offers = {model["model"]: model["profiles"] for model in lab.emulator.models()}
        self._seen: dict[str, list[str]] = {}
        self.reruns = 0
        self.undisturbed_faults = list(self._undisturbed(run, wanted))

    def _undisturbed(self, run: Run, wanted: Run) -> Iterator[str]:
        """Yield what is wrong with the engine where nothing disturbs it."""
        if not wanted.succeeded or run.succeeded == self._lab.transition.obstructed:
            yield f"without a fault it ends with {run.outcome}, and without clients with {wanted.outcome}"
            return
        for ended in (run, wanted):
            yield from self._journal(ended, None)
        yield from self._harm(run)
        yield from self._needless(self._old, wanted)
        yield from self._nothing_more(self._lab.journal_bytes())

    def judge(self, fault: Fault, run: Run) -> list[str]:
        """Return what is wrong after a disturbed run, as sentences; also with the runs that follow it. The machine is left behind."""
        wrong = [*self._outcome(fault, run), *self._journal(run, fault), *self._harm(run)]
        # An instance whose processes are hidden may be meant to go; that it stays is NVML's doing then.
        more = _destruction(run) - self._destroyed
        if more and not fault.hides:
            wrong.append(f"it went to destroy what the undisturbed run leaves: {sorted(map(str, more))}")
        # What follows depends on nothing else than the machine and the journal.
        left = json.dumps([run.shown, _without_times(run.journal)], sort_keys=True)
        if left not in self._seen:
            self._seen[left] = list(self._next_run(run))
        return wrong + self._seen[left]

    # -- the run itself ----------------------------------------------------------------------------------------------------------------------------

    def _outcome(self, fault: Fault, run: Run) -> Iterator[str]:
        # Nothing watches over the first call, which opens NVML.
        if fault.kind.late and run.hit and fault.number > 1 and run.changes_after_hit:
            yield "a call took too long, and it went on changing"
        if run.outcome is None:
            if not fault.kind.kill:
                yield "it was killed, by nobody"
            return
        if run.outcome.get("crash"):
            yield f"it ended with a traceback: {run.outcome['crash']}"
        elif run.succeeded:
            yield from self._success(fault, run)
        else:
            yield from self._failure(fault, run, run.outcome["error"])

    def _success(self, fault: Fault, run: Run) -> Iterator[str]:
        now = read_state(run.shown)
        # A GPU that says it has no MIG is passed over where all GPUs are meant.
        if now != self.new and not (fault.hides and now == self._old):
            yield f"it claims success with {describe(now)}"

    def _failure(self, fault: Fault, run: Run, error: Mapping[str, Any]) -> Iterator[str]:
        now = read_state(run.shown)
        said = error["msg"]
        if not error["reason"] or not said.endswith(f"[{error['reason']}]") or "\n" in said or "Traceback" in said:
            yield f"its failure is not a sentence with a reason: {error}"
        if error["reason"] == "PhaseTimeout" or fault.kind.lasting or fault.hides:  # it knows only the journal, or not even that
            return
        if run.outcome["result"].get("changed", False) != (now != self._old):
            yield f"it says changed={run.outcome['result'].get('changed')}, the machine went from {describe(self._old)} to {describe(now)}"
        for uuid, left in (error["left"] or {}).items():
            if left != ("before" if now[uuid] == self._old[uuid] else "wanted" if now[uuid] == self.new[uuid] else "between"):
                yield f"it says that a GPU is {left}, and that is {now[uuid].describe()}: {said}"
        if not self._lab.transition.obstructed:
            yield from self._not_taken_back(run, now)

    def _not_taken_back(self, run: Run, now: NodeState) -> Iterator[str]:
        """Yield the GPUs that one failure left half done although nothing new was there that going back would destroy."""
        for gpu in self._lab.before["gpus"]:
            uuid = gpu["uuid"]
            steps = [step for step in (run.journal or {"steps": []})["steps"] if step["parent_uuid"] == uuid]
            stuck = any(step["action"].startswith("create") and step["state"] == "done" for step in steps)
            # The mode of Ampere goes back only by another reset.
            stuck |= gpu["model"].startswith("a") and any(step["action"] == "set_mode" and step["state"] != "planned" for step in steps)
            if not stuck and now[uuid] not in (self._old[uuid], self.new[uuid]):
                yield f"it leaves {now[uuid].describe()} and could have gone back to {self._old[uuid].describe()}"

    def _journal(self, run: Run, fault: Fault | None) -> Iterator[str]:
        now = read_state(run.shown)
        if run.journal is None:
            if now != self._old or run.changes:
                yield f"there is no journal, and the machine is {describe(now)} after {[call['symbol'] for call in run.changes]}"
            return
        steps = run.journal["steps"]
        in_doubt = [step["text"] for step in steps if step["state"] in ("doing", "undoing")]
        if len(in_doubt) > 1 or (in_doubt and (fault is None or not (fault.kind.kill or fault.kind.late or fault.kind.lasting))):
            yield f"in doubt by the journal: {in_doubt}"
        try:
            allowed = possible_states(self._old, steps)
        except Inconsistent as error:
            yield f"the journal cannot have happened: {error}"
            return
        if now not in allowed:
            yield f"the machine is {describe(now)}, the journal says {' or '.join(describe(state) for state in allowed)}"
        if run.outcome is not None and run.journal["status"] == "running" and not (fault and fault.kind.late):
            yield "the run ended and its journal says that it goes on"

    def _harm(self, run: Run) -> Iterator[str]:
        gone = (self._kept | self._in_use) - identities(run.shown)
        if gone:
            yield f"what was to stay is gone or was made anew: {sorted(map(str, gone))}"

    # -- the runs after it -------------------------------------------------------------------------------------------------------------------------

    def _next_run(self, run: Run) -> Iterator[str]:
        start = read_state(run.shown)
        if self._lab.transition.obstructed:
            self._lab.free()
        again = self._lab.again()
        self.reruns += 1
        now = read_state(again.shown)
        if not again.succeeded:
            yield f"the next run fails: {again.outcome}"
            return
        unfinished = run.journal is not None and run.journal["status"] in ("running", "failed")
        if unfinished != (again.outcome["result"]["resumed"] is not None):
            yield f"the next run says resumed={again.outcome['result']['resumed']} after a journal that is {run.journal and run.journal['status']}"
        if multisets(now) != multisets(self.new):
            yield f"the next run ends with {describe(now)}"
        if again.journal is not None and again.journal["status"] != "finished":
            yield f"the next run leaves a journal that is {again.journal['status']}"
        yield from self._needless(start, again)
        gone = self._kept - identities(again.shown)
        if gone:
            yield f"the next run takes what was to stay: {sorted(map(str, gone))}"
        yield from self._nothing_more(self._lab.journal_bytes())

    def _nothing_more(self, journal: bytes | None) -> Iterator[str]:
        last = self._lab.again()
        if not last.succeeded or last.changes or (last.outcome or {})["result"]["changed"] or self._lab.journal_bytes() != journal:
            yield f"a run that has nothing to do does something: {last.outcome}, {[call['symbol'] for call in last.changes]}"

    def _needless(self, start: NodeState, run: Run) -> Iterator[str]:
        """Yield when a run from ``start`` to the layout has destroyed more GPU instances than the layout makes necessary."""
        end = read_state(run.shown)
        needless = len([item for item in _destruction(run) if len(item) == 2]) - self._fewest_destroyed(start, end)
        if needless > 0:
            yield f"it destroys {needless} GPU instances more than it has to, from {describe(start)} to {describe(end)}"

    def _fewest_destroyed(self, start: NodeState, end: NodeState) -> int:
        """Return the number of GPU instances that have to go between two states, where those of ``end`` may lie anywhere they fit."""
        count = 0
        for gpu in self._lab.before["gpus"]:
            profiles = {profile["id"]: (profile["size"], tuple(profile["starts"])) for profile in self._offers[gpu["model"]]}
            there = frozenset(place for place, _inside in start[gpu["uuid"]].instances)
            wanted = sorted(place for place, _inside in end[gpu["uuid"]].instances)
            asked = tuple((number, profiles[number][0], (start,) if self._lab.transition.pinned else profiles[number][1]) for number, start in wanted)
            count += len(there) - _most_kept(asked, there)
        return count


@lru_cache(maxsize=4096)
def _most_kept(wanted: tuple[tuple[int, int, tuple[int, ...]], ...], there: frozenset[Place], used: int = 0) -> int:
    """Return how many instances ``there`` can stay when the ``wanted`` ones, (profile id, size, starts), are placed side by side; negative if none fits."""
    if not wanted:
        return 0
    (profile_id, size, starts), rest = wanted[0], wanted[1:]
    best = -1000
    for start in starts:
        slots = ((1 << size) - 1) << start
        if not used & slots:
            best = max(best, ((profile_id, start) in there) + _most_kept(rest, there, used | slots))
    return best


def in_use(shown: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """Return the :func:`identities` of the GPU instances and compute instances with a client."""
    busy = {(gpu["uuid"], client["gpu_instance"], client["compute_instance"]) for gpu in shown["gpus"] for client in gpu["clients"]}
    found = identities(shown)
    return {item for item in found for gpu, instance, compute in busy if item[:2] == (gpu, instance) and item[4:5] in ((), (compute,))}


def _destruction(run: Run) -> set[tuple[Any, ...]]:
    """Return what a run tried to destroy: (GPU, GPU instance id[, compute instance id])."""
    return {(call["gpu"], *call["args"].values()) for call in run.changes if call["symbol"] in _DESTROYING and call["args"]}


def multisets(state: NodeState) -> dict[str, Any]:
    """Return what is there regardless of the places: mode, and GPU instances with the slices of their compute instances."""
    return {
        uuid: (gpu.current, gpu.pending, sorted((profile_id, sorted(slices for slices, _at in inside)) for (profile_id, _start), inside in gpu.instances))
        for uuid, gpu in state.items()
    }


def describe(state: NodeState) -> str:
    """Return a state as text for messages."""
    return "; ".join(gpu.describe() for gpu in state.values())


def _without_times(journal: dict[str, Any] | None) -> Any:
    return journal and {"status": journal["status"], "steps": [(step["text"], step["state"]) for step in journal["steps"]]}
