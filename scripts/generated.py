# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the scripts share that write pages of the documentation."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path


def write_or_check(description: str | None, pages: Mapping[Path, str]) -> int:
    """Write the pages; with --check, only tell which are not what they should be. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 when a page is out of date")
    check = parser.parse_args().check
    stale = {path: text for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        if check:
            print(f"{path} is out of date: run {sys.argv[0]}", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0
