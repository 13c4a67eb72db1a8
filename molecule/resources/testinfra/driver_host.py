# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host with a driver, as the tests of the scenarios look at it: by the host's own tools, none of it by the modules under test."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

#: Where scenarios keep what one of their steps saw for a later one.
SCRATCH = Path(os.environ.get("MOLECULE_EPHEMERAL_DIRECTORY", "."))
#: Names of the packages that have to be at one version. A pinning package only carries preferences, and the subnet manager has versions of its own.
DRIVER_SET = re.compile(r"(lib)?nvidia-.*|libcuda1?|libnv(cuvid|sdm|idia).*|cuda-drivers.*|kmod-nvidia-.*|firmware-nvidia-.*")
NOT_OF_THE_SET = re.compile(r"nvidia-driver-pinning-.*|nvidia-container-toolkit.*|libnvidia-container.*|nvidia-modprobe$|nvlsm")
VERSION = re.compile(r"\d{3}\.\d+(?:\.\d+)?")

#: What any use of a package manager or any boot changes (databases, caches, seeds, zypper's cookies), and what the sandbox's hosts keep of the emulator.
CHANGES_BY_ITSELF = re.compile(
    r"/var/lib/(apt|dpkg|rpm|dnf|zypp|systemd|urandom|ucf|PackageKit|logrotate|sudo|dbus|YaST2|nvml-emulator)(/|$)|/etc/sandbox/boot_id|/etc/ld\.so\.cache|/usr/lib/sysimage|.*/__pycache__"
    r"|(/usr)?/lib/modules/[^/]*/modules\."
)

#: Prints {path: what it is} of the folders in its arguments: hash of content, target of a link, or "folder", with owner and mode.
_SNAPSHOT = """
import hashlib, json, os, stat, sys
found = {}
def note(path):
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        what = "link to " + os.readlink(path)
    elif stat.S_ISDIR(status.st_mode):
        what = "folder"
    elif stat.S_ISREG(status.st_mode):
        what = hashlib.sha256(open(path, "rb").read()).hexdigest()
    else:
        what = "special"
    found[path] = "%s %d:%d %o" % (what, status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode))
for top in sys.argv[1:]:
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            note(os.path.join(folder, name))
print(json.dumps(found))
"""


