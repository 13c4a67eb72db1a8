# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The web server of a sandbox with ``packages: true``: it gives the hosts what lies in the run state's folder ``packages``."""
from __future__ import annotations

import socket
import sys
from pathlib import Path

from . import probes, processes
from .errors import SandboxError
from .nodes.systems import PORT
from .processes import PidFile
from .state import RunState

CHECKOUT = Path(__file__).resolve().parent.parent
NAME = "package-server"
_TIMEOUT_S = 15.0


def start(state: RunState) -> None:
    """Start the server unless it runs, and wait until it answers. Raises SandboxError with the end of its log when it does not."""
    if running(state):
        return
    folder = state.root / "packages"
    folder.mkdir(exist_ok=True)
    gateway = state.addresses.gateway
    command = [sys.executable, "-m", "http.server", "--bind", gateway, "--directory", str(folder), str(PORT)]
    processes.start(command, log(state), pid_file(state), {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUNBUFFERED": "1"}, folder)

    def probe() -> None:
        with socket.create_connection((gateway, PORT), 1):
            pass

    def possible() -> None:
        if not running(state):
            raise SandboxError(probes.with_evidence("the package server has ended.", processes.tail(log(state))))

    probes.wait_for("the package server", probe, _TIMEOUT_S, possible, lambda: processes.tail(log(state)))


def running(state: RunState) -> bool:
    """Whether the server runs."""
    return pid_file(state).running() is not None


def stop(state: RunState) -> None:
    """End the server, if there is one."""
    pid_file(state).stop(grace_s=2)


def pid_file(state: RunState) -> PidFile:
    """Return where the server's process is recorded."""
    return PidFile(state.pids / f"{NAME}.json")


def log(state: RunState) -> Path:
    """Return what the server writes: a line per request."""
    return state.logs / f"{NAME}.log"
