# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the role has taken the driver away the host is what it was before: compared file by file, by content, owner and mode."""
from __future__ import annotations

from collections.abc import Callable

import pytest
from driver_host import DriverHost, Scratch


@pytest.mark.parametrize("kind", ["packages", "files", "held", "units"])
def test_the_host_is_as_it_was_found(driver: DriverHost, kept: Scratch, kind: str) -> None:
    before, now = kept.get("before")[kind], driver.everything()[kind]
    differences = [f"- {row}: {before[row]}" for row in sorted(before) if now.get(row) != before[row]]
    differences += [f"+ {row}: {now[row]}" for row in sorted(now) if before.get(row) != now[row]]
    assert differences == []


def test_no_driver_is_loaded(driver: DriverHost) -> None:
    assert driver.loaded_version() is None and driver.nvml() == (None, 0)


def test_a_second_run_changes_nothing(recap: Callable[..., dict[str, dict[str, int]]]) -> None:
    counts = recap("uninstall.yml")
    assert counts and {name: row["changed"] for name, row in counts.items()} == dict.fromkeys(counts, 0)
