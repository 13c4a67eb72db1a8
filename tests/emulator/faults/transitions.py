# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The changes that are disturbed: machines as they are, and the layouts that they are to get."""
from __future__ import annotations

from typing import Any, NamedTuple

OFF = "off"

H100, A100, RTX, H200, A30 = "h100-80gb-hbm3", "a100-80gb-pcie", "rtx-pro-6000-server", "h200-nvl", "a30"


class Transition(NamedTuple):
    """One change of one machine.

    ``gpus`` are (model, content): ``off``, or GPU instances such as ``3g.40gb@4 1g.10gb@0:- 4g.40gb@0:2c@0+1c@2`` (profile@start, one compute instance over
    all of it; ``:-`` none; otherwise slices@start of each). ``*`` after an instance: a process uses it, which NVML lists. ``!``: one that NVML does not list,
    so that the change fails when it comes to it, and succeeds when it is gone. ``layouts`` is the option of that name. ``after_reset``: SetMigMode leaves the
    mode pending, and the engine may reset the GPU.
    """

    name: str
    gpus: tuple[tuple[str, str], ...]
    layouts: list[dict[str, Any]]
    after_reset: bool = False

    @property
    def obstructed(self) -> bool:
        """Whether the change has to fail while there are clients."""
        return any("!" in content for _model, content in self.gpus)

    @property
    def pinned(self) -> bool:
        """Whether the layout says where every instance has to be."""
        lists = [rule["instances"] for rule in self.layouts if isinstance(rule.get("instances"), list)]
        return any("start" in item for items in lists for item in items)


def _all(instances: Any) -> list[dict[str, Any]]:
    return [{"match": "all", "instances": instances}]


def _each(*instances: Any) -> list[dict[str, Any]]:
    return [{"match": {"index": number}, "instances": wanted} for number, wanted in enumerate(instances)]


