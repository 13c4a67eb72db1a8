# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan for a host that is to have a driver."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Optional

from ..knowledge.addresses import sealed, without_credentials
from ..knowledge.driver_packages import APT, DNF, ZYPPER, in_driver_set
from ..reasons import Finding, FleetError, finding
from . import facts as read
from . import files, reboot
from .actions import TRANSACTION_PARTS, Plan, specs
from .checks import examine
from .facts import FABRIC_MANAGER, IMEX, PERSISTENCED, Facts
from .options import AUTO, Options
from .record import Record, Release, first_record
from .selection import Selection, target_version


def rollback_options(options: Options, record: Optional[Record]) -> Options:
    """Return the options that lead to the version before. Once there, the host stays there: a rollback that was cut off is finished by the same call.

    Raises FleetError DriverNoPrevious.
    """
    release = record.release if record and record.rolled_back else record.previous if record else None
    if release is None:
        raise FleetError(finding("DriverNoPrevious", options.subject))
    return replace(options, branch=release.branch, version=release.version, flavour=release.flavour or AUTO, allow_ended_branch=True)


class Circumstances(NamedTuple):
    """``rollback``: the options lead to the version before. ``node_paused``: the node was drained. ``ask``: look at the repository in any case."""

    rollback: bool = False
    node_paused: bool = False
    ask: bool = False


def plan_installation(facts: Facts, options: Options, record: Optional[Record], circumstances: Circumstances) -> Plan:
    """Return the plan. Without a ``view`` in the facts it may be no more than the question for one."""
    selection, findings = examine(facts, options)
    plan = Plan(findings=findings, manager=read.host(facts).get("package_manager", ""))
    if selection is None:
        return plan
    plan.manager = selection.manager
    plan.recover = bool(facts.get("broken_packages"))
    version = target_version(facts, selection)
    plan.target = {
        "branch": selection.branch, "version": version, "flavour": selection.flavour, "source": selection.cell.source,
        "repository": without_credentials(selection.repository.url) if selection.repository else "",
        "key": without_credentials(selection.repository.key_url) if selection.repository else "",
        "fingerprint": selection.repository.fingerprint if selection.repository else "", "fabric_manager": selection.fabric_manager, "imex": selection.imex,
    }
    if plan.refused():
        return plan
    needs_packages = _needs_packages(facts, selection, version, record)
    if (needs_packages or circumstances.ask or _needs_key(facts, selection)) and not facts.get("view"):
        plan.view = selection.view()
        plan.reboot_reasons = reboot.reasons(facts)  # by what is installed, for those who do not ask
        return plan
    plan.findings += _required_but_missing(facts, options, selection)
    _plan_packages(plan, facts, selection, version, needs_packages)
    plan.reboot_reasons = reboot.reasons(facts, version, selection.flavour)
    plan.dkms = [] if plan.packages_change() else _passed_over(facts, selection, version)
    plan.load = not plan.packages_change() and not plan.reboot_reasons and reboot.can_load(facts)
    _plan_services(plan, facts, selection)
    _plan_files(plan, facts, selection, version)
    _plan_record(plan, facts, selection, Release(selection.branch, version, selection.flavour), record, circumstances.rollback)
    if plan.packages_change() and read.loaded_module(facts):
        plan.findings += in_service(facts, options, circumstances.node_paused)
    return plan


def in_service(facts: Facts, options: Options, node_paused: bool) -> list[Finding]:
    """Return the refusal to change a loaded driver under the pods of a node, unless the node was drained for it."""
    if node_paused or not (facts.get("cluster_hint") or {}).get("kubelet"):
        return []
    holders = ", ".join(sorted({f"{holder.get('command')} ({holder.get('pid')})" for holder in facts.get("holders") or []}))
    return [finding("DriverNodeInService", options.subject, {"holders": list(facts.get("holders") or [])}, holders=holders or "nobody at the moment")]


def _needs_packages(facts: Facts, selection: Selection, version: str, record: Optional[Record]) -> bool:
    installed = {package["name"]: package["version"] for package in facts.get("packages") or []}
    headers = bool(selection.headers) and read.kernel(facts, "next").get("headers") is False
    nowhere = record.unavailable if record and record.release.version == version else ()
    missing = any(name not in installed for name in selection.install if name not in nowhere)
    wrong = any(installed[name] != version for name in selection.exact() if name in installed)
    return not version or wrong or missing or headers or bool(selection.obsolete) or bool(facts.get("broken_packages"))


