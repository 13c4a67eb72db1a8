# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a GPU's NVLinks lead to: GPUs that hang together may have to be reset together."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

from .calls import optional
from .codes import INVALID_ARGUMENT, NOT_TOLD, NvmlError
from .health_calls import HealthCalls

_LINKS_END = 64  # no GPU has that many; the walk ends where NVML says that there is no such link
_SWITCH = 2  # NVML_NVLINK_DEVICE_TYPE_SWITCH; a GPU is 0


class Links(NamedTuple):
    """The other ends of a GPU's NVLinks: PCI bus ids of GPUs (lower case, sorted), and whether an NVSwitch is among them."""

    bus_ids: list[str]
    switch: bool


def read_links(session: HealthCalls, handle: Any) -> Links:
    """Return what the NVLinks of a GPU lead to; links that are down count where NVML still knows their other end. Raises NvmlError."""
    ends = {_end(session, handle, link) for link in _links(session, handle)}
    return Links(sorted({bus_id for kind, bus_id in ends if bus_id and kind in (None, 0)}), any(kind == _SWITCH for kind, _bus_id in ends))


def _links(session: HealthCalls, handle: Any) -> list[int]:
    """Return the numbers of the links that the GPU has."""
    found = []
    for link in range(_LINKS_END):
        try:
            session.link_is_up(handle, link)
        except NvmlError as error:
            if error.code not in NOT_TOLD:
                raise
            # A GPU without NVLink says so for its first link already; others have gaps.
            if link == 0 or error.code == INVALID_ARGUMENT:
                break
        else:
            found.append(link)
    return found


def _end(session: HealthCalls, handle: Any, link: int) -> tuple[Optional[int], Optional[str]]:
    """Return kind and bus id of the other end, each None when NVML does not tell."""
    kind = optional(lambda: session.link_peer_kind(handle, link), *NOT_TOLD)
    bus_id = optional(lambda: session.link_peer_bus_id(handle, link), *NOT_TOLD)
    return kind, None if bus_id is None else bus_id.lower()
