# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""JMESPath over results and verdicts."""
from __future__ import annotations

import sys
from typing import Any

from ..reasons import Finding, FleetError, finding

try:
    import jmespath
except ImportError:
    HAS_JMESPATH = False
else:
    HAS_JMESPATH = True


def search(query: str, document: Any, subject: str) -> Any:
    """Return what ``query`` gives over ``document``. Raises LibraryMissing, or InvalidQuery about ``subject``."""
    if not HAS_JMESPATH:
        raise FleetError(finding("LibraryMissing", subject, library="jmespath", python=sys.executable))
    try:
        return jmespath.search(query, document)
    except jmespath.exceptions.JMESPathError as error:
        raise FleetError(finding("InvalidQuery", subject, query=query, why=" ".join(str(error).split()))) from None


def unmet(expectations: list[dict[str, Any]], document: Any) -> list[Finding]:
    """Return an ExpectationFailed for each of ``expectations`` ({name, query, equals}) whose query gives another value."""
    findings = []
    for item in expectations:
        found = search(item["query"], document, item["name"])
        if found != item["equals"]:
            fields = {"query": item["query"], "expected": item["equals"], "found": found}
            findings.append(finding("ExpectationFailed", item["name"], fields, **fields))
    return findings
