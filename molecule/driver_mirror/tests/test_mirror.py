# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Everything came from the mirror, nothing names or asked the vendor's address, and the manifest says the same."""
from __future__ import annotations

import json
from typing import Any

from driver_host import SCRATCH, DriverHost

VENDOR = "developer.download.nvidia.com"
OF_THE_SYSTEM = "/system/"  # the distribution's own packages


def test_the_driver_is_whole(driver: DriverHost) -> None:
    versions = driver.versions()
    assert set(versions.values()) == {"580.178.04"}, versions


def test_nobody_asked_at_the_vendors_address(driver: DriverHost) -> None:
    assert driver.host.run("systemctl is-active vendor-trap").stdout.strip() == "active"
    assert not driver.host.file("/run/vendor-asked").exists


def test_no_file_of_the_package_manager_names_the_vendors_address(driver: DriverHost) -> None:
    found = driver.host.run(f"grep --recursive --files-with-matches {VENDOR} /etc/apt /etc/yum.repos.d /etc/zypp /etc/dnf")
    assert found.stdout == ""


def test_the_repository_is_the_mirror(driver: DriverHost, wanted: dict[str, Any]) -> None:
    places = "/etc/apt/sources.list.d /etc/yum.repos.d /etc/zypp/repos.d"
    lines = driver.host.run(f"grep --recursive --no-filename --ignore-case --extended-regexp '^(uris|baseurl)' {places}").stdout.splitlines()
    of_the_role = [line for line in lines if OF_THE_SYSTEM not in line]
    assert of_the_role and all(wanted["site_mirror"] in line for line in of_the_role), lines


def test_the_manifest_lists_addresses_of_the_mirror_and_the_packages(driver: DriverHost, wanted: dict[str, Any]) -> None:
    text = (SCRATCH / "manifest.json").read_text()
    assert VENDOR not in text
    assert wanted["site_mirror"] in text
    document = json.loads(text)
    assert document
    assert all(name in text for name in driver.driver_packages())
