# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ResourceClaims that hold devices of a node."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class HeldClaim(NamedTuple):
    """An allocated claim: ``devices`` on the node that it holds, ``pods`` for which it is reserved (a terminating pod still counts)."""

    namespace: str
    name: str
    devices: tuple[str, ...]
    pods: tuple[str, ...]

    def text(self) -> str:
        """Return the claim for a person: namespace/name (devices; pods)."""
        users = f"pod {', '.join(self.pods)}" if self.pods else "no pod"
        return f"{self.namespace}/{self.name} ({', '.join(self.devices)}; {users})"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for results."""
        return {"namespace": self.namespace, "name": self.name, "devices": list(self.devices), "pods": list(self.pods)}


def held_claims(raw_claims: Iterable[dict[str, Any]], driver: str, pool: str, devices: Iterable[str] | None = None) -> list[HeldClaim]:
    """Return the claims that hold devices of ``driver`` in ``pool``, of those named in ``devices`` if given, sorted by namespace and name.

    Devices held with admin access are left out: they do not keep anybody from the device, and monitoring holds them all the time.
    """
    wanted = None if devices is None else set(devices)
    held = []
    for raw in raw_claims:
        status = raw.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        names = [
            result["device"]
            for result in results
            if (result["driver"], result["pool"]) == (driver, pool)
            and not result.get("adminAccess")
            and (wanted is None or result["device"] in wanted)
        ]
        if names:
            pods = [user["name"] for user in status.get("reservedFor") or () if user.get("resource") == "pods"]
            held.append(HeldClaim(raw["metadata"]["namespace"], raw["metadata"]["name"], tuple(sorted(names)), tuple(sorted(pods))))
    return sorted(held)
