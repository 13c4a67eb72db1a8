# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Upgrades of the whole system leave the driver as it is, although they would find a newer one."""
from __future__ import annotations

from driver_host import DriverHost

HELD, NEWER = "580.173.02", "580.178.04"


def test_a_newer_version_is_to_be_had(driver: DriverHost) -> None:
    """Without this the scenario would prove nothing."""
    command = {
        "apt": "apt-cache madison 'nvidia-*'",
        "dnf": "dnf --quiet --disableplugin=versionlock repoquery 'nvidia*' 'kmod-nvidia*'",
        "zypper": "zypper --non-interactive search --details nvidia",
    }[driver.manager]
    assert NEWER in driver.host.check_output(command)


def test_without_holds_the_upgrade_would_take_it(driver: DriverHost) -> None:
    command = {
        "apt": "apt-get --simulate --ignore-hold -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null dist-upgrade",
        "dnf": "dnf --assumeno --disableplugin=versionlock update",
        "zypper": "sed -i.kept d /etc/zypp/locks; zypper --non-interactive --dry-run update; mv /etc/zypp/locks.kept /etc/zypp/locks",
    }[driver.manager]
    assert NEWER in driver.host.run(command + " 2>&1").stdout.replace("-", " ")


def test_the_whole_driver_is_still_at_its_version(driver: DriverHost) -> None:
    versions = driver.versions()
    assert set(versions.values()) == {HELD}, versions


def test_unattended_upgrades_leave_the_driver(driver: DriverHost) -> None:
    if driver.manager == "apt":
        configuration = driver.host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
        assert "nvidia" in configuration
