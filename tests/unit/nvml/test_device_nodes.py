# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Device nodes of MIG instances, in a tree that looks like /proc and /dev; files stand for the nodes, which only root can make."""
from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.device_nodes import NodeChanges, NodeSystem, put_device_nodes_right, wrong_device_nodes

NVML = {
    "gpus": [
        {"minor": 3, "mig": {"instances": [{"gpu_instance_id": 7, "compute_instances": [{"compute_instance_id": 0}]}]}},
        {"minor": 4, "mig": {"instances": []}},
    ]
}
EMPTY: dict[str, Any] = {"gpus": [{"minor": 3, "mig": {"instances": []}}]}
MINORS = {"access": 471, "ci0/access": 472}
CAPS_MAJOR = 511


class Tree:
    """The tree. ``made`` lists what was made as (name, type and mode, device number); ``devices`` holds the device number of each file that is a node."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: list[tuple[str, int, int]] = []
        self.devices: dict[str, int] = {}
        for name, minor in MINORS.items():
            self.write(f"proc/driver/nvidia/capabilities/gpu3/mig/gi7/{name}", f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
        self.write("proc/driver/nvidia-caps/mig-minors", "config 1\nmonitor 2\ngpu3/gi7/access 471\ngpu3/gi7/ci0/access 472\n")
        self.write("proc/devices", f"Character devices:\n  1 mem\n195 nvidia\n{CAPS_MAJOR} nvidia-caps\n\nBlock devices:\n254 virtblk\n")
        (root / "dev").mkdir()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def node(self, name: str, device: int, mode: int) -> None:
        """Put a node there that somebody else made."""
        self.write(name, "")
        (self.root / name).chmod(mode)
        self.devices[str(self.root / name)] = device

    def mknod(self, path: str, mode: int, device: int) -> None:
        Path(path).touch()
        self.devices[path] = device
        self.made.append((str(Path(path).relative_to(self.root)), mode, device))

    def lstat(self, path: str) -> Any:
        found = os.lstat(path)
        if path not in self.devices:
            return found
        return SimpleNamespace(st_mode=stat.S_IFCHR | stat.S_IMODE(found.st_mode), st_rdev=self.devices[path])

    def put_right(self, before: dict[str, Any] = EMPTY, after: dict[str, Any] = NVML, driver_root: str = "/", mknod: Any = None) -> NodeChanges:
        return put_device_nodes_right(before, after, driver_root, str(self.root), NodeSystem(mknod or self.mknod, self.lstat))

    def wrong(self) -> list[str]:
        return [str(Path(path).relative_to(self.root)) for path in wrong_device_nodes(NVML, "/", str(self.root), NodeSystem(self.mknod, self.lstat))]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def names(paths: list[str]) -> list[str]:
    return [Path(path).name for path in paths]


def test_nodes_of_gpu_and_compute_instances_are_made_with_the_drivers_numbers_and_mode(tree: Tree) -> None:
    assert names(tree.wrong()) == ["nvidia-cap471", "nvidia-cap472"]
    changes = tree.put_right()
    assert names(changes.made) == ["nvidia-cap471", "nvidia-cap472"] and changes.problems == [] and changes.removed == []
    kind = stat.S_IFCHR | 0o444
    assert tree.made == [(f"dev/nvidia-caps/nvidia-cap{minor}", kind, os.makedev(CAPS_MAJOR, minor)) for minor in (471, 472)]
    assert stat.S_IMODE((tree.root / "dev/nvidia-caps/nvidia-cap471").stat().st_mode) == 0o444
    assert tree.wrong() == []


def test_nodes_that_are_right_are_left_alone(tree: Tree) -> None:
    tree.put_right()
    tree.made.clear()
    assert (tree.put_right(NVML), tree.made) == (NodeChanges(), [])


@pytest.mark.parametrize(("device", "mode"), [
    (os.makedev(CAPS_MAJOR - 1, 471), 0o444),
    (os.makedev(CAPS_MAJOR, 470), 0o444),
    (os.makedev(CAPS_MAJOR, 471), 0o400),
])
def test_a_node_with_another_number_or_mode_is_made_anew(tree: Tree, device: int, mode: int) -> None:
    tree.node("dev/nvidia-caps/nvidia-cap471", device, mode)
    assert "dev/nvidia-caps/nvidia-cap471" in tree.wrong()
    assert names(tree.put_right().made) == ["nvidia-cap471", "nvidia-cap472"]
    assert tree.devices[str(tree.root / "dev/nvidia-caps/nvidia-cap471")] == os.makedev(CAPS_MAJOR, 471)


def test_a_plain_file_in_place_of_a_node_is_replaced(tree: Tree) -> None:
    tree.write("dev/nvidia-caps/nvidia-cap471", "")
    assert names(tree.put_right().made) == ["nvidia-cap471", "nvidia-cap472"]


def test_nodes_of_instances_that_are_gone_are_removed_and_no_others(tree: Tree) -> None:
    tree.put_right()
    tree.node("dev/nvidia-caps/nvidia-cap999", os.makedev(CAPS_MAJOR, 999), 0o444)
    changes = tree.put_right(before=NVML, after=EMPTY)
    assert sorted(names(changes.removed)) == ["nvidia-cap471", "nvidia-cap472"]
    assert sorted(path.name for path in (tree.root / "dev/nvidia-caps").iterdir()) == ["nvidia-cap999"]


def test_what_is_no_node_of_the_driver_is_not_removed(tree: Tree) -> None:
    tree.write("dev/nvidia-caps/nvidia-cap471", "somebody's file")
    assert tree.put_right(before=NVML, after=EMPTY) == NodeChanges()


def test_nothing_is_removed_where_the_driver_has_no_table(tree: Tree) -> None:
    tree.put_right()
    (tree.root / "proc/driver/nvidia-caps/mig-minors").unlink()
    assert tree.put_right(before=NVML, after=EMPTY) == NodeChanges()


def test_a_driver_in_a_container_has_its_own_dev(tree: Tree) -> None:
    tree.write("run/nvidia/driver/dev/nvidiactl", "")
    assert tree.put_right(driver_root="/run/nvidia/driver").problems == []
    assert tree.made[0][0] == "run/nvidia/driver/dev/nvidia-caps/nvidia-cap471"


def test_nothing_is_said_where_the_driver_has_no_capability_files(tmp_path: Path) -> None:
    assert put_device_nodes_right(EMPTY, NVML, "/", str(tmp_path)) == NodeChanges()
    assert wrong_device_nodes(NVML, "/", str(tmp_path)) == []


def test_a_driver_that_is_told_to_leave_its_nodes_alone_is_obeyed(tree: Tree) -> None:
    for name in MINORS:
        tree.write(f"proc/driver/nvidia/capabilities/gpu3/mig/gi7/{name}", "DeviceFileMinor: 471\nDeviceFileMode: 292\nDeviceFileModify: 0\n")
    assert (tree.put_right(), tree.made, tree.wrong()) == (NodeChanges(), [], [])


def refuse(_path: str, _mode: int, _device: int) -> None:
    raise PermissionError(1, "Operation not permitted")


def make_nothing_of_the_kind(path: str, _mode: int, _device: int) -> None:
    Path(path).touch()


@pytest.mark.parametrize(
    ("change", "mknod", "says"),
    [
        (lambda tree: None, refuse, "Operation not permitted"),
        (lambda tree: None, make_nothing_of_the_kind, "is not what it was made as"),
        (lambda tree: tree.write("proc/devices", "Character devices:\n"), None, "has no nvidia-caps"),
        (lambda tree: tree.write("proc/driver/nvidia/capabilities/gpu3/mig/gi7/access", "nonsense"), None, "has no DeviceFileMinor"),
        (lambda tree: (tree.root / "proc/driver/nvidia/capabilities/gpu3/mig/gi7/access").unlink(), None, "No such file"),
    ],
)
def test_what_cannot_be_made_is_said_with_the_remedy(tree: Tree, change: Any, mknod: Any, says: str) -> None:
    change(tree)
    problem = tree.put_right(mknod=mknod).problems[0]
    assert says in problem and "gpu3/mig/gi7/access" in problem and "nvidia-smi -L" in problem
