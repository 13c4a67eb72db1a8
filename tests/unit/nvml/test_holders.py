# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who holds a GPU, found among real processes below a root of the test's own."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml import holders
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.holders import Handle, open_handles, scan_handles

FACTS: dict[str, Any] = {"gpus": [
    {"minor": 0, "mig": {"instances": []}},
    {"minor": 3, "mig": {"instances": [
        {"gpu_instance_id": 9, "compute_instances": [{"compute_instance_id": 0}]}, {"gpu_instance_id": 2, "compute_instances": []}]}},
]}
CAPABILITY_MINORS = {"gpu3/mig/gi9/access": 462, "gpu3/mig/gi9/ci0/access": 463, "gpu3/mig/gi2/access": 411, "mig/monitor": 2}
# Opens the files that are its arguments, says so, and removes itself from the world when its standard input ends.
HOLDER = "import sys; files = [open(path) for path in sys.argv[1:]]; print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Start a process that holds device nodes below ``tmp_path`` and shows up in its /proc; returns the pid."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "dev/nvidia-caps").mkdir(parents=True)
    for name, minor in CAPABILITY_MINORS.items():
        access = tmp_path / "proc/driver/nvidia/capabilities" / name
        access.parent.mkdir(parents=True, exist_ok=True)
        access.write_text(f"DeviceFileMinor: {minor}\nDeviceFileMode: 256\nDeviceFileModify: 1\n")

    def start(*nodes: str) -> int:
        for node in nodes:
            (tmp_path / "dev" / node).touch()
        paths = [str(tmp_path / "dev" / node) for node in nodes]
        process = subprocess.Popen([sys.executable, "-c", HOLDER, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        (tmp_path / "proc" / str(process.pid)).symlink_to(f"/proc/{process.pid}")
        return process.pid

    yield start
    for process in started:
        process.communicate("")


def test_open_device_nodes_name_process_gpu_and_instance(hold: Callable[..., int], tmp_path: Path) -> None:
    first = hold("nvidia0", "nvidiactl", "nvidia-uvm")
    second = hold("nvidia3", "nvidia-caps/nvidia-cap462", "nvidia-caps/nvidia-cap463")
    name = Path(f"/proc/{first}/comm").read_text().strip()
    device = f"{tmp_path}/dev/"
    assert open_handles(FACTS, str(tmp_path)) == sorted([
        Handle(first, name, device + "nvidia0", 0, None),
        Handle(second, name, device + "nvidia-caps/nvidia-cap462", 3, 9),
        Handle(second, name, device + "nvidia-caps/nvidia-cap463", 3, 9, 0),
        Handle(second, name, device + "nvidia3", 3, None),
    ], key=lambda handle: (handle.pid, handle.path))


def test_capability_devices_of_no_instance_have_no_gpu_and_other_gpus_are_left_out(hold: Callable[..., int], tmp_path: Path) -> None:
    pid = hold("nvidia-caps/nvidia-cap2", "nvidia-caps/nvidia-cap999", "nvidia7", "nvidia0")
    held = [(item.pid, Path(item.path).name, item.gpu_minor, item.gpu_instance_id) for item in open_handles(FACTS, str(tmp_path))]
    assert held == [(pid, "nvidia-cap2", None, None), (pid, "nvidia-cap999", None, None), (pid, "nvidia0", 0, None)]


def test_a_node_that_was_removed_is_still_held(hold: Callable[..., int], tmp_path: Path) -> None:
    hold("nvidia-caps/nvidia-cap411")
    (tmp_path / "dev/nvidia-caps/nvidia-cap411").unlink()
    assert [(item.gpu_instance_id, Path(item.path).name) for item in open_handles(FACTS, str(tmp_path))] == [(2, "nvidia-cap411")]


def test_this_process_is_left_out_and_what_has_ended_does_not_matter(hold: Callable[..., int], tmp_path: Path) -> None:
    pid = hold("nvidia0")
    (tmp_path / "proc" / str(os.getpid())).symlink_to(f"/proc/{os.getpid()}")
    (tmp_path / "proc/999999999").mkdir()
    with open(tmp_path / "dev/nvidia0", encoding="ascii"):
        assert {item.pid for item in open_handles(FACTS, str(tmp_path))} == {pid}


def test_processes_that_may_not_be_looked_at_are_counted(hold: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, hidden = hold("nvidia0"), hold("nvidia3")
    listdir = os.listdir

    def refuse(path: Any) -> list[str]:
        if Path(path) == tmp_path / "proc" / str(hidden) / "fd":
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    monkeypatch.setattr(holders.os, "listdir", refuse)
    found = scan_handles(FACTS, str(tmp_path))
    assert ([item.pid for item in found.handles], found.unreadable) == ([shown], 1)


def test_a_driver_without_capability_files_hides_no_holder_of_the_gpu(tmp_path: Path, hold: Callable[..., int]) -> None:
    pid = hold("nvidia3", "nvidia-caps/nvidia-cap462")
    for name in CAPABILITY_MINORS:
        (tmp_path / "proc/driver/nvidia/capabilities" / name).unlink()
    assert [(item.pid, item.gpu_minor) for item in open_handles(FACTS, str(tmp_path))] == [(pid, None), (pid, 3)]


def test_users_of_any_device_file_need_no_facts(hold: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, hidden = hold("nvidiactl", "nvidia0"), hold("nvidia-caps/nvidia-cap2", "null"), hold("nvidia0")
    hold("null")
    (tmp_path / "proc/999999999").mkdir()
    listdir = os.listdir

    def refuse(path: Any) -> list[str]:
        if Path(path) == tmp_path / "proc" / str(hidden) / "fd":
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    monkeypatch.setattr(holders.os, "listdir", refuse)
    name = Path(f"/proc/{first}/comm").read_text().strip()
    device = f"{tmp_path}/dev/"
    assert holders.device_file_users(str(tmp_path)) == sorted([
        holders.DeviceFileUser(first, name, [device + "nvidia0", device + "nvidiactl"]),
        holders.DeviceFileUser(second, name, [device + "nvidia-caps/nvidia-cap2"]),
    ])
