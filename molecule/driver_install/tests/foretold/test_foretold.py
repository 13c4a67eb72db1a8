# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the run in check mode the host is as it was."""
from __future__ import annotations

from driver_host import DriverHost, Scratch


def test_check_mode_installs_nothing(driver: DriverHost, kept: Scratch) -> None:
    assert driver.driver_packages() == {}
    assert driver.record() is None
    assert not driver.host.file("/etc/modprobe.d/gpufleet-nvidia-driver.conf").exists
    kept.put("packages", driver.packages())
