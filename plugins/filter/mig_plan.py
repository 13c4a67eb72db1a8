# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter ``mig_plan``: what a MIG layout would change, told without a GPU."""
from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.offline import forecast
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError


def mig_plan(gpu: Any, desired: Any, current: Any = None) -> dict[str, Any]:
    """Return the plan that makes ``desired`` of ``gpu``, a model or NVML facts; see :func:`forecast` for its form."""
    try:
        return forecast(gpu, desired, current)
    except FleetError as error:
        raise AnsibleFilterError(error.finding.sentence()) from None


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters of this file by name."""
        return {"mig_plan": mig_plan}
