# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the real run, and again after a reboot: what was foretold was installed, and everything is at one version."""
from __future__ import annotations

import json
from typing import Any

from driver_host import SCRATCH, DriverHost, Scratch


def test_what_check_mode_foretold_was_installed(driver: DriverHost, kept: Scratch) -> None:
    foretold = json.loads((SCRATCH / f"foretold-{driver.name}.json").read_text())
    before, after = kept.get("packages"), driver.packages()
    assert foretold["install"], "nothing was foretold"
    assert {row["name"]: row["full"] for row in foretold["install"]} == {name: full for name, full in after.items() if name not in before}
    assert foretold["remove"] == [] and set(before) <= set(after)


def test_everything_is_at_the_newest_version_of_the_branch(driver: DriverHost, wanted: dict[str, Any]) -> None:
    versions = driver.versions()
    assert set(versions.values()) == {wanted["newest"]}, versions
    assert len(driver.driver_packages()) >= 4


def test_nvml_finds_every_gpu_of_the_bus(driver: DriverHost) -> None:
    found = driver.host.check_output("grep --files-with-matches 0x10de /sys/bus/pci/devices/*/vendor | xargs dirname | xargs -I{} cat {}/class").split()
    assert driver.nvml()[1] == sum(kind.startswith(("0x0302", "0x0300")) for kind in found) > 0


def test_the_open_modules_were_chosen(driver: DriverHost) -> None:
    assert "Open Kernel Module" in driver.host.check_output("cat /proc/driver/nvidia/version")
    assert driver.host.check_output("modinfo -F license nvidia") == "Dual MIT/GPL"


def test_nouveau_stays_out(driver: DriverHost) -> None:
    assert "blacklist nouveau" in driver.host.check_output("cat /etc/modprobe.d/*.conf")


def test_the_packages_are_held(driver: DriverHost) -> None:
    assert driver.held()


def test_the_fabric_manager_runs_where_there_are_switches_and_only_there(driver: DriverHost) -> None:
    switches = driver.name == "debian12"
    assert any(name.startswith("nvidia-fabric") for name in driver.driver_packages()) == switches
    assert driver.host.service("nvidia-fabricmanager").is_running == switches


def test_the_role_wrote_down_what_it_did(driver: DriverHost, wanted: dict[str, Any], kept: Scratch) -> None:
    record = driver.record()
    assert record is not None
    assert (record["version"], record["branch"], record["flavour"], record["previous"]) == (wanted["newest"], wanted["nvidia_driver_branch"], "open", None)
    assert sorted(record["installed"]) == sorted(set(driver.packages()) - set(kept.get("packages")))
