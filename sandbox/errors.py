# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one exception of the sandbox's commands."""
from __future__ import annotations


class SandboxError(Exception):
    """Something a user can understand and act on. The first line is one sentence; the end of a log may follow it."""
