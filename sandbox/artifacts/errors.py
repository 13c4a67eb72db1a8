# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one exception of this package."""
from __future__ import annotations


class ArtifactError(Exception):
    """Something that the sandbox needs cannot be had. The text is one sentence with the cause and what to do about it."""
