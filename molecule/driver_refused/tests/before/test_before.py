# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Take down what the host is like before anything is refused on it."""
from __future__ import annotations

from driver_host import DriverHost, Scratch


def test_keep_what_the_host_is_like(driver: DriverHost, kept: Scratch) -> None:
    kept.put("before", driver.everything())
