# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a change of the MIG layout destroys, and how long it takes to plan it: ours, clear-and-rebuild, and the optimum by brute force (see README.md).

Ends with status 1 when a plan does not lead to its layout or costs more than the optimum.
"""
from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / ".build" / "collections")]

from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.offline import carried_out, offline_gpu
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.catalogue import Gpu
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.gpu_plan import GpuPlan, plan_gpu
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.layout import ENABLED, parse_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.plan import make_plan
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.resolve import Target, Wanted
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.steps import Step

from tests.bench.brute_force import TABLES, Loss, Placement, change, layouts, optimum, rebuild, rows_of

Names = tuple[str, ...]
SEED = 4
PLAIN_ONLY = ("h100-80gb-hbm3",)  # with 1g+me there are 292,000 transitions from every placement; --all takes them too


class Transition(NamedTuple):
    """From a placement of one layout to another layout. ``weight`` is one over the number of placements that the first layout has."""

    source: Names
    now: Placement
    wanted: Names
    weight: float


@dataclass
class Tally:
    """Sums over transitions; each is a pair (instances destroyed, mutating calls)."""

    transitions: int = 0
    ours: list[float] = field(default_factory=lambda: [0.0, 0.0])
    optimum: list[float] = field(default_factory=lambda: [0.0, 0.0])
    rebuilt: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def add(self, ours: Loss, best: Loss, rebuilt: Loss, weight: float) -> None:
        """Count one transition."""
        self.transitions += 1
        for sums, loss in ((self.ours, ours), (self.optimum, best), (self.rebuilt, rebuilt)):
            for place, value in enumerate(loss):
                sums[place] += weight * value


class Model:
    """The layouts of one GPU model, and its GPU as the planner sees it in each placement."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.empty = offline_gpu(key)
        self.layouts = layouts(rows_of(key))
        self._profiles = {profile.name: profile for profile in self.empty.profiles}
        self._gpus: dict[Placement, Gpu] = {}
        self._targets = {names: Target("bench", ENABLED, tuple(Wanted(self._profiles[name]) for name in names)) for names in self.layouts}
        self.own = {names: standing_after(plan_gpu(self.empty, target)) for names, target in self._targets.items()}

    def gpu_with(self, placement: Placement) -> Gpu:
        """Return the GPU with instances at these places, one full compute instance in each."""
        if placement not in self._gpus:
            wanted = tuple(Wanted(self._profiles[name], start) for name, start in sorted(placement))
            self._gpus[placement] = carried_out(plan_gpu(self.empty, Target("bench", ENABLED, wanted)))
        return self._gpus[placement]

    def plan(self, transition: Transition) -> tuple[GpuPlan, list[Step]]:
        """Return our plan and its steps."""
        plan = plan_gpu(self.gpu_with(transition.now), self._targets[transition.wanted])
        return plan, plan.steps

    def transitions(self, own: bool, plain_only: bool, sample: int | None) -> list[Transition]:
        """Return all ordered pairs of different layouts, from our own placement of the first or from every placement, or a sample of them."""
        named = [names for names in self.layouts if names and (not plain_only or is_plain(names))]
        found = [
            Transition(source, now, wanted, 1.0 if own else 1 / len(self.layouts[source]))
            for source in named for now in ([self.own[source]] if own else self.layouts[source]) for wanted in named if source != wanted
        ]
        return found if sample is None or sample >= len(found) else random.Random(SEED).sample(found, sample)


def standing_after(plan: GpuPlan) -> Placement:
    """Return where instances stand after ``plan``."""
    return frozenset((item.profile, item.start) for item in plan.outcome)


def is_plain(names: Names) -> bool:
    """Return whether a layout has no profile with a suffix (+me, +gfx, +me.all, -me)."""
    return all(name.endswith("gb") for name in names)


def compare(model: Model, found: Sequence[Transition], wrong: list[str]) -> tuple[dict[str, Tally], list[float]]:
    """Plan every transition; returns the sums over all layouts and over plain ones, and the CPU seconds of each plan. Adds to ``wrong`` what is not optimal."""
    tallies = {"all profiles": Tally(), "plain profiles": Tally()}
    seconds = []
    for transition in found:
        model.gpu_with(transition.now)
        begin = time.process_time()
        plan, steps = model.plan(transition)
        seconds.append(time.process_time() - begin)
        after = standing_after(plan)
        ours, best = Loss(len(plan.destroyed), len(steps)), optimum(transition.now, model.layouts[transition.wanted])
        rebuilt = rebuild(transition.now, after)
        if after not in model.layouts[transition.wanted] or change(transition.now, after) != ours or ours != best:
            wrong.append(f"{model.key}: {sorted(transition.now)} -> {', '.join(transition.wanted)}: ours {tuple(ours)}, the optimum is {tuple(best)}")
        tallies["all profiles"].add(ours, best, rebuilt, transition.weight)
        if is_plain(transition.source) and is_plain(transition.wanted):
            tallies["plain profiles"].add(ours, best, rebuilt, transition.weight)
    if tallies["plain profiles"].transitions == len(found):
        del tallies["all profiles"]
    return tallies, seconds


