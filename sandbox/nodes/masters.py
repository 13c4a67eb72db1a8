# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ssh masters that Ansible leaves behind: shared connections to hosts, which live on for a minute after the last play."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path


def end(folder: Path) -> None:
    """End all masters whose sockets lie in ``folder``; one that is gone already is fine."""
    for socket in folder.glob("*"):
        command = ["ssh", "-F", "/dev/null", "-o", f"ControlPath={socket}", "-O", "exit", "host"]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def running(folder: Path) -> list[int]:
    """Return the ids of the masters whose sockets lie, or lay, in ``folder``: each calls itself ``ssh: SOCKET [mux]``."""
    title = b"ssh: " + os.fsencode(folder) + b"/"
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(title):
                found.append(int(process.name))
        except OSError:
            continue  # ended meanwhile
    return sorted(found)
