# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Upgrades of the whole system leave the driver as it is, although they would find a newer one."""
from __future__ import annotations

from driver_host import VERSION, DriverHost

HELD, NEWER = "580.173.02", "580.178.04"


def test_a_newer_version_is_to_be_had(driver: DriverHost) -> None:
    """Without this the scenario would prove nothing."""
    command = {
        "apt": "apt-cache madison libnvidia-ml1",
        "dnf": "dnf --quiet --disableplugin=versionlock repoquery 'nvidia*' 'kmod-nvidia*'",
        "zypper": "zypper --non-interactive search --details nvidia",
    }[driver.manager]
    assert NEWER in driver.host.check_output(command)


def test_without_holds_the_upgrade_would_take_it(driver: DriverHost) -> None:
    """Nor without this: the same upgrade, only simulated, with holds and pins set aside."""
    command = {
        "apt": "apt-get --simulate --ignore-hold -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null dist-upgrade",
        "dnf": "dnf --assumeno --disableplugin=versionlock update",
        "zypper": "mv /etc/zypp/locks /etc/zypp/locks.kept; zypper --non-interactive update --dry-run --details; mv /etc/zypp/locks.kept /etc/zypp/locks",
    }[driver.manager]
    offered = {found for found in VERSION.findall(driver.host.run(f"({command}) 2>&1").stdout) if found[:3] in ("580", "595", "620")}
    assert offered - {HELD}, "nothing newer would be installed"


def test_the_whole_driver_is_still_at_its_version(driver: DriverHost) -> None:
    versions = driver.versions()
    assert set(versions.values()) == {HELD}, versions


def test_unattended_upgrades_leave_the_driver(driver: DriverHost) -> None:
    if driver.manager == "apt":
        configuration = driver.host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
        assert "nvidia" in configuration
