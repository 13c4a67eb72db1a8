# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The account of how a failed change left the GPUs."""
from __future__ import annotations

from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.converge.leftover import describe, left_behind


def gpu(index: int, *instances: tuple[str, int, list[int]], current: bool = True, pending: bool = True) -> dict[str, Any]:
    rows = [{"profile": profile, "profile_id": 9, "start": start, "size": 4, "compute_slices": slices, "uuids": [f"MIG-{index}-{start}"]}
            for profile, start, slices in instances]
    return {"uuid": f"GPU-{index}", "index": index, "product": "H100", "mode_current": current, "mode_pending": pending, "instances": rows}


WHOLE, HALF = ("7g.80gb", 0, [7]), ("3g.40gb", 4, [3])


def test_each_gpu_that_was_to_change_is_told_by_itself() -> None:
    before = [gpu(0, WHOLE), gpu(1, WHOLE), gpu(2, WHOLE), gpu(3, WHOLE), gpu(4, WHOLE)]
    wanted = [gpu(0, HALF), gpu(1, HALF), gpu(2, HALF), gpu(3, HALF), gpu(4, WHOLE)]
    after = [gpu(0, HALF), gpu(1), gpu(2, WHOLE), gpu(4, WHOLE)]
    text, states = left_behind(before, wanted, after)
    assert text == "GPU 0 is as wanted; GPU 1 has MIG mode enabled and no instances; GPU 2 is as before; GPU 3 does not answer"
    assert states == {"GPU-0": "wanted", "GPU-1": "between", "GPU-2": "before", "GPU-3": "unknown"}


def test_an_instance_made_again_is_as_before() -> None:
    again = gpu(0, WHOLE)
    again["instances"][0]["uuids"] = ["MIG-another"]
    assert left_behind([gpu(0, WHOLE)], [gpu(0, HALF)], [again])[1] == {"GPU-0": "before"}


def test_compute_instances_and_a_pending_mode_are_told() -> None:
    row = gpu(0, ("3g.40gb", 4, []), ("3g.40gb", 0, [2, 1]), ("1g.10gb", 3, [1]), ("2g.20gb", 2, [1]), pending=False)
    assert describe(row) == ("MIG mode enabled (pending: disabled) and 3g.40gb at start 4 without compute instance, 3g.40gb at start 0 with 2c and 1c, "
                             "1g.10gb at start 3, 2g.20gb at start 2 with 1c")
    assert left_behind([gpu(0, HALF)], [gpu(0, WHOLE)], [gpu(0, ("3g.40gb", 4, []))])[1] == {"GPU-0": "between"}
