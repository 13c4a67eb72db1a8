# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What speaks against a driver on a host, with the evidence: one small function per check, and :func:`examine`, which asks them all."""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

from ..reasons import Finding, FleetError
from .facts import Facts
from .options import Options
from .selection import Selection, select


class Examination(NamedTuple):
    """The driver for a host, None when there is none to be had, and everything that was found; refusals are the findings of severity error."""

    selection: Optional[Selection]
    findings: list[Finding]


def examine(facts: Facts, options: Options) -> Examination:
    """Return the selection and every finding about the host, not only the first. Works with and without a ``view`` in the facts."""
    try:
        selection: Optional[Selection] = select(facts, options)
        found: list[Finding] = []
    except FleetError as error:
        selection, found = None, [error.finding]
    return Examination(selection, [*found, *_all_checks(facts, options, selection)])


def _all_checks(facts: Facts, options: Options, selection: Optional[Selection]) -> Iterator[Finding]:
    yield from ()
