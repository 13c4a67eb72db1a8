# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From the facts of a host and the role's variables to everything that the role does."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..reasons import Finding, FleetError
from .actions import Plan
from .checks import examine
from .facts import Facts
from .installing import Circumstances, plan_installation, rollback_options
from .options import ABSENT, OPERATOR, Options
from .record import read_record
from .removing import plan_removal
from .verification import verify


def plan(facts: Facts, given: Mapping[str, Any]) -> Plan:
    """Return the plan for a host. ``given`` holds the role's variables without their prefix; refusals are findings in it, not exceptions.

    Beside what Options knows, ``rollback`` asks for the version before, and ``node_paused`` says that the node was drained for the change;
    ``ask`` has the repository asked in any case.
    """
    try:
        options = Options.of(given)
        node_paused = bool(given.get("node_paused"))
        record = read_record(facts.get("record"), options.subject)
        if options.state == ABSENT:
            return plan_removal(facts, options, record, node_paused)
        if options.owner == OPERATOR:
            return Plan(findings=examine(facts, options).findings)  # nothing to do; only the host may be in its way
        rollback = bool(given.get("rollback"))
        if rollback:
            options = rollback_options(options, record)
        return plan_installation(facts, options, record, Circumstances(rollback, node_paused, bool(given.get("ask"))))
    except FleetError as error:
        return Plan(findings=[error.finding])


def verdict(facts: Facts, given: Mapping[str, Any], pending: bool) -> list[Finding]:
    """Return what is wrong with the driver after the role's work; ``pending`` says that a reboot is still to come."""
    options = Options.of(given)
    if options.state == ABSENT or options.owner == OPERATOR:
        return []
    if given.get("rollback"):
        options = rollback_options(options, read_record(facts.get("record"), options.subject))
    return verify(facts, options, pending)
