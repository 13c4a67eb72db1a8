# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The comparison of the machine before and after: it sees what a sandbox could leave."""
from __future__ import annotations

import dataclasses
import os
import subprocess

import pytest
from running import lasting_differences

from sandbox import machine_state


def test_a_machine_that_is_left_alone_does_not_differ() -> None:
    before = machine_state.take()
    assert len(before.sysctls) > 500 and before.mounts and "lo" in before.links
    assert lasting_differences(before) == []


@pytest.mark.parametrize("kind", ["sysctls", "mounts", "cgroups", "links", "namespaces", "places", "packet_filter"])
def test_each_kind_of_difference_is_told(kind: str) -> None:
    empty = machine_state.MachineState(*({} for _ in range(7)), clock_offset_s=0.0)  # type: ignore[misc, arg-type]
    old, new = (dataclasses.replace(empty, **{kind: values}) for values in ({"a": "1", "b": "2"}, {"b": "3", "c": "4"}))
    assert machine_state.differences(old, new) == [f"{kind}: a is gone", f"{kind}: b was '2', is '3'", f"{kind}: c is new (4)"]
    assert machine_state.differences(old, old) == []


def test_a_moved_clock_is_told() -> None:
    now = machine_state.take()
    assert machine_state.differences(now, dataclasses.replace(now, clock_offset_s=now.clock_offset_s + 60)) == ["the clock was moved by 60.0 s"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_forgotten_link_is_seen() -> None:
    before = machine_state.take()
    subprocess.run(["ip", "link", "add", "gfsbxtest", "type", "bridge"], check=True)
    try:
        assert "links: gfsbxtest is new ()" in machine_state.differences(before, machine_state.take())
    finally:
        subprocess.run(["ip", "link", "delete", "gfsbxtest"], check=True)
