# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter ``operator_gap``: lets role gpu_operator wait until what the API server lists is what was asked for."""
from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.dra.plugins.module_utils.dra import operator

GAPS: dict[str, Callable[..., Any]] = {
    "Deployment": operator.deployment_gap,
    "GPUCluster": operator.gpu_cluster_gap,
    "DaemonSet": operator.daemon_set_gap,
    "Pod": operator.plugin_pod_gap,
}


def operator_gap(objects: list[dict[str, Any]], kind: str, **fields: Any) -> str:
    """Return the sentence that says what the operator still lacks, by the listed ``objects`` of ``kind``; empty when nothing does."""
    if kind not in GAPS:
        raise AnsibleFilterError(f"operator_gap knows {', '.join(GAPS)}, not {kind}")
    found = GAPS[kind](objects, **fields)
    return found.sentence() if found else ""


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters of this file by name."""
        return {"operator_gap": operator_gap}