def _passed_over(facts: Facts, selection: Selection, version: str) -> list[str]:
    """Return the kernels for which dkms has passed over the module although their headers are there (by now): the one that boots next, and the running one.

    The packages are right then, and nothing but dkms itself would make the module. Empty where the next kernel has it.
    """
    following, running = read.kernel(facts, "next"), read.kernel(facts, "running")
    lacking = [kernel["release"] for kernel in (following, running) if kernel["headers"] and (kernel["module"] or {}).get("version") != version]
    return list(dict.fromkeys(lacking)) if selection.packages.dkms and following["release"] in lacking else []


def _required_but_missing(facts: Facts, options: Options, selection: Selection) -> Iterator[Finding]:
    """DriverPackagesMissing: without these there is no driver. What else belongs to switches, such as NVSDM, exists for some systems only."""
    fabric_manager = selection.packages.fabric_manager[:1] if selection.fabric_manager else ()
    imex = selection.packages.imex if selection.imex else ()
    required = (*selection.packages.module, *selection.packages.userspace, *fabric_manager, *imex)
    missing = [name for name in (facts.get("view") or {}).get("missing") or [] if name in required]
    if missing:
        url = without_credentials(selection.repository.url) if selection.repository else "the host's own sources"
        yield finding("DriverPackagesMissing", options.subject, {"missing": missing}, packages=", ".join(missing), url=url)


def _needs_key(facts: Facts, selection: Selection) -> bool:
    if selection.repository is None:
        return False
    present = (facts.get("files") or {}).get(files.KEY_PATHS[selection.manager])
    wanted = (facts.get("files") or {}).get(files.REPOSITORY_PATHS[selection.manager])
    return present is None or wanted != sealed(files.repository(selection.manager, selection.repository.url))


def _plan_packages(plan: Plan, facts: Facts, selection: Selection, version: str, needs_packages: bool) -> None:
    """Everything of the driver set is named with its version, so that the transaction cannot come out otherwise than predicted."""
    transaction = ((facts.get("view") or {}).get("transaction") or {}) if needs_packages else {}
    plan.predicted = {part: list(transaction.get(part) or []) for part in TRANSACTION_PARTS}
    named = {*selection.install, *selection.headers}
    coming = [package for part in ("install", "upgrade", "downgrade") for package in plan.predicted[part]]
    going = {package["name"] for package in plan.predicted["remove"]}
    of_the_driver = {name for name in going if in_driver_set(name, selection.manager)}
    # What the old driver pulled in and the new one has no use for, at a version that is none of ours any more.
    stale = {package["name"] for package in read.driver_packages(facts) if package["version"] != version} - _names(coming) if coming else set()
    leaving = {*selection.obsolete, *stale}
    if selection.manager == APT:
        # The prediction removes them in the same transaction, as Ansible's module for apt cannot; what has gone with it by then is no harm here.
        plan.remove_after = sorted(leaving)
        plan.unhold = sorted((going | leaving) & set(facts.get("held") or []))
    else:
        # zypper would ask which generation is to stay; and rpm removes last, when a kernel module of the same version and another flavour, just built,
        # would go with the old one's.
        plan.remove_first = sorted({*leaving, *of_the_driver})
    if coming or going:
        # All by name and version, also what is there already: removing the old module may take along what needs a module.
        whole = {**((facts.get("view") or {}).get("packages") or {}), **{package["name"]: package["full"] for package in coming}}
        wanted = {name: full for name, full in whole.items() if name in named or in_driver_set(name, selection.manager)}
        plan.install = specs(selection.manager, [{"name": name, "full": full} for name, full in wanted.items()])
    if selection.manager == APT:
        plan.hold = [name for name in _names_afterwards(plan, facts) if name not in (facts.get("held") or []) or name in _names(coming)]


def _names(packages: list[dict[str, str]]) -> set[str]:
    return {package["name"] for package in packages}


def _names_afterwards(plan: Plan, facts: Facts) -> list[str]:
    """Return the packages of the driver that the host will have, sorted."""
    gone = {*_names(plan.predicted["remove"]), *plan.remove_first, *plan.remove_after}
    there = {package["name"] for package in facts.get("packages") or []} | _names(plan.predicted["install"])
    return sorted(name for name in there - gone if in_driver_set(name, plan.manager))


