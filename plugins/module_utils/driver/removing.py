# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan for a host that is to be as it was before the role came."""
from __future__ import annotations

from typing import Optional

from ..knowledge.driver_packages import APT, DNF, ZYPPER, in_driver_set
from ..reasons import finding
from . import facts as read
from . import files
from .actions import Plan
from .facts import Facts
from .installing import in_service
from .options import Options
from .record import Record

_STILL_LOADED = "the driver that was removed is still loaded"


def plan_removal(facts: Facts, options: Options, record: Optional[Record], node_paused: bool) -> Plan:
    """Return the plan, from the record alone: what the role did not bring stays. The record itself goes last, so that a run that was cut off goes on."""
    plan = Plan(manager=read.host(facts).get("package_manager", ""), target={"branch": "", "version": "", "flavour": ""})
    if record is None:
        if read.driver_packages(facts):
            names = ", ".join(sorted(package["name"] for package in read.driver_packages(facts)))
            plan.findings.append(finding("DriverNotOurs", options.subject, packages=names))
        elif read.loaded_module(facts) and not any((facts.get("traces") or {}).get(kind) for kind in ("runfile", "container_driver")):
            plan.reboot_reasons = [_STILL_LOADED]
        return plan
    plan.record_changes = True
    plan.recover = bool(facts.get("broken_packages"))
    plan.unmask = [name for name in record.masked if read.service(facts, name)["masked"]]
    plan.unhold = [name for name in record.held if name in (facts.get("held") or [])] if plan.manager == APT else []
    # The scripts of the driver's packages need what came with them, such as dkms.
    plan.remove_first = [name for name in record.installed if in_driver_set(name, plan.manager)]
    plan.remove_after = [name for name in record.installed if not in_driver_set(name, plan.manager)]
    plan.predicted["remove"] = [{"name": name, "full": ""} for name in record.installed]
    plan.forget_key = record.trusted_key if record.trusted_key in (facts.get("trusted_keys") or []) else ""
    for path, text in record.replaced.items():
        _put_back(plan, facts, record, path, text)
    if read.loaded_module(facts):
        plan.reboot_reasons = [_STILL_LOADED]
        plan.findings += in_service(facts, options, node_paused)
    return plan


def _put_back(plan: Plan, facts: Facts, record: Record, path: str, text: Optional[str]) -> None:
    """Lists of locks lose our lines alone, for others may have come since. A lock on a package that goes would keep it from going: that list comes first."""
    now = (facts.get("files") or {}).get(path)
    if path in files.SHARED and now is not None:
        left = files.dnf_locks(now, [], "") if plan.manager == DNF else files.zypper_locks(now, [], record.held)
        text = None if text is None and not left.strip() else text if text is not None and files.same_locks(left, text) else left
        if plan.manager == ZYPPER and not files.same_locks(left, now):
            plan.files[path] = left
        if text is not None:
            now = plan.files.get(path, now)
    if text is None and now is not None:
        plan.files_absent.append(path)
    elif text is not None and text != now:
        plan.files_after[path] = text
