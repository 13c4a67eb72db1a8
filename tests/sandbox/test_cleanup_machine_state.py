# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The comparison of the machine before and after: it sees what a sandbox could leave."""
from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
from pathlib import Path

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


def test_connection_tracking_that_a_module_brought_is_no_difference_but_changed_values_are() -> None:
    now = machine_state.take()
    plain = {"vm/swappiness": "60"}
    loaded = {**plain, "net/nf_conntrack_max": "1", "net/netfilter/nf_conntrack_acct": "0"}
    without, with_module, changed = (
        dataclasses.replace(now, sysctls=sysctls) for sysctls in (plain, loaded, {**loaded, "net/nf_conntrack_max": "2"})
    )
    assert machine_state.differences(without, with_module) == []
    assert machine_state.differences(with_module, changed) == ["sysctls: net/nf_conntrack_max was '1', is '2'"]


def test_places_of_the_tools_at_home_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    before = machine_state.take()
    (tmp_path / ".ansible" / "cp").mkdir(parents=True)
    (tmp_path / ".ansible" / "cp" / "0123456789").touch()
    found = machine_state.differences(before, machine_state.take())
    assert [line.partition(" was ")[0] for line in found if str(tmp_path) in line] == [f"places: {tmp_path}/.ansible", f"places: {tmp_path}/.ansible/cp"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_counters_of_the_packet_filter_are_left_out() -> None:
    table = "add table inet gfsbxtest; add chain inet gfsbxtest c { type filter hook output priority 0; }; add rule inet gfsbxtest c counter"
    subprocess.run(["nft", table], check=True)
    try:
        before = machine_state.take()
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
            assert before.packet_filter == machine_state.take().packet_filter
    finally:
        subprocess.run(["nft", "delete table inet gfsbxtest"], check=True)
