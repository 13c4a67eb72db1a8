# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the look at a container runtime reads of the node: commands, files, units, processes. Nothing here changes anything."""
from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 60
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Output:
    """A finished command. ``status`` is 127 when the program is not there and 124 when it did not end in time."""

    status: int
    out: str
    err: str

    @property
    def last_words(self) -> str:
        """Return the last line that it wrote, for a sentence."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return lines[-1] if lines else f"it ended with status {self.status} and said nothing"


@dataclass(frozen=True)
class Unit:
    """A systemd unit: ``main_pid`` is 0 when it does not run; ``program`` is the path in its first ExecStart, ``command`` the whole of it."""

    name: str
    loaded: bool
    active: bool
    enabled: bool
    main_pid: int
    command: tuple[str, ...]

    @property
    def program(self) -> str:
        """Return the program's path, or nothing."""
        return self.command[0] if self.command else ""


@dataclass(frozen=True)
class Process:
    """A running process with its command line."""

    pid: int
    command: tuple[str, ...]

    @property
    def program(self) -> str:
        """Return the file name of the first argument."""
        return os.path.basename(self.command[0]) if self.command else ""

    def option(self, *names: str) -> str | None:
        """Return the value of the first of the options ``names``, given as ``--name value`` or ``--name=value``."""
        for at, argument in enumerate(self.command):
            for name in names:
                if argument == name and at + 1 < len(self.command):
                    return self.command[at + 1]
                if argument.startswith(f"{name}="):
                    return argument[len(name) + 1:]
        return None


class Node:
    """The node that the module runs on. ``root`` is another folder for /proc in tests."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = Path(proc)

    def run(self, command: Sequence[str]) -> Output:
        """Run a command with the C locale and the usual PATH."""
        environment = {**os.environ, "LC_ALL": "C", "PATH": _PATH}
        try:
            # run_command knows no time limit.
            # pylint: disable-next=ansible-bad-function
            done = subprocess.run(list(command), stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_TIMEOUT_S, check=False)
        except OSError as error:
            return Output(127, "", f"{command[0]}: {error.strerror}")
        except subprocess.TimeoutExpired:
            return Output(124, "", f"{command[0]} did not end within {_TIMEOUT_S} s")
        return Output(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def which(self, program: str) -> str | None:
        """Return where a program is, None when it is nowhere."""
        return shutil.which(program, path=_PATH)

    def read(self, path: str) -> str | None:
        """Return the text of a file, None when it is not there. Raises OSError and UnicodeDecodeError."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def changed_at(self, path: str) -> float | None:
        """Return when a file or folder was last changed (its content or what it is), in seconds since the epoch; of a link the later of link and target."""
        try:
            stats = (os.lstat(path), os.stat(path))
        except OSError:
            return None
        return max(max(stat.st_mtime, stat.st_ctime) for stat in stats)

    def units(self, names: Sequence[str]) -> dict[str, Unit]:
        """Return the loaded ones of the units ``names``."""
        shown = self.run(["systemctl", "show", "--no-pager", "--property=Id,LoadState,ActiveState,UnitFileState,MainPID,ExecStart", *names])
        found = {}
        for block in shown.out.split("\n\n"):
            # ExecStart may stand there several times
            fields: dict[str, str] = {}
            for line in block.splitlines():
                key, _equals, value = line.partition("=")
                fields.setdefault(key, value)
            unit = Unit(
                name=fields.get("Id", ""),
                loaded=fields.get("LoadState") == "loaded",
                active=fields.get("ActiveState") in ("active", "reloading", "activating"),
                enabled=fields.get("UnitFileState", "").startswith("enabled"),
                main_pid=int(fields.get("MainPID") or 0),
                command=_command(fields.get("ExecStart", "")),
            )
            if unit.loaded:
                found[unit.name] = unit
        return found

    def processes(self) -> Iterator[Process]:
        """Yield the processes that can be read; kernel threads have no command line."""
        for folder in sorted(self._proc.iterdir()):
            if folder.name.isdigit():
                process = self.process(int(folder.name))
                if process is not None and process.command:
                    yield process

    def process(self, pid: int) -> Process | None:
        """Return a process by its id, None when it is gone."""
        try:
            raw = (self._proc / str(pid) / "cmdline").read_bytes()
        except OSError:
            return None
        return Process(pid, tuple(part.decode("utf-8", "replace") for part in raw.split(b"\0")[:-1]))

    def started_at(self, pid: int) -> float | None:
        """Return when a process was started, in seconds since the epoch, to some 10 ms; None when it is gone."""
        try:
            stat = (self._proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        ticks = int(stat.rpartition(")")[2].split()[19])  # field 22; the name in field 2 may hold anything, so count from its end
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - age


def _command(shown: str) -> tuple[str, ...]:
    """Return the arguments in what systemctl shows of ExecStart: ``{ path=/usr/bin/x ; argv[]=/usr/bin/x --option ; ...``."""
    path = shown.partition("path=")[2].partition(" ;")[0].strip()
    arguments = shown.partition("argv[]=")[2].partition(" ;")[0].split()
    return (path, *arguments[1:]) if path else ()


def node_name() -> str:
    """Return the node's own name, for messages."""
    return platform.node() or "node"
