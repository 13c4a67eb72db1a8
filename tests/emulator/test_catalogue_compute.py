# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compute instances through the session: what a GPU instance offers, where they may lie, and creation at a place."""
from __future__ import annotations

from typing import Any

from tests.emulator.modules import run_engine

IN_3G = """
with NvmlSession() as session:
    device = session.device_at(0)
    gpu_instance = session.gpu_instance(device, {number})
    by_slices = {{profile.slices: profile.id for profile in session.compute_profiles(gpu_instance)}}
"""


def in_instance(machine: Any, code: str) -> Any:
    """Run code over a session with ``gpu_instance``, the machine's only one, and its compute profiles ``by_slices``."""
    number = machine.show()["gpus"][0]["instances"][0]["gpu_instance_id"]
    indented = "\n".join(f"    {line.strip()}" for line in code.strip().splitlines())
    return run_engine(machine, IN_3G.format(number=number) + indented)


def test_places_are_compute_slices_inside_the_gpu_instance(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("repartition", "0", "3g.40gb@4")
    places = in_instance(machine, "result = {slices: session.compute_placements(gpu_instance, number) for slices, number in by_slices.items()}")
    # MIG user guide: a 3g holds three 1c, one 2c or one 3c.
    assert places["1"] == [[0, 1], [1, 1], [2, 1]] and places["3"] == [[0, 3]] and [0, 2] in places["2"]


def test_a_compute_instance_is_created_where_it_is_wanted_or_where_the_driver_likes(nvml_machine: Any) -> None:
    machine = nvml_machine("h100-80gb-hbm3")
    machine.ctl("repartition", "0", "3g.40gb@4")
    found = in_instance(machine, """
        session.destroy_compute_instance(session.compute_instance(gpu_instance, 0))
        session.create_compute_instance(gpu_instance, by_slices[1], 2, 1)
        session.create_compute_instance(gpu_instance, by_slices[1])
        rows = [row for profile in session.compute_profiles(gpu_instance) for row in session.compute_instances(gpu_instance, profile)]
        result = sorted({(facts.start, facts.size) for _compute, facts in rows})
    """)
    assert len(found) == 2 and [2, 1] in found
