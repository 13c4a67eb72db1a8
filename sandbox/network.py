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


def ensure_bridge(addresses: Addresses, owner: str) -> None:
    """Make the bridge with the machine's address on it and ``owner`` as its alias, unless it is there.

    Raises SandboxError when it is there and another owner's.
    """
    links = _links()
    if addresses.bridge not in links:
        _ip("link", "add", addresses.bridge, "type", "bridge")
    elif links[addresses.bridge] not in ("", owner):
        raise SandboxError(f"the link {addresses.bridge} is in use by another sandbox ({links[addresses.bridge]}): take one of the two down.")
    _ip("link", "set", addresses.bridge, "alias", owner)
    _ip("address", "replace", f"{addresses.gateway}/{addresses.prefix_length}", "dev", addresses.bridge)
    _ip("link", "set", addresses.bridge, "up")


def delete_link(name: str) -> None:
    """Delete a link; one that is not there is fine."""
    subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)


def links_of(addresses: Addresses, owner: str) -> list[str]:
    """Return the names of all links of this sandbox that exist on the machine; none when the bridge is another owner's by now."""
    links = _links()
    if links.get(addresses.bridge, "") not in ("", owner):
        return []
    ours = re.compile(rf"{re.escape(addresses.bridge)}(n\d+)?")
    return [name for name in links if ours.fullmatch(name)]


def _links() -> dict[str, str]:
    """Return alias by name; no alias is an empty one."""
    output = subprocess.run(["ip", "-json", "link", "show"], check=True, capture_output=True).stdout
    return {link["ifname"]: link.get("ifalias", "") for link in json.loads(output or "[]")}


def _ip(*arguments: str) -> None:
    command: Sequence[str] = ("ip", *arguments)
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        raise SandboxError(f"`{' '.join(command)}` failed: {result.stderr.strip()}.")
