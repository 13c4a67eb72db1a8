# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The exact version that was asked for, though the branch has a newer one."""
from __future__ import annotations

from driver_host import DriverHost


def test_everything_is_at_the_exact_version(driver: DriverHost) -> None:
    versions = driver.versions()
    assert set(versions.values()) == {"580.173.02"}, versions
