# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who made a package, by what the package says about itself: the package managers do not keep from where one was installed."""
from __future__ import annotations

import re

# NVIDIA's repositories: maintainer of deb packages, vendor of rpm packages, or one of their signing keys, by the
# end of its id or (rpm 6) of its fingerprint.
_NVIDIA = re.compile(
    r"@nvidia\.com|\bnvidia corporation\b"
    r"|key (?:id|fingerprint):? [0-9a-f]*(?:d42d0685|cdf6ba43|3a8b5622|3bf863cc|8793f200|1940c73e|73cd9b30)\b", re.IGNORECASE,
)
# "Debian NVIDIA Maintainers <pkg-nvidia-devel@lists.alioth.debian.org>" and the like: what stands here is no name of NVIDIA's.
_DISTRIBUTION = re.compile(
    r"[@.](?:debian\.org|ubuntu\.com|canonical\.com|suse\.(?:com|de)|opensuse\.org|redhat\.com|almalinux\.org|rockylinux\.org|microsoft\.com|amazon\.com)\b"
    r"|\b(?:Red Hat|AlmaLinux|Rocky Enterprise|SUSE LLC|openSUSE|Oracle America|Amazon\.com|Microsoft Corporation|CIQ)\b", re.IGNORECASE,
)


def origin(said: str) -> str:
    """Return nvidia, distribution or unknown for the maintainer, vendor, packager and signature of a package."""
    if _NVIDIA.search(said):
        return "nvidia"
    return "distribution" if _DISTRIBUTION.search(said) else "unknown"
