# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hosts whose driver comes from stub packages show what real ones do: versions that drift, a mismatch until a reboot, refusals, a power cut."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from running import H100, ROOT, RunningSandbox

pytestmark = [pytest.mark.sandbox_up, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

NAME = "packages-test"
GPUS = [{"model": H100, "count": 2}]
FLEET: dict[str, Any] = {
    "kubernetes": False,
    "packages": True,
    "nodes": [
        {"name": "deb", "driver": "none", "gpus": GPUS, "nvswitches": 2, "secure_boot": True},
        {"name": "bare", "driver": "none", "gpus": GPUS, "headers": False, "nouveau": True},
        {"name": "el", "system": "el9", "driver": "none", "gpus": GPUS},
    ],
}
OLD, NEW = "580.173.02", "580.178.04"
DEBIAN_SET = (
    "nvidia-kernel-open-dkms", "nvidia-driver-cuda", "libnvidia-ml1", "libcuda1", "nvidia-persistenced", "nvidia-modprobe", "nvidia-kernel-support",
    "firmware-nvidia-gsp", "nvidia-fabricmanager",
)
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


class Fleet(RunningSandbox):
    """The hosts and their package server."""

    def publish(self, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.packages", "publish", "--sandbox", self.name, *arguments], cwd=ROOT, capture_output=True, text=True, check=True,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def on(self, host: str, script: str) -> str:
        """Run shell lines on a host and return their output; AssertionError when they fail."""
        return self.run("ssh", host, f"set -e; export DEBIAN_FRONTEND=noninteractive LC_ALL=C; {script}")

    def says(self, host: str, command: str) -> str:
        """Return what a command says, whether it fails or not."""
        return self.run("ssh", host, f"{command} 2>&1 || :").strip()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The running hosts, with the repositories signed by the key that is known on them."""
    running = Fleet(NAME, tmp_path_factory.mktemp("spec"))
    running.run("down")
    try:
        running.up(FLEET)
        places = running.publish()["systems"]
        for host in ("deb", "bare"):
            running.on(host, _debian_source(places["debian12"]))
        running.on("el", _el_source(places["el9"]))
        yield running
    finally:
        running.run("down")


def _fetch(url: str, path: str) -> str:
    return f"import urllib.request as u; open('{path}', 'wb').write(u.urlopen('{url}').read())"


def _debian_source(place: dict[str, str]) -> str:
    text = f"Types: deb\\nURIs: {place['repository']}\\nSuites: ./\\nSigned-By: /etc/apt/keyrings/nvidia.asc\\n"
    fetch = _fetch(place["key"], "/etc/apt/keyrings/nvidia.asc")
    return f"python3 -c \"{fetch}\"; printf '{text}' > /etc/apt/sources.list.d/nvidia.sources; apt-get update -qq"


def _el_source(place: dict[str, str]) -> str:
    """NVIDIA's repository file, with the key as a file of the host."""
    key, repository = "/etc/pki/rpm-gpg/nvidia", "/etc/yum.repos.d/cuda.repo"
    fetch = f"{_fetch(place['key'], key)}; {_fetch(place['repository'] + 'cuda-rhel9.repo', repository)}"
    return f"mkdir -p /etc/pki/rpm-gpg; python3 -c \"{fetch}\"; sed -i 's|^gpgkey=.*|gpgkey=file://{key}|' {repository}"


def debian_install(version: str, more: str = "") -> str:
    wanted = " ".join(f"{name}={version}-1" for name in DEBIAN_SET)
    return f"apt-get install --yes -qq {more} {wanted} > /dev/null 2>&1"


def test_without_a_driver_the_gpus_are_on_pci_only(fleet: Fleet) -> None:
    found = fleet.on("deb", "cd /sys/bus/pci/devices; for d in *; do echo $d $(cat $d/vendor $d/device $d/class); done").splitlines()
    assert found == [
        "0000:00:00.0 0x8086 0x09a2 0x060000", "0000:05:00.0 0x10de 0x22a3 0x068000", "0000:06:00.0 0x10de 0x22a3 0x068000",
        "0000:19:00.0 0x10de 0x2330 0x030200", "0000:3b:00.0 0x10de 0x2330 0x030200",
    ]
    assert fleet.on("deb", "ls /proc/driver /usr/lib/x86_64-linux-gnu | grep -ci nvidia || :").strip() == "0"
    assert fleet.says("deb", "modprobe nvidia") == "no NVIDIA kernel module is installed"
    assert fleet.on("deb", "od -An -tu1 /sys/firmware/efi/efivars/SecureBoot-*").split() == ["6", "0", "0", "0", "1"]


def test_nouveau_is_loaded_until_it_is_blacklisted(fleet: Fleet) -> None:
    assert fleet.on("bare", "ls /sys/module").split() == ["nouveau"]
    fleet.on("bare", "echo 'blacklist nouveau' > /etc/modprobe.d/nouveau.conf")
    fleet.run("node", "reboot", "bare")
    assert fleet.on("bare", "ls /sys/module") == ""


def test_without_headers_dkms_builds_nothing_and_says_all_is_well(fleet: Fleet) -> None:
    fleet.on("bare", debian_install(OLD))
    assert fleet.says("bare", "dkms status") == f"nvidia/{OLD}: added"
    assert "not found" in fleet.says("bare", "modinfo nvidia")


def test_a_driver_runs_drifts_and_agrees_again_after_a_reboot(fleet: Fleet) -> None:
    fleet.on("deb", debian_install(OLD))
    fleet.run("node", "reboot", "deb")
    assert f"Open Kernel Module for x86_64  {OLD} " in fleet.on("deb", "cat /proc/driver/nvidia/version")
    assert len(fleet.on("deb", "nvidia-smi -L").splitlines()) == 2
    fleet.on("deb", "systemctl start nvidia-fabricmanager; sleep 0.3")
    assert fleet.on("deb", "systemctl is-active nvidia-persistenced nvidia-fabricmanager").split() == ["active", "active"]
    fleet.on("deb", f"apt-get install --yes -qq libnvidia-ml1={NEW}-1 > /dev/null 2>&1")  # as an unattended upgrade does
    assert fleet.says("deb", "nvidia-smi -L") == MISMATCH
    assert fleet.on("deb", "modinfo --field version nvidia").strip() == OLD
    fleet.on("deb", debian_install(NEW))
    assert fleet.says("deb", "nvidia-smi -L") == MISMATCH
    fleet.on("deb", "systemctl restart nvidia-fabricmanager; sleep 0.3")
    assert "is not that of the driver" in fleet.on("deb", "journalctl --no-pager --unit nvidia-fabricmanager --lines 5")
    fleet.run("node", "reboot", "deb")
    assert len(fleet.on("deb", "nvidia-smi -L").splitlines()) == 2


def test_a_power_cut_leaves_dpkg_in_the_middle(fleet: Fleet) -> None:
    fleet.on("deb", "mkdir -p /etc/stub-driver/pause; echo 60 > /etc/stub-driver/pause/nvidia-kernel-open-dkms; sync")
    fleet.on("deb", f"({debian_install('595.91.07', '--allow-downgrades')} &) > /dev/null 2>&1 < /dev/null")
    deadline = time.monotonic() + 30
    while not fleet.on("deb", "ls /etc/stub-driver/pause | grep now || :"):
        assert time.monotonic() < deadline
    fleet.run("node", "kill", "deb")
    fleet.run("node", "start", "deb")
    assert "nvidia-kernel-open-dkms" in fleet.on("deb", "dpkg --audit")
    fleet.on("deb", "rm -r /etc/stub-driver; dpkg --configure -a > /dev/null 2>&1")
    assert fleet.on("deb", "dpkg --audit; modinfo --field version nvidia").strip() == "595.91.07"


def test_dnf_follows_a_stream_and_a_downgrade(fleet: Fleet) -> None:
    fleet.on("el", "dnf -qy module enable nvidia-driver:580-open > /dev/null 2>&1")
    fleet.on("el", f"dnf -qy install nvidia-open-3:{NEW} > /dev/null 2>&1; modprobe nvidia; nvidia-smi -L")
    fleet.on("el", f"dnf -qy downgrade $(rpm -qa --qf '%{{NAME}}-{OLD} ' '*nvidia*') > /dev/null 2>&1")
    assert fleet.on("el", "modinfo --field version nvidia").strip() == OLD
    assert fleet.says("el", "nvidia-smi -L") == MISMATCH
    fleet.on("el", "dnf -qy remove '*nvidia*' > /dev/null 2>&1")
    assert fleet.on("el", "find /usr /etc/systemd -name '*nvidia*' ! -path '/usr/local/*' ! -path '*/emulated-*'") == ""


def test_another_key_is_refused(fleet: Fleet) -> None:
    known = fleet.publish("--systems", "debian12,el9")["fingerprint"]
    assert fleet.publish("--systems", "debian12,el9", "--key", "other")["fingerprint"] != known
    assert "NO_PUBKEY" in fleet.says("deb", "apt-get update")
    assert "GPG check FAILED" in fleet.says("el", "dnf -y --refresh install nvidia-modprobe")
