# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which addresses a sandbox takes, and whose bridges it leaves alone."""
from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import network, state
from sandbox.errors import SandboxError
from sandbox.state import Addresses, RunState


@pytest.fixture
def routes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def have(*networks: str) -> None:
        monkeypatch.setattr(state, "_networks_of_machine", lambda: [ipaddress.IPv4Network(network) for network in networks])

    return have


def index_of(cache: Path, name: str = "box") -> int:
    made = RunState(cache, name)
    made.create({})
    return made.addresses.index


def test_subnets_with_a_route_of_their_own_are_passed_over(tmp_path: Path, routes: Callable[..., None]) -> None:
    routes("10.91.0.0/24", "10.91.1.128/25", "192.168.0.0/16")
    assert index_of(tmp_path, "a") == 2
    assert index_of(tmp_path, "b") == 3


def test_a_route_to_all_private_addresses_does_not_matter(tmp_path: Path, routes: Callable[..., None]) -> None:
    routes("10.0.0.0/8", "10.64.0.0/10")
    assert index_of(tmp_path) == 0


def test_the_route_that_covers_all_subnets_is_named(tmp_path: Path, routes: Callable[..., None]) -> None:
    routes("10.91.0.0/16")
    with pytest.raises(SandboxError, match=r"this machine has a route to 10\.91\.0\.0/16, in which .* remove that route first"):
        index_of(tmp_path)


def test_without_a_free_subnet_a_sandbox_has_to_go(tmp_path: Path, routes: Callable[..., None]) -> None:
    routes("10.91.0.0/17", "10.91.128.0/17")
    with pytest.raises(SandboxError, match=r"no subnet of 10\.91\.0\.0/16 is free on this machine: take a sandbox down"):
        index_of(tmp_path)


def test_addresses_are_claimed_while_nobody_else_can_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, routes: Callable[..., None]) -> None:
    routes()
    monkeypatch.setattr(state, "INDEX_LOCK", tmp_path / "lock")
    held: list[tuple[str, int]] = []

    def claim(addresses: Addresses) -> None:
        held.append((addresses.bridge, subprocess.run(["flock", "--nonblock", str(tmp_path / "lock"), "true"], check=False).returncode))

    RunState(tmp_path / "cache", "box").create({}, claim)
    assert held == [("gfsbx0", 1)]


def links(*pairs: tuple[str, str]) -> bytes:
    return json.dumps([{"ifname": name, **({"ifalias": alias} if alias else {})} for name, alias in pairs]).encode()


@pytest.mark.parametrize(
    ("alias", "refused"), [("", False), ("gpufleet sandbox ours", False), ("gpufleet sandbox theirs", True)],
)
def test_a_bridge_of_another_sandbox_is_neither_used_nor_deleted(alias: str, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        commands.append(tuple(command[1:]))
        return subprocess.CompletedProcess(command, 0, links(("lo", ""), ("gfsbx7", alias), ("gfsbx7n0", ""), ("gfsbx70", "")))

    monkeypatch.setattr(network.subprocess, "run", run)
    assert network.links_of(Addresses(7), "gpufleet sandbox ours") == ([] if refused else ["gfsbx7", "gfsbx7n0"])
    if refused:
        with pytest.raises(SandboxError, match=r"the link gfsbx7 is in use by another sandbox \(gpufleet sandbox theirs\)"):
            network.ensure_bridge(Addresses(7), "gpufleet sandbox ours")
        assert not [command for command in commands if command[1] in ("set", "add", "replace")]
    else:
        network.ensure_bridge(Addresses(7), "gpufleet sandbox ours")
        assert ("link", "set", "gfsbx7", "alias", "gpufleet sandbox ours") in commands
