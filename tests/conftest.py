# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Puts the collection on sys.path under its real name, as Ansible does."""
from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLLECTIONS = ROOT / ".build" / "collections"

if not (COLLECTIONS / "ansible_collections" / "gpufleet" / "dra").exists():
    raise RuntimeError("the collection is not laid out under .build/collections: run `make env` first")
for entry in (str(COLLECTIONS), str(ROOT)):
    if entry not in sys.path:
        sys.path.insert(0, entry)
