# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the boot service is told: /etc/gpufleet/mig-boot.json, written by the action plugin mig_boot_engine and read on the node at boot."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from ..mig.layout import Layout, parse_layouts
from ..reasons import FleetError, finding

VERSION = 1


@dataclass(frozen=True)
class NodeAccess:
    """How the kubelet reaches its own Node object: the server, who is trusted (a file or PEM text), and the files of its client certificate."""

    name: str
    server: str
    certificate: str
    key: str
    ca_file: Optional[str] = None
    ca_pem: Optional[str] = None


@dataclass(frozen=True)
class BootSettings:
    """The instructions of one node.

    ``allow_reset``, ``ignore_health`` and ``phase_timeout_s`` are those of the engine's Policy. ``wait_s`` bounds each wait: for the driver, for a GPU or the
    lock to become free, for the API server. ``timeout_s`` bounds the change of the layout with its waits. ``pause_node`` is the Node to keep the DRA plugin off
    when the layout cannot be made, None when the kubelet is to be held back instead.
    """

    layout: Layout
    gpu_uuids: frozenset[str]
    allow_reset: bool
    ignore_health: bool
    phase_timeout_s: float
    wait_s: float
    timeout_s: float
    pause_node: Optional[NodeAccess]


def read_settings(path: str) -> BootSettings:
    """Return the instructions in the file ``path``. Raises FleetError BootSettingsUnusable, or InvalidLayout for its layouts."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
        if raw["version"] != VERSION:
            raise _unusable(path, f"it has version {raw['version']}, this engine reads version {VERSION}")
        return BootSettings(
            layout=parse_layouts(raw["layouts"]),
            gpu_uuids=frozenset(_uuids(raw["layouts"])),
            allow_reset=bool(raw["allow_reset"]),
            ignore_health=bool(raw["ignore_health"]),
            phase_timeout_s=float(raw["phase_timeout_s"]),
            wait_s=float(raw["wait_s"]),
            timeout_s=float(raw["timeout_s"]),
            pause_node=None if raw["pause_node"] is None else NodeAccess(**raw["pause_node"]),
        )
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    except KeyError as error:
        raise _unusable(path, f"it has no {error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise _unusable(path, str(error)) from None


def _uuids(layouts: list[dict[str, Any]]) -> list[str]:
    """Return the UUIDs of the GPUs that fixed layouts name, one a rule."""
    return [rule["match"]["uuid"] for rule in layouts]


def _unusable(path: str, why: str) -> FleetError:
    return FleetError(finding("BootSettingsUnusable", path, why=why))
