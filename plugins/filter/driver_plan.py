# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter ``driver_plan``: from the facts of a host to everything that role nvidia_driver does there."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.dra.plugins.module_utils.driver.plan import plan


def driver_plan(facts: Any, options: Any) -> dict[str, Any]:
    """Return the plan as data. Refusals are part of it; only input that is no facts at all is an error."""
    if not isinstance(facts, Mapping) or not isinstance(options, Mapping):
        raise AnsibleFilterError("driver_plan takes the facts of driver_info and a mapping of options")
    return plan(facts, options).as_dict()


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file by name."""
        return {"driver_plan": driver_plan}
