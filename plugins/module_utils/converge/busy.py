# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who is in the way, and waiting for them: processes that NVML lists, and open device files of those that it does not list."""
from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any, Callable, Optional, TypeVar

from ..mig.catalogue import Gpu, Process, gpu_from_facts
from ..mig.gpu_plan import GpuPlan
from ..mig.plan import Plan
from ..nvml.codes import IN_USE, NvmlError
from ..nvml.holders import open_handles
from ..nvml.inventory import survey
from ..nvml.session import NvmlSession
from ..reasons import FleetError, finding
from .deadline import PhaseClock

_Result = TypeVar("_Result")
_POLL_S = 0.5
_NAMED = 8  # holders named in a sentence; details have all


class Patience:
    """How long a run waits for GPUs in use: until ``ends`` (time.monotonic). The time spent so does not count for the phase in progress."""

    def __init__(self, ends: float, clock: PhaseClock) -> None:
        self._ends = ends
        self._clock = clock

    def pause(self) -> bool:
        """Wait a moment and return True, or return False when the time is over."""
        if time.monotonic() >= self._ends:
            return False
        time.sleep(_POLL_S)
        self._clock.restart()
        return True

    def call(self, act: Callable[[], _Result]) -> _Result:
        """Return what ``act`` returns, trying again while NVML says IN_USE and there is time. Raises NvmlError."""
        while True:
            try:
                return act()
            except NvmlError as error:
                if error.code != IN_USE or not self.pause():
                    raise


class Holders:
    """Who holds a GPU or an instance: ``text`` for a sentence, ``details`` with pid, name, kind, gpu_instance_id and path (None where not known)."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.details = list(rows)

    @property
    def text(self) -> str:
        """Return the holders as text; also when nobody could be found."""
        named = [_named(row) for row in self.details[:_NAMED]]
        if len(self.details) > _NAMED:
            named.append(f"{len(self.details) - _NAMED} more")
        return ", ".join(named) or "a client that neither NVML nor open device files show"


def wait_until_free(read: Callable[[], tuple[dict[str, Any], Plan]], patience: Patience) -> Plan:
    """Return the first plan of ``read`` (facts, plan) that hurts no process, reading again while there is patience.

    Raises FleetError InstanceBusy with the holders when the time is over; nothing has been touched then.
    """
    while True:
        facts, plan = read()
        busy = next((gpu for gpu in plan.gpus if gpu.blockers), None)
        if busy is None:
            return plan
        if not patience.pause():
            instances = {process.gpu_instance_id for process in busy.blockers}
            held = holders(facts, busy.gpu, busy.blockers, None if None in instances else {number for number in instances if number is not None})
            raise FleetError(finding("InstanceBusy", busy.target.where, {"holders": held.details}, what=_going(busy), holders=held.text))


def holders(facts: dict[str, Any], gpu: Gpu, listed: Iterable[Process], instances: Optional[Collection[int]]) -> Holders:
    """Return the processes ``listed`` by NVML, then those that only have a device file open: of these GPU instances, or of the whole GPU when None."""
    handles = [item for item in open_handles(facts) if item.gpu_minor == gpu.minor and (instances is None or item.gpu_instance_id in instances)]
    names = {item.pid: item.name for item in handles}
    rows: dict[int, dict[str, Any]] = {}
    for process in listed:
        rows.setdefault(process.pid, {"pid": process.pid, "name": names.get(process.pid), "kind": process.kind,
                                      "gpu_instance_id": process.gpu_instance_id, "path": None})
    for item in handles:
        rows.setdefault(item.pid, {"pid": item.pid, "name": item.name, "kind": None, "gpu_instance_id": item.gpu_instance_id, "path": item.path})
    return Holders(rows.values())


def find_holders(session: NvmlSession, gpu: Gpu, gpu_instance_id: Optional[int] = None) -> Holders:
    """Look for who makes NVML answer IN_USE for a GPU instance, or for the whole GPU; raises nothing."""
    try:
        facts = survey(session)
    except NvmlError:
        return Holders([])
    processes = [item for row in facts["gpus"] if row["uuid"] == gpu.uuid for item in gpu_from_facts(row).processes]
    if gpu_instance_id is not None:
        found = holders(facts, gpu, [item for item in processes if item.gpu_instance_id == gpu_instance_id], {gpu_instance_id})
        if found.details:
            return found
    return holders(facts, gpu, processes, None)


def _named(row: dict[str, Any]) -> str:
    kind = "process" if row["kind"] is None else f"{row['kind']} process"
    instance = None if row["gpu_instance_id"] is None else f"GPU instance {row['gpu_instance_id']}"
    about = ", ".join(part for part in (row["name"], instance, row["path"]) if part)
    return f"{kind} {row['pid']}" + (f" ({about})" if about else "")


def _going(plan: GpuPlan) -> str:
    return f"{plan.gpu.label}{', of which ' + ', '.join(plan.going) + ' would go,' if plan.going else ', whose partitioning changes,'}"
