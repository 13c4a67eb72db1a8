# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Background processes: found again, never mistaken for another one."""
from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import probes, processes
from sandbox.errors import SandboxError
from sandbox.processes import PidFile, ProcessId


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_recorded_process_is_found_and_stopped(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    pid_file = PidFile(tmp_path / "pids" / "sleeper.json")
    pid_file.write(sleeper.pid)
    assert pid_file.running() == ProcessId.of(sleeper.pid)
    pid_file.stop(grace_s=5)
    assert sleeper.wait(5) == -signal.SIGTERM
    assert pid_file.running() is None and not pid_file.path.exists()


def test_another_process_with_the_recorded_id_is_left_alone(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    pid_file = PidFile(tmp_path / "stale.json")
    pid_file.write(sleeper.pid)
    for field, value in (("start_ticks", 1), ("boot_id", "of an earlier boot")):
        stale = json.loads(pid_file.path.read_text())
        stale[field] = value
        other = PidFile(tmp_path / f"{field}.json")
        other.path.write_text(json.dumps(stale))
        assert other.running() is None
        other.stop(grace_s=1)
        assert sleeper.poll() is None
        recorded = ProcessId.of(sleeper.pid)
        assert recorded is not None
        assert dataclasses.replace(recorded, **{field: value}).signal(signal.SIGKILL) is False
    assert sleeper.poll() is None


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None and stubborn.stdout.readline() == b"ready\n"
        pid_file = PidFile(tmp_path / "stubborn.json")
        pid_file.write(stubborn.pid)
        pid_file.stop(grace_s=0.2)
        assert stubborn.wait(5) == -signal.SIGKILL


def test_a_zombie_counts_as_ended(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    deadline = time.monotonic() + 5
    while ProcessId.of(child) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ProcessId.of(child) is None
    with pytest.raises(ProcessLookupError):
        PidFile(tmp_path / "zombie.json").write(child)
    os.waitpid(child, 0)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"pid": "x", "start_ticks": 1, "boot_id": ""}'])
def test_a_broken_pid_file_means_nothing_runs(content: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(content)
    assert PidFile(tmp_path / "p.json").running() is None


def test_start_writes_to_the_log_and_outlives_its_starter(tmp_path: Path) -> None:
    pid_file = PidFile(tmp_path / "p.json")
    process = processes.start(["sh", "-c", "echo said; exec sleep 60"], tmp_path / "logs" / "p.log", pid_file, dict(os.environ), tmp_path)
    try:
        probes.wait_for("the log", lambda: _expect(processes.tail(tmp_path / "logs" / "p.log") == "said"), 5)
        assert os.getsid(process.pid) == process.pid
    finally:
        pid_file.stop(grace_s=0)
        process.wait()


def test_what_runs_is_recorded_even_if_the_starter_dies_at_once(tmp_path: Path) -> None:
    starter = """
        import os, pathlib, subprocess, sys
        from sandbox import processes
        real = subprocess.Popen
        def start_and_die(*arguments, **options):
            real(*arguments, **options)
            os._exit(9)
        processes.subprocess.Popen = start_and_die
        folder = pathlib.Path(sys.argv[1])
        processes.start(["sleep", "60"], folder / "log", processes.PidFile(folder / "p.json"), os.environ, folder)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(starter), str(tmp_path)], check=False).returncode == 9
    process = PidFile(tmp_path / "p.json").running()
    assert process is not None
    assert Path(f"/proc/{process.pid}/cmdline").read_bytes() == b"sleep\0" + b"60\0"
    process.signal(signal.SIGKILL)


def test_tail_gives_the_last_lines_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_text("".join(f"line {number} {'x' * 100}\n" for number in range(5000)))
    assert [line.split()[1] for line in processes.tail(log, 3).splitlines()] == ["4997", "4998", "4999"]
    assert processes.tail(tmp_path / "absent") == ""


def test_waiting_ends_at_the_deadline_with_the_last_reason_and_the_log() -> None:
    with pytest.raises(SandboxError) as caught:
        probes.wait_for("x", lambda: _expect(False), 0.2, evidence=lambda: "last words")
    assert str(caught.value) == "x was not ready after 0 s: not as expected. Its log ends with:\nlast words"


def test_waiting_ends_at_once_when_it_has_become_pointless() -> None:
    def impossible() -> None:
        raise SandboxError("x has ended.")

    started = time.monotonic()
    with pytest.raises(SandboxError, match=r"x has ended\."):
        probes.wait_for("x", lambda: _expect(False), 60, impossible)
    assert time.monotonic() - started < 1


def _expect(condition: bool) -> None:
    if not condition:
        raise probes.NotYet("not as expected")
