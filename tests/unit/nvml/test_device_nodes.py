# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Device nodes of MIG instances, made in a tree that looks like /proc and /dev; files stand for the nodes, which only root can make."""
from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.device_nodes import make_device_nodes

NVML = {
    "gpus": [
        {"minor": 3, "mig": {"instances": [{"gpu_instance_id": 7, "compute_instances": [{"compute_instance_id": 0}]}]}},
        {"minor": 4, "mig": {"instances": []}},
    ]
}
MINORS = {"access": 471, "ci0/access": 472}


class Tree:
    """The tree; ``made`` lists what was made as (name, type and mode, device number)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: list[tuple[str, int, int]] = []
        for name, minor in MINORS.items():
            self.write(f"proc/driver/nvidia/capabilities/gpu3/mig/gi7/{name}", f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
        self.write("proc/devices", "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-caps\n\nBlock devices:\n254 virtblk\n")
        (root / "dev").mkdir()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def mknod(self, path: str, mode: int, device: int) -> None:
        Path(path).touch()
        self.made.append((str(Path(path).relative_to(self.root)), mode, device))

    def make(self, driver_root: str = "/", mknod: Any = None) -> list[str]:
        return make_device_nodes(NVML, driver_root, str(self.root), mknod or self.mknod)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_nodes_of_gpu_and_compute_instances_are_made_with_the_drivers_numbers_and_mode(tree: Tree) -> None:
    assert tree.make() == []
    kind = stat.S_IFCHR | 0o444
    assert tree.made == [(f"dev/nvidia-caps/nvidia-cap{minor}", kind, os.makedev(511, minor)) for minor in (471, 472)]
    assert stat.S_IMODE((tree.root / "dev/nvidia-caps/nvidia-cap471").stat().st_mode) == 0o444


def test_nodes_that_exist_are_left_alone(tree: Tree) -> None:
    tree.write("dev/nvidia-caps/nvidia-cap471", "")
    tree.make()
    tree.make()
    assert [name for name, _mode, _device in tree.made] == ["dev/nvidia-caps/nvidia-cap472"]


def test_a_driver_in_a_container_has_its_own_dev(tree: Tree) -> None:
    tree.write("run/nvidia/driver/dev/nvidiactl", "")
    assert tree.make("/run/nvidia/driver") == []
    assert tree.made[0][0] == "run/nvidia/driver/dev/nvidia-caps/nvidia-cap471"


def test_nothing_is_said_where_the_driver_has_no_capability_files(tmp_path: Path) -> None:
    assert make_device_nodes(NVML, "/", str(tmp_path)) == []


def test_a_driver_that_is_told_to_leave_its_nodes_alone_is_obeyed(tree: Tree) -> None:
    for name in MINORS:
        tree.write(f"proc/driver/nvidia/capabilities/gpu3/mig/gi7/{name}", "DeviceFileMinor: 471\nDeviceFileMode: 292\nDeviceFileModify: 0\n")
    assert (tree.make(), tree.made) == ([], [])


def refuse(_path: str, _mode: int, _device: int) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize(
    ("change", "mknod", "says"),
    [
        (lambda tree: None, refuse, "Operation not permitted"),
        (lambda tree: tree.write("proc/devices", "Character devices:\n"), None, "has no nvidia-caps"),
        (lambda tree: tree.write("proc/driver/nvidia/capabilities/gpu3/mig/gi7/access", "nonsense"), None, "has no DeviceFileMinor"),
        (lambda tree: (tree.root / "proc/driver/nvidia/capabilities/gpu3/mig/gi7/access").unlink(), None, "No such file"),
    ],
)
def test_what_cannot_be_made_is_said_with_the_remedy(tree: Tree, change: Any, mknod: Any, says: str) -> None:
    change(tree)
    problem = tree.make(mknod=mknod)[0]
    assert says in problem and "gpu3/mig/gi7/access" in problem and "nvidia-smi -L" in problem
