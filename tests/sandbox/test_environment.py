# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The environment of programs that work with a sandbox, and the demo's own checks."""
from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.report import document
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.verdict import Row, Verdict

from sandbox import artifacts, demo
from sandbox.environment import complete_path, environment
from sandbox.state import RunState

ANSIBLE = Path(sys.executable).with_name("ansible")


@pytest.mark.parametrize(
    ("path", "completed"),
    [
        ("", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("/opt/x:/usr/bin:/bin", "/opt/x:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin"),
    ],
)
def test_a_path_without_sbin_is_completed(path: str, completed: str) -> None:
    assert complete_path(path) == completed
    assert complete_path(completed) == completed


def test_everything_is_written_below_the_cache(tmp_path: Path) -> None:
    made = environment(tmp_path, "box", {"PATH": "/usr/bin", "LANG": "C.UTF-8"})
    assert made["LANG"] == "C.UTF-8" and made["GPUFLEET_SANDBOX"] == "box"
    places = {key: value for key, value in made.items() if key not in ("PATH", "LANG", "GPUFLEET_SANDBOX", "ANSIBLE_CONFIG", "ANSIBLE_SSH_ARGS")}
    assert {"ANSIBLE_HOME", "TMPDIR", "KUBECACHEDIR", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} <= places.keys()
    assert all(Path(value).is_relative_to(tmp_path) for value in places.values())
    assert Path(made["TMPDIR"]).is_dir()


def test_connections_are_shared_only_where_a_socket_can_lie(tmp_path: Path) -> None:
    fixed = len(f"{tmp_path}/") + len("/run/box/cp")
    for length, shared in ((79 - fixed, True), (80 - fixed, False)):
        if length < 1:
            pytest.skip("the folder for this test's files has a long name itself")
        cache = tmp_path / ("x" * length)
        made = environment(cache, "box", {})
        assert ("ANSIBLE_SSH_CONTROL_PATH_DIR" in made, "ANSIBLE_SSH_ARGS" in made) == (shared, not shared)
        if shared:
            folder = Path(made["ANSIBLE_SSH_CONTROL_PATH_DIR"])
            folder.mkdir(parents=True)
            with socket.socket(socket.AF_UNIX) as while_made:
                while_made.bind(f"{folder}/0123456789.0123456789abcdef")


def test_ansible_leaves_nothing_at_home(tmp_path: Path) -> None:
    made = environment(tmp_path / "cache", "box", {**os.environ, "HOME": str(tmp_path / "home")})
    command = [ANSIBLE, "localhost", "-i", "elsewhere,", "-m", "ansible.builtin.command", "-a", "true"]
    subprocess.run(command, env=made, cwd=tmp_path, capture_output=True, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


@pytest.mark.parametrize(("exists", "asked"), [(False, ["requirements"]), (True, ["machine"])])
def test_the_demo_asks_for_disk_and_memory_once(
    exists: bool, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUFLEET_SANDBOX_CACHE", str(tmp_path))
    if exists:
        RunState(tmp_path, demo.NAME).create({"kubernetes": True})
    seen: list[str] = []
    monkeypatch.setattr(artifacts, "check_requirements", lambda settings: [seen.append("requirements") or "no memory"])
    monkeypatch.setattr(artifacts, "check_machine", lambda: [seen.append("machine") or "no root"])
    assert demo.main([]) == 1
    assert seen == asked


def test_the_demo_ends_with_the_table_and_the_place_of_the_verdict(tmp_path: Path) -> None:
    gpu = {"index": 0, "product": "NVIDIA H100 80GB HBM3", "uuid": "GPU-1"}
    report = document(Verdict([], [Row("h100-1", gpu, "MIG off", ("gpu-0",), "right")], {}), "gpu.nvidia.com", "2026-11-30T12:00:00Z")
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    lines = demo.verdict_lines(path, 0)
    assert any(line.split() == ["h100-1", "0", "NVIDIA", "H100", "80GB", "HBM3", "MIG", "off", "1", "right"] for line in lines)
    assert str(path) in lines[-1]
    assert demo.verdict_lines(path, path.stat().st_mtime + 1) == []
