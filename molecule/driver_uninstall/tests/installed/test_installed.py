# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The driver is there, so that there is something to take away."""
from __future__ import annotations

from driver_host import DriverHost, Scratch


def test_the_host_has_changed_in_every_respect(driver: DriverHost, kept: Scratch) -> None:
    before, now = kept.get("before"), driver.everything()
    assert set(driver.versions().values()) == {"595.91.07"}
    assert [kind for kind in before if before[kind] == now[kind]] == []
