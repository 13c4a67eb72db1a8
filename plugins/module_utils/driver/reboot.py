# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a host needs a reboot for its driver, and why: sentences, never a mere yes."""
from __future__ import annotations

from typing import Optional

from .facts import Facts


def reasons(facts: Facts, version: str = "", flavour: str = "", options_changed: bool = False, kernel: Optional[str] = None) -> list[str]:
    """Return the reasons for a reboot, empty when there are none.

    Without ``version`` and ``flavour`` the facts speak of what is installed; with them, of what is about to be. ``options_changed`` says that module
    options were or will be changed. A driver that is not loaded yet is no reason: see :func:`can_load`.
    """
    return []


def can_load(facts: Facts) -> bool:
    """Return whether the installed driver can be loaded by modprobe, without a reboot: none is loaded, neither is nouveau, the running kernel has it."""
    return False
