# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ssh masters that outlive a playbook are found by what they call themselves, and asked to end."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sandbox.nodes import masters


def test_masters_are_told_from_other_processes(tmp_path: Path) -> None:
    folder = tmp_path / "cp"
    titles = [f"ssh: {folder}/0123456789 [mux]", f"ssh: {tmp_path}/other/0123456789 [mux]"]
    started = [subprocess.Popen([title, "60"], executable="sleep") for title in titles]
    try:
        assert masters.running(folder) == [started[0].pid]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert masters.running(folder) == []


def test_each_master_is_asked_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0123456789").touch()
    asked: list[list[str]] = []
    monkeypatch.setattr(masters.subprocess, "run", lambda command, **_: asked.append(command))
    masters.end(tmp_path)
    masters.end(tmp_path / "absent")
    assert asked == [["ssh", "-F", "/dev/null", "-o", f"ControlPath={tmp_path}/0123456789", "-O", "exit", "host"]]