def _plan_files(plan: Plan, facts: Facts, selection: Selection, version: str) -> None:
    present = facts.get("files") or {}
    wanted: dict[str, str] = {files.MODPROBE: files.nouveau_blacklist()}
    if selection.repository:
        wanted[files.REPOSITORY_PATHS[selection.manager]] = files.repository(selection.manager, selection.repository.url)
        key = (facts.get("view") or {}).get("key")
        if key:
            wanted[files.KEY_PATHS[selection.manager]] = files.key(key)
    if selection.manager == APT:
        wanted[files.APT_PREFERENCES] = files.apt_preferences(selection.pins, version)
        wanted[files.APT_UNATTENDED] = files.apt_unattended()
    elif selection.manager == DNF:
        wanted[files.DNF_LOCKS] = files.dnf_locks(present.get(files.DNF_LOCKS) or "", selection.pins, version)
        if selection.stream and facts.get("stream") != selection.stream:
            wanted[files.DNF_STREAM] = files.dnf_stream(selection.stream)
    elif selection.manager == ZYPPER:
        before = present.get(files.ZYPPER_LOCKS) or ""
        ours = read.record(facts).get("held") or []
        names = [*_names_afterwards(plan, facts), *selection.packages.unwanted]
        after = files.zypper_locks(before, names, ours)
        if plan.packages_change():
            free = files.zypper_locks(before, [], ours)
            plan.files.update({files.ZYPPER_LOCKS: free} if free != before else {})
            plan.files_after[files.ZYPPER_LOCKS] = after
        elif files.same_locks(after, before):
            pass  # zypper writes them in an order of its own
        else:
            wanted[files.ZYPPER_LOCKS] = after
    plan.files.update({path: text for path, text in wanted.items() if present.get(path) != sealed(text)})


def _plan_services(plan: Plan, facts: Facts, selection: Selection) -> None:
    """Services are started only where the driver that is loaded is theirs, or can be loaded; otherwise the reboot starts them."""
    startable = not plan.packages_change() and not plan.reboot_reasons and not plan.dkms
    there = {package["name"] for package in facts.get("packages") or []} | _names(plan.predicted["install"])
    wanted = {PERSISTENCED: True, FABRIC_MANAGER: selection.fabric_manager}
    for name, on in wanted.items():
        now = read.service(facts, name)
        known = now["present"] or name in there
        active = on if startable or not on else now["active"]
        if known and (now["enabled"], now["active"], now["masked"]) != (on, active, False):
            plan.services.append({"name": name, "enabled": on, "masked": False, "state": "started" if active else None if on else "stopped"})
    if (read.service(facts, IMEX)["present"] or IMEX in there) and not read.service(facts, IMEX)["masked"]:
        # The DRA driver runs the daemons of a ComputeDomain itself, and finds the ports taken where the unit runs.
        plan.services.append({"name": IMEX, "enabled": False, "masked": True, "state": "stopped"})


def _plan_record(plan: Plan, facts: Facts, selection: Selection, release: Release, record: Optional[Record], rollback: bool) -> None:
    if record is None:
        found = read.loaded_module(facts) or {}
        record = first_record(release, read.installed_version(facts), str(found.get("flavour") or selection.flavour))
    record = record.moved_to(release, rollback)
    touched = {**plan.files, **plan.files_after}
    record = record.with_found({path: (facts.get("files") or {}).get(path) for path in touched}, _names(plan.predicted["install"]))
    if facts.get("view"):
        record = replace(record, unavailable=tuple(name for name in facts["view"].get("missing") or [] if name in selection.install))
    if selection.manager == APT:
        record = replace(record, held=tuple(_names_afterwards(plan, facts)))
    elif selection.manager == ZYPPER:
        record = replace(record, held=(*_names_afterwards(plan, facts), *selection.packages.unwanted))
    if any(service["name"] == IMEX for service in plan.services):
        record = replace(record, masked=(IMEX,))
    if selection.manager != APT and selection.repository and plan.packages_change():
        key_id = files.rpm_key_id(selection.repository.fingerprint)
        if key_id not in (facts.get("trusted_keys") or []):
            record = replace(record, trusted_key=key_id)
            plan.import_key = files.RPM_KEY
    plan.record = record.as_dict()
    plan.record_changes = plan.record != facts.get("record")
