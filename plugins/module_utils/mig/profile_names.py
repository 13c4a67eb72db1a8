# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of MIG profiles, as people write them and as NVML gives them (``name`` of nvmlGpuInstanceProfileInfo_v2_t, "MIG 1g.10gb+me").

The DRA driver does not use NVML's text; what it computes instead stands in dra/rules.py.
"""
from __future__ import annotations

import re
from typing import NamedTuple, Optional

from ..dra.rules import Unpublishable, profile_text

_PROFILE = re.compile(r"^(?:(?P<ci>[0-9]{1,4})c\.)?(?P<slices>[0-9]{1,4})g(?:\.(?P<gb>[0-9]{1,6})gb)?(?P<suffix>[+-][a-z.]+)?$")


class ProfileText(NamedTuple):
    """A profile name taken apart: ``3g.40gb`` -> slices 3, gb 40. ``gb`` is None in the short form ``3g``; ``compute_slices`` only in ``1c.3g.40gb``."""

    slices: int
    gb: Optional[int]
    suffix: str
    compute_slices: Optional[int]


def parse_profile(text: str) -> ProfileText | None:
    """Take a profile name apart, or return None when ``text`` does not have the form ``[<c>c.]<g>g[.<gb>gb][+me|+gfx|+me.all|-me]``."""
    match = _PROFILE.match(normalise(text))
    if match is None:
        return None
    gb, ci = match.group("gb"), match.group("ci")
    return ProfileText(
        int(match.group("slices")), None if gb is None else int(gb), match.group("suffix") or "", None if ci is None else int(ci)
    )


def normalise(text: str) -> str:
    """Return a profile name as this collection compares it: lower case, without NVML's leading ``MIG ``."""
    text = text.strip().lower()
    return text[4:].strip() if text.startswith("mig ") else text


def computed_name(enum: int, memory_mib: int, total_bytes: int | None) -> str | None:
    """Return the profile text that the DRA driver and nvidia-mig-parted compute, or None where their formula has no answer.

    ``enum`` is the NVML_GPU_INSTANCE_PROFILE_* index, ``memory_mib`` the profile's memory, ``total_bytes`` the GPU's.
    """
    try:
        return profile_text(enum, memory_mib, total_bytes)
    except Unpublishable:
        return None


def split_compute(text: str) -> tuple[Optional[int], str]:
    """Return (1, "3g.40gb") for ``1c.3g.40gb``, and (None, text) for the name of a GPU instance profile or anything else."""
    text = normalise(text)
    parsed = parse_profile(text)
    if parsed is None or parsed.compute_slices is None:
        return None, text
    return parsed.compute_slices, text.partition(".")[2]
