# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How NVIDIA names MIG profiles, and how its DRA driver names the devices made from them.

Two texts exist for one profile. NVML's own (``name`` of nvmlGpuInstanceProfileInfo_v2_t, "MIG 1g.10gb+me") is what people write in layouts. The DRA
driver does not use it: it computes a text from the profile's enum and the memory sizes (dra-driver-nvidia-gpu, go-nvlib), and builds device names on that.
"""
from __future__ import annotations

import math
import re
from typing import NamedTuple, Optional

_GIB = 1 << 30
_MIB = 1 << 20

# nvml.h NVML_GPU_INSTANCE_PROFILE_*: enum index -> (compute slices in the name, attribute suffix).
_BY_ENUM = {
    0: (1, ""), 1: (2, ""), 2: (3, ""), 3: (4, ""), 4: (7, ""), 5: (8, ""), 6: (6, ""), 7: (1, "+me"), 8: (2, "+me"), 9: (1, ""),
    10: (1, "+gfx"), 11: (2, "+gfx"), 12: (4, "+gfx"), 13: (1, "-me"), 14: (2, "-me"), 15: (1, "+me.all"), 16: (2, "+me.all"), 17: (3, "+gfx"),
}
_PROFILE = re.compile(r"^(?:(?P<ci>\d+)c\.)?(?P<slices>\d+)g(?:\.(?P<gb>\d+)gb)?(?P<suffix>[+-][a-z.]+)?$")


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
    """Return the profile text that the DRA driver and nvidia-mig-parted compute, such as ``1g.10gb+me``.

    ``enum`` is the NVML_GPU_INSTANCE_PROFILE_* index, ``memory_mib`` the profile's memory, ``total_bytes`` the GPU's. Returns None where the formula has no
    answer (unknown enum, unknown total). Rounds half away from zero, as Go does; Python's ``round`` would turn H200's 70.5 into 70.
    """
    if enum not in _BY_ENUM or not total_bytes:
        return None
    slices, suffix = _BY_ENUM[enum]
    eighths = math.ceil(8 * memory_mib * _MIB / total_bytes)
    gigabytes = math.floor(eighths / 8 * math.ceil(total_bytes / _GIB) + 0.5)
    return f"{slices}g.{gigabytes}gb{suffix}"


def gpu_device_name(minor: int) -> str:
    """Return the DRA device name of a whole GPU; ``minor`` is N of /dev/nvidiaN."""
    return f"gpu-{minor}"


def mig_device_name(minor: int, profile: str, profile_id: int, start: int) -> str:
    """Return the DRA device name of a static MIG device: ``mig_device_name(0, "3g.40gb", 9, 4)`` is ``gpu-0-mig-3g40gb-9-4``."""
    clean = re.sub(r"[^a-z0-9-]", "-", normalise(profile).replace(".", ""))
    return f"gpu-{minor}-mig-{clean}-{profile_id}-{start}"
