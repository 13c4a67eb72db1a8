# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate before a GPU enters MIG mode or gets its first instance: it has to be healthy.

Most health queries have no answer once instances exist, so a fault that is not seen here stays hidden until workloads meet it.
"""
from __future__ import annotations

from typing import Any

from ..reasons import ERROR, FleetError, finding
from .gpu_plan import GpuPlan
from .health import health_findings
from .plan import Plan


def refuse_unhealthy(facts: dict[str, Any], plan: Plan) -> None:
    """Do nothing when every GPU that ``plan`` partitions for the first time is healthy, as far as the NVML facts document ``facts`` can tell.

    Raises FleetError GpuUnhealthy, which names these GPUs and what is wrong with each. What the driver does not tell counts as healthy; warnings do not count.
    """
    by_uuid = {gpu["uuid"]: gpu for gpu in facts["gpus"]}
    sick = []
    for gpu in filter(_partitions_first, plan.gpus):
        errors = [item for item in health_findings(by_uuid[gpu.gpu.uuid]) if item.severity == ERROR]
        if errors:
            sick.append((gpu.gpu, errors))
    if not sick:
        return
    why = "; ".join((f"GPU {gpu.index}: " if len(sick) > 1 else "") + ", ".join(item.cause for item in errors) for gpu, errors in sick)
    remedies = " ".join(dict.fromkeys(item.remedy for _gpu, errors in sick for item in errors))
    details = {"gpus": [{"uuid": gpu.uuid, "findings": [item.as_dict() for item in errors]} for gpu, errors in sick]}
    raise FleetError(finding("GpuUnhealthy", ", ".join(gpu.label for gpu, _errors in sick), details, why=why, remedies=remedies))


def _partitions_first(gpu: GpuPlan) -> bool:
    return gpu.mode_after and (gpu.changes_mode or (bool(gpu.created) and not gpu.gpu.instances))
