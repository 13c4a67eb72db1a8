# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What hosts of the different systems (spec.SYSTEMS) have of their own: the package family, and the repository of the distribution itself."""
from __future__ import annotations

from ..spec import SYSTEMS
from . import layer
from .record import HostRecord

PORT = 8480
"""Port of the package server on the gateway."""

_FAMILIES = {"debian12": "apt", "debian13": "apt", "ubuntu2404": "apt", "el9": "rpm", "el10": "rpm", "sles15": "rpm"}

_APT = """\
Types: deb
URIs: {url}
Suites: ./
Trusted: yes
"""
_RPM = """\
[system]
name=The distribution's own packages
baseurl={url}
enabled=1
gpgcheck=0
"""


def family(system: str) -> str:
    """Return apt or rpm."""
    return _FAMILIES[system]


def server_url(gateway: str) -> str:
    """Return the address of a sandbox's package server."""
    return f"http://{gateway}:{PORT}"


def write_sources(host: HostRecord) -> None:
    """Let the host's package manager know the distribution's repository on the package server, and nothing else."""
    system = host.spec.get("system", SYSTEMS[0])
    url = f"{server_url(host.gateway)}/system/{system}/"
    if family(system) == "apt":
        layer.write(host, "etc/apt/sources.list", "")
        layer.write(host, "etc/apt/sources.list.d/system.sources", _APT.format(url=url))
        return
    folder = "etc/zypp/repos.d" if system.startswith("sles") else "etc/yum.repos.d"
    layer.write(host, f"{folder}/system.repo", _RPM.format(url=url))
