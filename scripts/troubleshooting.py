#!/usr/bin/env python3
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write docs/troubleshooting.md from the reason registry; with --check, fail when the file is not what the registry says."""
from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".build" / "collections"))

from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import REASONS
from generated import write_or_check

PAGE = ROOT / "docs" / "troubleshooting.md"
HEAD = """# Troubleshooting: every reason code

Each failure and each finding of this collection carries one of these codes, in brackets at the end of its sentence and as `reason` in results
and reports. Words in `<angle brackets>` are filled in with the object's own values. This page is generated from
`plugins/module_utils/reason_rows` by `scripts/troubleshooting.py`.
"""


def placeholder(text: str) -> str:
    """Return a registry template with its fields shown as <field>."""
    return re.sub(r"\{(\w+)[^}]*\}", r"`<\1>`", text)


def page() -> str:
    parts = [HEAD]
    for code in sorted(REASONS):
        reason = REASONS[code]
        parts.append(f"\n## {code}\n\nSeverity: {reason.severity}\n\n- Cause: {placeholder(reason.cause)}.\n- Remedy: {placeholder(reason.remedy)}\n")
    return "".join(parts)


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, {PAGE: page()}))
