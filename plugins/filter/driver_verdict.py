# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter ``driver_verdict``: is the driver of a host the one that was asked for, everywhere and at one version?"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.plan import verdict
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError


def driver_verdict(facts: Any, options: Any, pending: bool = False) -> list[dict[str, Any]]:
    """Return the findings, each with its ``sentence``; empty when all is well."""
    if not isinstance(facts, Mapping) or not isinstance(options, Mapping):
        raise AnsibleFilterError("driver_verdict takes the facts of driver_info and a mapping of options")
    try:
        found = verdict(facts, options, pending)
    except FleetError as error:
        found = [error.finding]
    return [dict(one.as_dict(), sentence=one.sentence()) for one in found]


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file by name."""
        return {"driver_verdict": driver_verdict}