def seconds_of(call: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median CPU time of a call."""
    taken = []
    for _number in range(repeats):
        begin = time.process_time()
        call()
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


def reference_seconds() -> float:
    """Return how long this machine takes to sort 10,000 shuffled integers: what planning times are compared with."""
    numbers = random.Random(SEED).sample(range(10_000), 10_000)
    return seconds_of(lambda: sorted(numbers), 51)


def table(tallies: dict[str, Tally]) -> Iterator[str]:
    """Yield the lines for one kind of start."""
    yield f"    {'':16}{'':24}{'ours':>12}{'optimum':>12}{'rebuild':>12}{'ours/rebuild':>14}"
    for title, tally in tallies.items():
        for place, what in enumerate(("instances destroyed", "mutating NVML calls")):
            ours, best, rebuilt = tally.ours[place], tally.optimum[place], tally.rebuilt[place]
            ratio = f"{ours / rebuilt:.3f}" if rebuilt else "-"
            yield f"    {title if place == 0 else '':16}{what:24}{ours:12,.0f}{best:12,.0f}{rebuilt:12,.0f}{ratio:>14}"
        yield f"    {'':16}{tally.transitions:,} plans"


def planning_time(seconds: Sequence[float], reference: float) -> str:
    """Return how long planning one GPU takes."""
    median, worst = statistics.median(seconds), max(seconds)
    return f"    a GPU: median {median * 1e3:.2f} ms ({median / reference:.1f} x the reference), worst {worst * 1e3:.1f} ms ({worst / reference:.1f} x)"


def growth(model: Model, samples: int) -> str:
    """Return how the time of a whole node's plan grows with its GPUs; each GPU starts from another placement, all go to one layout."""
    draw = random.Random(SEED)
    starts = [placement for found in model.layouts.values() for placement in found]
    wanted = [draw.choice([names for names in model.layouts if names]) for _number in range(samples)]
    means = []
    for count in (1, 8, 16):
        taken = 0.0
        for names in wanted:
            gpus = [model.gpu_with(draw.choice(starts)) for _number in range(count)]
            layout = parse_layouts([{"match": "all", "instances": {name: names.count(name) for name in names}}])
            taken += seconds_of(lambda g=gpus, w=layout: make_plan(g, w, "keep"), 3)  # type: ignore[misc]
        means.append((count, taken / samples))
    return "    a node: " + ", ".join(f"{count} GPU{'s' if count > 1 else ''} {mean * 1e3:.1f} ms ({mean / means[0][1]:.1f} x)" for count, mean in means)


def heading(model: Model) -> str:
    """Return what is compared on this model."""
    named = [names for names in model.layouts if names]
    plain, placed = sum(map(is_plain, named)), sum(len(model.layouts[names]) for names in named)
    return f"{model.empty.product} ({model.key}): {len(named)} layouts, {plain} of them of plain profiles, in {placed} placements"


def run(keys: Sequence[str], sample: int | None, everything: bool, say: Callable[[str], None]) -> list[str]:
    """Compare and time all models; returns what was wrong."""
    wrong: list[str] = []
    reference = reference_seconds()
    say(f"reference: sorting 10,000 shuffled integers takes {reference * 1e3:.2f} ms here")
    for key in keys:
        model = Model(key)
        seconds: list[float] = []
        say(f"\n{heading(model)}")
        for own, title in ((True, "from where our planner puts the first layout"), (False, "from every placement of the first layout, mean")):
            found = model.transitions(own, not own and not everything and key in PLAIN_ONLY, sample)
            tallies, taken = compare(model, found, wrong)
            seconds += taken
            for line in (f"  {title}", *table(tallies)):
                say(line)
        for line in ("  planning, CPU time", planning_time(seconds, reference), growth(model, 3 if sample else 50)):
            say(line)
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=sorted(TABLES), help="only this model; may be given again")
    parser.add_argument("--sample", type=int, metavar="N", help="only N transitions of each kind, drawn with a fixed seed")
    parser.add_argument("--all", action="store_true", help=f"from every placement with all profiles also on {', '.join(PLAIN_ONLY)}, which takes minutes more")
    options = parser.parse_args(arguments)
    wrong = run(options.model or list(TABLES), options.sample, options.all, print)
    if wrong:
        print(f"\n{len(wrong)} plans are wrong or not optimal, for example\n{wrong[0]}")
        return 1
    print("\nevery plan leads to its layout and equals the optimum")
    return 0


if __name__ == "__main__":
    sys.exit(main())
