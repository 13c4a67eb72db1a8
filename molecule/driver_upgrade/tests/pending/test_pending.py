# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Between the change of the packages and the reboot: the real symptom, and the role's word for it."""
from __future__ import annotations

import json

from driver_host import SCRATCH, DriverHost


def test_the_packages_are_new_and_the_loaded_module_is_old(driver: DriverHost) -> None:
    assert set(driver.driver_packages().values()) == {"580.178.04"}
    assert driver.library_version() == driver.installed_module_version() == "580.178.04"
    assert driver.loaded_version() == "580.173.02"
    assert "Driver/library version mismatch" in driver.host.run("nvidia-smi 2>&1").stdout


def test_a_reboot_is_asked_for_with_reasons(driver: DriverHost) -> None:
    told = json.loads((SCRATCH / f"reboot-{driver.name}.json").read_text())
    assert told["required"] is True
    assert any("580.173.02" in reason and "580.178.04" in reason for reason in told["reasons"]), told
