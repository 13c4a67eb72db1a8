# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter ``mig_layouts_for``: all MIG layouts that a GPU can have."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.layouts import feasible_layouts
from ansible_collections.gpufleet.dra.plugins.module_utils.knowledge.offline import gpus_of
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError


def mig_layouts_for(gpu: Any, profiles: str | Sequence[str] | None = None, maximal_only: bool = False) -> list[dict[str, int]]:
    """Return the layouts of ``gpu``, a model or the NVML facts of one GPU, as mappings of profile to count."""
    try:
        found = gpus_of(gpu)
        if len(found) != 1:
            raise AnsibleFilterError(f"mig_layouts_for is about one GPU and got facts of {len(found)}: give an element of their gpus")
        return feasible_layouts(found[0], [profiles] if isinstance(profiles, str) else profiles, maximal_only)
    except FleetError as error:
        raise AnsibleFilterError(error.finding.sentence()) from None


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, Callable[..., list[dict[str, int]]]]:
        """Return the filters of this file by name."""
        return {"mig_layouts_for": mig_layouts_for}
