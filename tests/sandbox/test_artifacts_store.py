# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The store publishes whole artifacts only, once, whoever builds and whatever interrupts."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.artifacts.store import Store, digest, tree_digest

ROOT = Path(__file__).resolve().parents[2]

#: A builder in a process of its own: notes each build in a log, and takes long enough to collide with another or to be killed.
BUILDER = """
import sys, time
from pathlib import Path
from sandbox.artifacts.store import Store
root, log, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
def build(place):
    with log.open("a") as stream:
        stream.write("build\\n")
    (place / "half").write_text("half")
    time.sleep(seconds)
    (place / "whole").write_text("whole")
print(Store(root).publish("thing", "key", build))
"""


def start_builder(store: Path, log: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(store), str(log), str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)


def fill(place: Path) -> None:
    (place / "file").write_text("content")


def wait_for_text(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, f"{path} stayed empty"
        time.sleep(0.01)


def test_an_artifact_is_built_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    built: list[Path] = []

    def build(place: Path) -> None:
        built.append(place)
        fill(place)

    first = store.publish("tool", "abc", build)
    assert store.publish("tool", "abc", build) == first == tmp_path / "tool-abc"
    assert (first / "file").read_text() == "content"
    assert len(built) == 1


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def build(place: Path) -> None:
        fill(place)
        raise KeyboardInterrupt

    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        store.publish("tool", "abc", build)
    assert store.find("tool", "abc") is None
    assert [entry.name for entry in tmp_path.iterdir()] == [".locks"]


def test_two_processes_at_once_build_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    builders = [start_builder(tmp_path / "store", log, 0.5) for _ in range(3)]
    places = {builder.communicate(timeout=30)[0].strip() for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    assert places == {str(tmp_path / "store" / "thing-key")}
    assert log.read_text() == "build\n"


def test_a_killed_builder_is_swept_and_its_artifact_built_again(tmp_path: Path) -> None:
    log, root = tmp_path / "log", tmp_path / "store"
    victim = start_builder(root, log, 60)
    wait_for_text(log)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    store = Store(root)
    assert store.find("thing", "key") is None
    assert len(list(root.glob(".thing-key.*"))) == 1
    place = store.publish("thing", "key", fill)
    assert [entry.name for entry in place.iterdir()] == ["file"]
    assert list(root.glob(".thing-key.*")) == []


def test_digest_depends_on_every_part_and_on_nothing_else() -> None:
    assert digest(["a", "b"]) == digest(["a", "b"])
    assert digest({"x": 1, "y": 2}) == digest({"y": 2, "x": 1})
    assert len({digest(["a", "b"]), digest(["ab"]), digest(["a", "b", ""]), digest(["b", "a"])}) == 4


@pytest.mark.parametrize("change", ["content", "mode", "name", "link", "none", "bytecode"])
def test_tree_digest_sees_what_matters(tmp_path: Path, change: str) -> None:
    (tmp_path / "folder").mkdir()
    script = tmp_path / "folder" / "script"
    script.write_text("echo")
    (tmp_path / "link").symlink_to("folder")
    before = tree_digest(tmp_path)
    if change == "content":
        script.write_text("echo 2")
    elif change == "mode":
        script.chmod(0o755)
    elif change == "name":
        script.rename(tmp_path / "folder" / "other")
    elif change == "link":
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("elsewhere")
    elif change == "bytecode":
        (tmp_path / "folder" / "__pycache__").mkdir()
        (tmp_path / "folder" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert (tree_digest(tmp_path) == before) is (change in ("none", "bytecode"))


def test_tree_digest_leaves_out_what_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("package a")
    before = tree_digest(tmp_path, without=("*_test.go", "fakeapi"))
    (tmp_path / "a_test.go").write_text("package a")
    (tmp_path / "fakeapi" / "deeper").mkdir(parents=True)
    (tmp_path / "fakeapi" / "deeper" / "b.go").write_text("package b")
    assert tree_digest(tmp_path, without=("*_test.go", "fakeapi")) == before != tree_digest(tmp_path)