class DriverHost:
    """One host. Methods ask it anew at each call."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.name: str = host.backend.get_hostname()

    @cached_property
    def manager(self) -> str:
        """Its package manager: apt, dnf or zypper."""
        for program, manager in (("apt-get", "apt"), ("zypper", "zypper"), ("dnf", "dnf")):
            if self.host.exists(program):
                return manager
        raise AssertionError(f"{self.name} has no package manager")

    def packages(self) -> dict[str, str]:
        """All installed packages: full version by name."""
        if self.manager == "apt":
            rows = self.host.check_output("dpkg-query --show --showformat='${db:Status-Abbrev}\\t${Package}\\t${Version}\\n'").splitlines()
            return {name: version for status, name, version in (row.split("\t") for row in rows) if status.startswith(("ii", "hi"))}
        rows = self.host.check_output("rpm --query --all --queryformat '%{NAME}\\t%{EPOCH}:%{VERSION}-%{RELEASE}\\n'").splitlines()
        return {name: version.removeprefix("(none):") for name, version in (row.split("\t") for row in rows) if not name.startswith("gpg-pubkey")}

    def driver_packages(self) -> dict[str, str]:
        """The driver set: driver version by package name, e.g. ``580.178.04``."""
        found = {}
        for name, full in self.packages().items():
            version = VERSION.search(full)
            if DRIVER_SET.fullmatch(name) and not NOT_OF_THE_SET.fullmatch(name) and version:
                found[name] = version[0]
        return found

    def held(self) -> set[str]:
        """Names, or globs, that the package manager must leave."""
        if self.manager == "apt":
            return set(self.host.check_output("apt-mark showhold").split())
        if self.manager == "dnf":
            file = self.host.file("/etc/dnf/plugins/versionlock.list")
            return {line for line in file.content_string.splitlines() if line.strip() and not line.startswith("#")} if file.exists else set()
        file = self.host.file("/etc/zypp/locks")
        return set(re.findall(r"^solvable_name: (.*)$", file.content_string, re.MULTILINE)) if file.exists else set()

    def loaded_version(self) -> str | None:
        """Version of the kernel module that is loaded; None when none is."""
        return _version(self.host.run("cat /proc/driver/nvidia/version").stdout)

    def installed_module_version(self) -> str | None:
        """Version of the kernel module that the next boot loads."""
        return _version(self.host.run("modinfo -F version nvidia").stdout)

    def library_version(self) -> str | None:
        """Version of the file behind libnvidia-ml.so.1."""
        path = self.host.run("ldconfig -p | sed -n 's,.*libnvidia-ml.so.1 .*=> ,,p' | head -n 1 | xargs --no-run-if-empty readlink -f").stdout
        return _version(path)

    def nvml(self) -> tuple[str | None, int]:
        """What NVML answers: the driver's version, and how many GPUs there are. (None, 0) where it does not come up."""
        said = self.host.run("nvidia-smi --query-gpu=driver_version --format=csv,noheader")
        lines = said.stdout.splitlines() if said.rc == 0 else []
        return (lines[0].strip(), len(lines)) if lines else (None, 0)

    def versions(self) -> dict[str, str | None]:
        """Everything that has a version and has to be at the same one."""
        return {
            "loaded": self.loaded_version(), "module": self.installed_module_version(), "library": self.library_version(), "nvml": self.nvml()[0],
            **self.driver_packages(),
        }  # fmt: skip

    def record(self) -> dict[str, Any] | None:
        """What the role has written down, or None."""
        file = self.host.file("/var/lib/gpufleet-dra/nvidia_driver.json")
        return json.loads(file.content_string) if file.exists else None

    def everything(self) -> dict[str, dict[str, str]]:
        """Return what an uninstallation has to put back: packages, files (without caches, logs and databases of package managers), holds, units."""
        files = self.snapshot("/etc", "/usr", "/var/lib")
        return {
            "packages": self.packages(),
            "files": {path: what for path, what in files.items() if not CHANGES_BY_ITSELF.match(path)},
            "held": dict.fromkeys(self.held(), "held"),
            "units": dict.fromkeys(self.enabled_units(), "there"),
        }

    def snapshot(self, *folders: str) -> dict[str, str]:
        """Return what lies below ``folders``: content hash, target or kind, owner and mode, by path."""
        program = f"python3 - {' '.join(folders)} <<'END'\n{_SNAPSHOT}\nEND"
        found: dict[str, str] = json.loads(self.host.check_output(program))
        return found

    def enabled_units(self) -> set[str]:
        """Units that are enabled or masked, with which of both."""
        rows = self.host.check_output("systemctl list-unit-files --no-legend --no-pager --state=enabled,masked").splitlines()
        return {" ".join(row.split()[:2]) for row in rows}


def _version(text: str) -> str | None:
    found = VERSION.search(text)
    return found[0] if found else None


class Scratch:
    """Keeps documents by host for later steps of the scenario."""

    def __init__(self, host: str) -> None:
        self._folder = SCRATCH / "kept"
        self._host = host

    def put(self, name: str, document: Any) -> None:
        """Keep a document."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path(name).write_text(json.dumps(document, indent=1))

    def get(self, name: str) -> Any:
        """Return a document that an earlier step kept."""
        return json.loads(self._path(name).read_text())

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}-{self._host}.json"


@pytest.fixture
def driver(host: Host) -> DriverHost:
    """The host with its driver."""
    return DriverHost(host)


@pytest.fixture
def kept(host: Host) -> Scratch:
    """What steps of the scenario keep for later ones about this host."""
    return Scratch(host.backend.get_hostname())


@pytest.fixture
def wanted(host: Host) -> dict[str, Any]:
    """The variables that the scenario's inventory gives the host."""
    variables: dict[str, Any] = host.ansible.get_variables()
    return variables


@pytest.fixture(scope="session")
def recap(request: pytest.FixtureRequest) -> Callable[..., dict[str, dict[str, int]]]:
    """A function that runs a playbook of the scenario on all of its hosts, and returns Ansible's recap: counts by host."""
    def run(playbook: str, *arguments: str) -> dict[str, dict[str, int]]:
        scenario = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
        command = [Path(sys.executable).with_name("ansible-playbook"), "-i", request.config.getoption("ansible_inventory"), scenario / playbook, *arguments]
        # molecule forces colours, and those come before ANSIBLE_NOCOLOR
        environment = dict(os.environ, ANSIBLE_NOCOLOR="1", ANSIBLE_FORCE_COLOR="0")
        done = subprocess.run(command, cwd=scenario, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = re.findall(r"^(\S+)\s+: ((?:\w+=\d+\s*)+)$", done.stdout, re.MULTILINE)
        return {name: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)} for name, counts in rows}
    return run
