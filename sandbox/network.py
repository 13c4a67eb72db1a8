# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sandbox's own bridge and the hosts' links on it. Nothing is routed to the outside and no sysctl of the machine is written."""
from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence

from .errors import SandboxError
from .state import Addresses


def ensure_bridge(addresses: Addresses) -> None:
    """Make the bridge with the machine's address on it, unless it is there."""
    if addresses.bridge not in _links():
        _ip("link", "add", addresses.bridge, "type", "bridge")
    _ip("address", "replace", f"{addresses.gateway}/{addresses.prefix_length}", "dev", addresses.bridge)
    _ip("link", "set", addresses.bridge, "up")


def delete_link(name: str) -> None:
    """Delete a link; one that is not there is fine."""
    subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)


def links_of(addresses: Addresses) -> list[str]:
    """Return the names of all links of this sandbox that exist on the machine."""
    ours = re.compile(rf"{re.escape(addresses.bridge)}(n\d+)?")
    return [name for name in _links() if ours.fullmatch(name)]


def _links() -> list[str]:
    output = subprocess.run(["ip", "-json", "link", "show"], check=True, capture_output=True).stdout
    return [link["ifname"] for link in json.loads(output or "[]")]


def _ip(*arguments: str) -> None:
    command: Sequence[str] = ("ip", *arguments)
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        raise SandboxError(f"`{' '.join(command)}` failed: {result.stderr.strip()}.")