_MODE_OFF = [{"match": "all", "mode": "disabled"}]
_FROM_NOTHING = [
    Transition("h100 on", ((H100, OFF),), _all({})),
    Transition("h100 off to balanced", ((H100, OFF),), _all("balanced")),
    Transition("h100 empty to seven", ((H100, ""),), _all("all-1g")),
    Transition("h100 empty to whole", ((H100, ""),), _all("whole")),
    Transition("h100 off to divided", ((H100, OFF),), _all({"1c.3g.40gb": 3})),
    Transition("rtx off to mixed", ((RTX, OFF),), _all({"2g.48gb": 1, "1g.24gb+me": 1, "1g.24gb": 1})),
    Transition("rtx empty to one with all media", ((RTX, ""),), _all({"1g.24gb+me.all": 1, "1g.24gb-me": 2})),
    Transition("a100 off to seven", ((A100, OFF),), _all("all-1g")),
    Transition("a100 off to two halves, with a reset", ((A100, OFF),), _all({"3g.40gb": 2}), after_reset=True),
    Transition("h200 off to four doubles", ((H200, OFF),), _all({"1g.35gb": 4})),
]
_TO_NOTHING = [
    Transition("h100 halves to none", ((H100, "3g.40gb@0 3g.40gb@4"),), _all({})),
    Transition("h100 mixed to off", ((H100, "3g.40gb@4 2g.20gb@0 1g.10gb@2"),), _MODE_OFF),
    Transition("h100 empty to off", ((H100, ""),), _MODE_OFF),
    Transition("a100 halves to off", ((A100, "3g.40gb@0 3g.40gb@4"),), _MODE_OFF),
    Transition("a100 mixed to off, with a reset", ((A100, "4g.40gb@0 1g.20gb@6"),), _MODE_OFF, after_reset=True),
    Transition("rtx quarters to off", ((RTX, "1g.24gb@3 1g.24gb-me@9"),), _MODE_OFF),
    Transition("h100 divided to off", ((H100, "4g.40gb@0:2c@0+1c@2 3g.40gb@4:-"),), _MODE_OFF),
]
_SHRINK_AND_GROW = [
    Transition("h100 whole to small", ((H100, "7g.80gb@0"),), _all({"1g.20gb": 1, "1g.10gb": 2})),
    Transition("h100 small to whole", ((H100, "1g.10gb@1 1g.10gb+me@4 1g.20gb@6"),), _all("whole")),
    Transition("h100 half to three quarters", ((H100, "3g.40gb@0"),), _all({"3g.40gb": 1, "2g.20gb": 1})),
    Transition("h100 three small to one", ((H100, "1g.10gb@1 1g.10gb@3 1g.10gb@6"),), _all({"1g.10gb": 1})),
    Transition("rtx whole to halves", ((RTX, "4g.96gb@0"),), _all({"2g.48gb": 2})),
    Transition("rtx quarters to a half more", ((RTX, "1g.24gb@3 1g.24gb@9"),), _all({"1g.24gb": 2, "2g.48gb": 1})),
    Transition("a100 two small to four", ((A100, "1g.10gb@2 1g.10gb@5"),), _all({"1g.10gb": 4})),
    Transition("a100 doubles to halves", ((A100, "1g.20gb@0 1g.20gb@2 1g.20gb@4 1g.20gb@6"),), _all({"3g.40gb": 1, "1g.20gb": 2})),
]
_RESHAPE = [
    Transition("h100 four and three to balanced", ((H100, "4g.40gb@0 3g.40gb@4"),), _all("balanced")),
    Transition("h100 small ones in the way of a half", ((H100, "1g.10gb@0 1g.10gb@5"),), _all({"3g.40gb": 1, "1g.10gb": 1})),
    Transition("h100 media extension moves", ((H100, "1g.10gb+me@3 2g.20gb@0"),), _all({"1g.10gb+me": 1, "3g.40gb": 1, "2g.20gb": 1})),
    Transition("h100 fixed places", ((H100, "2g.20gb@2 1g.10gb@0"),),
               _all([{"profile": "2g.20gb", "start": 4}, {"profile": "1g.10gb", "start": 6}])),
    Transition("rtx plain to without media", ((RTX, "1g.24gb@0 2g.48gb@6"),), _all({"1g.24gb-me": 2, "2g.48gb": 1})),
    Transition("a100 two quarters to balanced", ((A100, "2g.20gb@2 2g.20gb@4"),), _all("balanced")),
    Transition("h200 other models' names", ((H200, "3g.71gb@0 1g.18gb@5"),), _all({"3g": 1, "2g": 1, "1g": 2})),
]
_INSIDE = [
    Transition("h100 orphan completed", ((H100, "3g.40gb@0:- 3g.40gb@4"),), _all({"3g.40gb": 2})),
    Transition("h100 orphan in the way", ((H100, "2g.20gb@2:- 1g.10gb@5"),), _all({"4g.40gb": 1, "1g.10gb": 1})),
    Transition("h100 divided to whole in place", ((H100, "3g.40gb@4:1c@0+1c@2 1g.10gb@1"),), _all({"3g.40gb": 1, "1g.10gb": 1})),
    Transition("h100 whole to divided in place", ((H100, "4g.40gb@0 1g.10gb@6"),),
               _all([{"profile": "4g.40gb", "compute_instances": [2, 1, 1]}, "1g.10gb"])),
    Transition("h100 one part more", ((H100, "3g.40gb@4:1c@1"),), _all({"1c.3g.40gb": 3})),
    Transition("h100 parts by name", ((H100, "4g.40gb@0:2c@2"),), _all({"2c.4g.40gb": 2, "1g.10gb": 1})),
    Transition("a100 divided goes", ((A100, "4g.40gb@0:1c@0+1c@3 2g.20gb@4"),), _all({"3g.40gb": 1, "2g.20gb": 1})),
]
_TWO = [
    Transition("two h100, one as it should be", ((H100, "3g.40gb@4 2g.20gb@0"), (H100, "7g.80gb@0")), _all({"3g.40gb": 1, "2g.20gb": 1})),
    Transition("h100 reshaped, rtx switched on", ((H100, "4g.40gb@0"), (RTX, OFF)), _each({"3g.40gb": 1}, {"1g.24gb": 2})),
    Transition("a100 off, h100 switched on", ((A100, "3g.40gb@4"), (H100, OFF)), [{"match": {"index": 0}, "mode": "disabled"},
                                                                                 {"match": {"index": 1}, "instances": {"1g.20gb": 1}}]),
    Transition("two h100 exchange their layouts", ((H100, "3g.40gb@0 1g.10gb@4"), (H100, "2g.20gb@2:-")), _each({"2g.20gb": 1}, {"3g.40gb": 1, "1g.10gb": 1})),
]
_BUSY = [
    Transition("h100 beside a busy half", ((H100, "3g.40gb@4* 2g.20gb@0"),), _all({"3g.40gb": 1, "1g.10gb": 4})),
    Transition("h100 a busy one at an odd place", ((H100, "1g.10gb@5* 1g.10gb@0 2g.20gb@2"),), _all({"1g.10gb": 1, "3g.40gb": 1})),
    Transition("rtx beside a busy quarter", ((RTX, "1g.24gb@3* 1g.24gb@6 1g.24gb@9"),), _all({"1g.24gb": 1, "2g.48gb": 1})),
    Transition("a100 beside a busy double", ((A100, "1g.20gb@2* 3g.40gb@4"),), _all({"1g.20gb": 2, "2g.20gb": 1, "1g.10gb": 1})),
    Transition("h100 to off, one in use unseen", ((H100, "1g.10gb@0 3g.40gb@4!"),), _MODE_OFF),
    Transition("h100 to whole, one in use unseen", ((H100, "4g.40gb@0:2c@0+2c@2 1g.10gb@6!"),), _all("whole")),
    Transition("rtx to halves, one in use unseen", ((RTX, "1g.24gb-me@0 1g.24gb@6!"),), _all({"2g.48gb": 2})),
    Transition("a100 and h100, the second in use unseen", ((A100, "3g.40gb@4"), (H100, "2g.20gb@2!")), _each({"1g.10gb": 1}, "whole")),
]
_A30 = [
    Transition("a30 off to quarters", ((A30, OFF),), _all({"1g.6gb+me": 1, "1g.6gb": 2}), after_reset=True),
    Transition("a30 quarters to a half", ((A30, "1g.6gb@0 1g.6gb@3"),), _all({"2g.12gb": 1, "1g.6gb": 1})),
    Transition("a30 whole to off", ((A30, "4g.24gb@0"),), _MODE_OFF),
]
TRANSITIONS = [*_FROM_NOTHING, *_TO_NOTHING, *_SHRINK_AND_GROW, *_RESHAPE, *_INSIDE, *_TWO, *_BUSY, *_A30]
