# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Processes that outlive the command which started them: found again by a pid file, and never mistaken for another process.

A process id alone is reused by the kernel. A pid file therefore holds the process's start time too, and a signal is sent through a pidfd
that was opened before the start time was compared.
"""
from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ZOMBIE = "Z"


def boot_id() -> str:
    """Return the id of the machine's current boot: start times are counted from it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class ProcessId:
    """One process and no other: ``start_ticks`` is field 22 of /proc/PID/stat, in clock ticks since boot."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Return the identity of a running process; None when there is none or only a zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        if fields[0] == _ZOMBIE:
            return None
        return cls(pid, int(fields[19]), boot_id())

    def alive(self) -> bool:
        """Tell whether exactly this process still runs."""
        return ProcessId.of(self.pid) == self

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to exactly this process. Returns False when it is gone."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.alive():
                return False
            signal.pidfd_send_signal(descriptor, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)

    def wait_gone(self, timeout_s: float) -> bool:
        """Wait until the process has ended. Returns False when it still runs after ``timeout_s``."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.alive():
                return True
            readable, _, _ = select.select([descriptor], [], [], timeout_s)
            return bool(readable)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class PidFile:
    """Where the identity of a background process is kept."""

    path: Path

    def write(self, pid: int) -> None:
        """Record the running process ``pid``. Raises ProcessLookupError when it has ended already."""
        process = ProcessId.of(pid)
        if process is None:
            raise ProcessLookupError(f"process {pid} has ended")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_name(self.path.name + ".new")
        scratch.write_text(json.dumps({"pid": process.pid, "start_ticks": process.start_ticks, "boot_id": process.boot_id}))
        scratch.rename(self.path)

    def read(self) -> ProcessId | None:
        """Return what was recorded, or None when there is no usable record."""
        try:
            record = json.loads(self.path.read_text())
            return ProcessId(int(record["pid"]), int(record["start_ticks"]), str(record["boot_id"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def running(self) -> ProcessId | None:
        """Return the recorded process if it still runs."""
        process = self.read()
        return process if process is not None and process.alive() else None

    def stop(self, grace_s: float) -> None:
        """End the recorded process: SIGTERM, after ``grace_s`` SIGKILL, and remove the record."""
        process = self.running()
        if process is not None and grace_s > 0:
            process.signal(signal.SIGTERM)
            if process.wait_gone(grace_s):
                process = None
        if process is not None:
            process.signal(signal.SIGKILL)
            process.wait_gone(10)
        self.path.unlink(missing_ok=True)


def start(argv: Sequence[str], log: Path, pid_file: PidFile, env: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
    """Start a background process in a session of its own with stdout and stderr appended to ``log``; record it in ``pid_file``.

    The child records itself before it becomes the program: whenever the starter dies, what runs is recorded. Call it from a process without
    other threads. Raises OSError when the program cannot be run.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        return subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True, env=dict(env), cwd=cwd,
            preexec_fn=lambda: pid_file.write(os.getpid()),
        )


def tail(path: Path, lines: int = 20) -> str:
    """Return the last ``lines`` lines of a log, or an empty string when there is no such file."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 64 * 1024))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
