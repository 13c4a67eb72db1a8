# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Disturbs every transition: at every call, by every kind of fault, or by a sample of that in which every function meets every kind.

``python -m tests.emulator.faults.campaign`` prints what it did as JSON, and on stderr how far it has come. It needs the emulator's library as the one that the
loader finds.
"""
from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.emulator.faults.judge import Judge
from tests.emulator.faults.kinds import KINDS, RESET, Call, Fault, Kind
from tests.emulator.faults.lab import Lab
from tests.emulator.faults.runner import Hung
from tests.emulator.faults.transitions import TRANSITIONS, Transition

# How long a phase may take when a call in it is late: long enough for the other calls on a busy machine. Longer ones follow when it was not.
_PHASES_S = (0.15, 0.6, 2.4)


class Report(NamedTuple):
    """What was done to one transition, and what was wrong."""

    transition: str
    calls: int
    runs: int
    reruns: int
    met: Counter[tuple[str, str, str]]
    missed: list[str]
    violations: list[dict[str, str]]


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; the exit status is 1 when anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, help="how many disturbed runs to draw; all without it")
    parser.add_argument("--seed", type=int, help="of the sample; a random one without it")
    parser.add_argument("--only", default="", help="transitions whose name contains this")
    parser.add_argument("--kind", action="append", choices=[kind.name for kind in KINDS], help="only faults of this kind; may be given again")
    parser.add_argument("--workers", type=int, default=1, help="transitions that are disturbed at the same time")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    begin = time.monotonic()
    chosen = [transition for transition in TRANSITIONS if options.only in transition.name]
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="mig-faults-", dir=memory if os.access(memory, os.W_OK) else None))
    try:
        reports = _disturb_all(chosen, [kind for kind in KINDS if not options.kind or kind.name in options.kind], folder, options.runs, seed, options.workers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures = _figures(reports)
    json.dump({"seed": seed, "seconds": round(time.monotonic() - begin, 1), **figures}, sys.stdout, indent=1)
    return 1 if figures["violations"] or figures["missed"] else 0


def _disturb_all(transitions: list[Transition], kinds: list[Kind], folder: Path, runs: int | None, seed: int, workers: int) -> list[Report]:
    gc.collect()
    gc.freeze()  # what is here already is never freed in the forked children
    numbers = [TRANSITIONS.index(transition) for transition in transitions]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        calls = pool.map(_calls_of, numbers, [folder / f"look{number}" for number in numbers])
        candidates = [list(_candidates(found, kinds)) for found in calls]
        if runs is not None:
            candidates = _sample(candidates, runs, random.Random(seed))
        jobs = sorted(zip(numbers, candidates, strict=True), key=lambda job: -len(job[1]))
        return list(pool.map(_disturb, *zip(*((number, folder / str(number), faults) for number, faults in jobs), strict=True)))


def _calls_of(number: int, folder: Path) -> list[Call]:
    with closing(Lab(TRANSITIONS[number], folder)) as lab:
        _run, calls = lab.undisturbed()
    return calls + [Call(RESET, True)] * TRANSITIONS[number].after_reset


def _candidates(calls: Iterable[Call], kinds: list[Kind]) -> Iterator[Fault]:
    """Yield every fault of these kinds at every call.

    A call that changes nothing leaves the same behind whether it fails before or after it did so; after it, it fails only in the sample.
    """
    for number, call in enumerate(calls, start=1):
        for kind in kinds:
            yield Fault(number, call, kind, "before")
            if call.mutating:
                yield Fault(number, call, kind, "after")


def _sample(candidates: list[list[Fault]], runs: int, draw: random.Random) -> list[list[Fault]]:
    """Return a sample of about ``runs`` faults.

    Death after every change, where the journal counts most; every function with every kind and moment; of the rest as many for each transition, one half at
    calls that change something.
    """
    chosen = [{fault for fault in faults if fault.kind.kill and fault.call.mutating and fault.when == "after"} for faults in candidates]
    strata: dict[tuple[str, str, str], list[tuple[int, Fault]]] = {}
    for number, faults in enumerate(candidates):
        for fault in faults:
            for when in ("before", "after"):
                strata.setdefault((fault.call.symbol, fault.kind.name, when), []).append((number, fault))
    for (_symbol, _kind, when), members in strata.items():
        number, fault = draw.choice(members)
        chosen[number].add(Fault(fault.number, fault.call, fault.kind, when))
    share = max(0, runs - sum(map(len, chosen))) // (2 * len(candidates))
    for number, faults in enumerate(candidates):
        for group in ([fault for fault in faults if fault.call.mutating], [fault for fault in faults if not fault.call.mutating]):
            chosen[number].update(draw.sample(group, min(share, len(group))))
    return [sorted(faults, key=lambda fault: (fault.number, fault.kind.name, fault.when)) for faults in chosen]


def _disturb(number: int, folder: Path, faults: list[Fault]) -> Report:
    """Disturb one transition by each of ``faults``."""
    transition = TRANSITIONS[number]
    with closing(Lab(transition, folder)) as lab:
        judge = Judge(lab)
        violations = [_violation(transition, "none", wrong) for wrong in judge.undisturbed_faults]
        runs, met, missed = 0, Counter[tuple[str, str, str]](), []
        for fault in faults:
            for phase_s in _PHASES_S if fault.kind.late else _PHASES_S[:1]:
                wrong, hit = _try(lab, judge, fault, phase_s)
                runs += 1
                violations += [_violation(transition, str(fault), text) for text in wrong]
                if hit:
                    met[fault.call.symbol, fault.kind.name, fault.when] += 1
                    break
            else:
                missed.append(f"{transition.name}: {fault}")
    shutil.rmtree(folder)
    print(f"{transition.name}: {runs} runs, {len(violations)} violations, {len(missed)} missed", file=sys.stderr)
    return Report(transition.name, len(judge.calls), runs, judge.reruns, met, missed, violations)


def _try(lab: Lab, judge: Judge, fault: Fault, phase_s: float) -> tuple[list[str], bool]:
    """Return what is wrong after one disturbed run, and whether the fault came."""
    try:
        run = lab.disturbed(fault, phase_s)
        return judge.judge(fault, run), run.hit
    except Hung:
        return ["the run, or one after it, does not end"], True


def _violation(transition: Transition, fault: str, wrong: str) -> dict[str, str]:
    return {"transition": transition.name, "fault": fault, "wrong": wrong}


def _figures(reports: list[Report]) -> dict[str, Any]:
    met: Counter[tuple[str, str, str]] = sum((report.met for report in reports), Counter())
    return {
        "transitions": len(reports),
        "calls": sum(report.calls for report in reports),
        "runs": sum(report.runs for report in reports),
        "runs_after": sum(report.reruns for report in reports),
        "functions": len({symbol for symbol, _kind, _when in met}),
        "combinations": len(met),
        "by_kind": dict(sorted(sum((Counter({kind: count}) for (_symbol, kind, _when), count in met.items()), Counter()).items())),
        "missed": [text for report in reports for text in report.missed],
        "violations": [violation for report in reports for violation in report.violations],
    }


if __name__ == "__main__":
    sys.exit(main())
