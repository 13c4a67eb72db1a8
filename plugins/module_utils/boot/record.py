# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state file of the boot service: how its last run ended, for people, for monitoring and for the next run."""
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

VERSION = 1
OK, FAILED = "ok", "failed"


def read_record(path: str) -> dict[str, Any]:
    """Return what the last run left, {} when there was none or its file cannot be used: a run must not depend on the one before."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) and raw.get("version") == VERSION else {}


def write_record(path: str, fields: dict[str, Any]) -> None:
    """Write the state file by rename, on disk when this returns. Raises OSError.

    ``fields``: result (ok or failed), boot_id, started and finished (UTC), changed, executed (steps as text), device_names (None when not known), warnings,
    plugin_kept_off (this service has set the Node's label so), and after a failure reason, object, sentence and remedy.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.new")
    target.parent.mkdir(parents=True, exist_ok=True)
    with draft.open("w", encoding="utf-8") as stream:
        json.dump({"version": VERSION, **fields}, stream, indent=2, sort_keys=True)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(target)


def now() -> str:
    """Return the time as RFC 3339 in UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def boot_id() -> str:
    """Return the kernel's id of the present boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
