# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After an upgrade, a downgrade and a rollback alike: everything is at the version, nothing of the other branch is left, and it lasts."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from driver_host import SCRATCH, DriverHost


@pytest.fixture(scope="module")
def change() -> dict[str, Any]:
    """What the last change was to lead to, from its playbook."""
    document: dict[str, Any] = json.loads((SCRATCH / "change.json").read_text())
    return document


def test_everything_is_at_the_version(driver: DriverHost, change: dict[str, Any]) -> None:
    versions = driver.versions()
    assert set(versions.values()) == {change["version"]}, versions


def test_nothing_of_the_other_branch_is_left(driver: DriverHost, change: dict[str, Any]) -> None:
    other = change["previous"].split(".")[0]
    assert not [name for name in driver.packages() if name.startswith(("nvidia", "libnv")) and other in name]
    assert not [entry for entry in driver.held() if other in entry]


def test_the_fabric_manager_runs_at_that_version(driver: DriverHost) -> None:
    assert driver.host.service("nvidia-fabricmanager").is_running == (driver.name == "debian12")


def test_the_packages_are_held_again(driver: DriverHost) -> None:
    assert driver.held()


def test_the_version_before_is_written_down(driver: DriverHost, change: dict[str, Any]) -> None:
    record = driver.record()
    assert record is not None
    assert (record["version"], record["previous"]["version"]) == (change["version"], change["previous"])


def test_a_second_run_changes_nothing(recap: Callable[..., dict[str, dict[str, int]]], change: dict[str, Any]) -> None:
    counts = recap(change["playbook"])
    assert counts and {name: row["changed"] for name, row in counts.items()} == dict.fromkeys(counts, 0)
