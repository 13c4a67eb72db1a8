# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The driver's services, whether a kubelet runs here, and who has the driver's device files open."""
from __future__ import annotations

from typing import Any

from ..driver.facts import FABRIC_MANAGER, IMEX, PERSISTENCED
from ..nvml.holders import device_file_users
from .node import Node

SERVICES = (PERSISTENCED, FABRIC_MANAGER, IMEX)
# Units that run a kubelet: its own, and distributions of Kubernetes that carry it inside.
_KUBELETS = ("kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent")
_ACTIVE = ("active", "reloading")
_PROPERTIES = "Id,LoadState,ActiveState,UnitFileState"


def read_services(node: Node) -> tuple[dict[str, dict[str, bool]], bool]:
    """Return ``services`` of the driver facts, and whether a kubelet is active. Nothing is there on a host without systemd."""
    out = ""
    if node.which("systemctl"):
        units = [f"{name}.service" for name in (*SERVICES, *_KUBELETS)]
        # Exit status 1: systemd does not run (a container); nothing of it can be active then.
        out = node.run(["systemctl", "show", f"--property={_PROPERTIES}", *units]).out
    units_by_name = parse_show(out)
    services = {name: _state(units_by_name.get(name, {})) for name in SERVICES}
    # A kubelet that starts, again and again or not, has its pods all the same.
    return services, any(units_by_name.get(name, {}).get("ActiveState") in (*_ACTIVE, "activating") for name in _KUBELETS)


def parse_show(text: str) -> dict[str, dict[str, str]]:
    """Return the properties in ``systemctl show``'s output by name of the unit, without ``.service``."""
    units = {}
    for block in text.split("\n\n"):
        properties = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" in properties:
            units[properties["Id"].removesuffix(".service")] = properties
    return units


def _state(unit: dict[str, str]) -> dict[str, bool]:
    """Return ``present``, ``active``, ``enabled`` and ``masked`` of a unit. A masked unit counts as present.

    One that is only activating is not active: so are daemons that end at each start, while systemd waits to start them again (auto-restart).
    One without an [Install] section (static) counts as enabled: there is nothing to enable. Ubuntu's nvidia-persistenced is such, and started by udev.
    """
    load, enablement = unit.get("LoadState", "not-found"), unit.get("UnitFileState", "")
    masked = load == "masked" or enablement.startswith("masked")
    return {
        "present": load in ("loaded", "masked"),
        "active": unit.get("ActiveState", "") in _ACTIVE,
        "enabled": enablement in ("enabled", "enabled-runtime", "static"),
        "masked": masked,
    }


def read_holders(node: Node) -> list[dict[str, Any]]:
    """Return ``holders`` of the driver facts: processes with device files of the driver open, by pid. Needs root to see those of others."""
    return [{"pid": user.pid, "command": user.name, "files": user.paths} for user in device_file_users(str(node.root))]
