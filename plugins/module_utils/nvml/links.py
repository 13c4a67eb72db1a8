# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a GPU's NVLinks lead to: GPUs that hang together may have to be reset together."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple

from .calls import optional
from .codes import INVALID_ARGUMENT, NOT_TOLD, NvmlError
from .health_calls import HealthCalls

_LINKS_END = 64  # no GPU has that many; the walk ends where NVML says that there is no such link
_GPU, _SWITCH = 0, 2  # NVML_NVLINK_DEVICE_TYPE_*


class Links(NamedTuple):
    """The other ends of a GPU's NVLinks: PCI bus ids of GPUs (lower case, sorted), and whether an NVSwitch is among them."""

    bus_ids: list[str]
    switch: bool


def read_links(session: HealthCalls, handle: Any) -> Links:
    """Return what the NVLinks of a GPU lead to; links that are down count where NVML still knows their other end. Raises NvmlError."""
    bus_ids, switch = set(), False
    for link in _links(session, handle):
        kind = _told(session.link_peer_kind, handle, link)
        switch = switch or kind == _SWITCH
        bus_id = _told(session.link_peer_bus_id, handle, link) if kind == _GPU else None
        if bus_id is not None:
            bus_ids.add(bus_id.lower())
    return Links(sorted(bus_ids), switch)


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


def _told(query: Callable[[Any, int], Any], handle: Any, link: int) -> Any:
    """Return what NVML says about a link, or None when it does not tell."""
    return optional(lambda: query(handle, link), *NOT_TOLD)
