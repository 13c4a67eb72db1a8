# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rerun has finished what was begun, and the driver is whole."""
from __future__ import annotations

from driver_host import DriverHost


def test_nothing_is_left_half_done(driver: DriverHost) -> None:
    assert driver.host.check_output("dpkg --audit") == ""


def test_everything_is_at_the_version(driver: DriverHost) -> None:
    versions = driver.versions()
    assert set(versions.values()) == {"580.178.04"}, versions
    assert driver.nvml()[1] == 2


def test_the_packages_are_held(driver: DriverHost) -> None:
    assert driver.held()


def test_the_record_lists_what_both_runs_installed(driver: DriverHost) -> None:
    record = driver.record()
    assert record is not None and set(driver.driver_packages()) <= set(record["installed"])
