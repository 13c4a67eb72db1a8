# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Take down what the host is like before."""
from __future__ import annotations

from driver_host import DriverHost, Scratch


def test_the_host_has_no_driver(driver: DriverHost, kept: Scratch) -> None:
    assert driver.driver_packages() == {}
    kept.put("before", driver.everything())
