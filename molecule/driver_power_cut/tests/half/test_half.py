# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the power cut the package manager's work is half done."""
from __future__ import annotations

from driver_host import DriverHost


def test_packages_are_neither_installed_nor_absent(driver: DriverHost) -> None:
    states = driver.host.check_output("dpkg-query --show --showformat='${db:Status-Status}\\n'").split()
    assert {"half-configured", "half-installed", "unpacked", "triggers-pending"} & set(states)


def test_no_driver_works(driver: DriverHost) -> None:
    assert driver.nvml() == (None, 0)
