# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Container images: the same bytes for the same content, complete parents, and programs that find their libraries."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from sandbox.artifacts import ArtifactError
from sandbox.artifacts.archive import Image
from sandbox.artifacts.images import SOURCES, compile_program, shared_libraries

SYSTEM_LIBRARIES = Path("/lib/x86_64-linux-gnu")


def sample(tmp_path: Path) -> Image:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    image = Image("sandbox.local/sample:1", {"Entrypoint": ["/usr/bin/program"]})
    image.files = {"usr/bin/program": (program, 0o755), "etc/passwd": (b"root:x:0:0::/:/bin/sh\n", 0o644)}
    image.links = {"bin/sh": "busybox"}
    image.folders = {"tmp"}
    return image


def test_an_archive_has_the_same_bytes_whenever_it_is_made(tmp_path: Path) -> None:
    image = sample(tmp_path)
    image.write(tmp_path / "one.tar")
    os.utime(tmp_path / "program", (time.time() - 9000, time.time() - 9000))
    image.files = dict(reversed(image.files.items()))
    image.write(tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    image.files["etc/passwd"] = (b"other\n", 0o644)
    image.write(tmp_path / "three.tar")
    assert (tmp_path / "one.tar").read_bytes() != (tmp_path / "three.tar").read_bytes()


def test_an_archive_is_what_container_runtimes_load(tmp_path: Path) -> None:
    sample(tmp_path).write(tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as outer:

        def content(name: str) -> bytes:
            stream = outer.extractfile(name)
            assert stream is not None
            return stream.read()

        (manifest,) = json.loads(content("manifest.json"))
        assert manifest["RepoTags"] == ["sandbox.local/sample:1"]
        config = json.loads(content(manifest["Config"]))
        assert manifest["Config"] == hashlib.sha256(content(manifest["Config"])).hexdigest() + ".json"
        assert config["config"] == {"Entrypoint": ["/usr/bin/program"]}
        layer = content(manifest["Layers"][0])
        assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
    (tmp_path / "layer.tar").write_bytes(layer)
    with tarfile.open(tmp_path / "layer.tar") as inner:
        members = {member.name: member for member in inner}
        order = inner.getnames()
    assert order.index("usr") < order.index("usr/bin") < order.index("usr/bin/program")
    assert members["usr/bin/program"].mode == 0o755
    assert members["bin/sh"].linkname == "busybox"
    assert members["tmp"].mode == 0o1777
    assert {member.mtime for member in members.values()} == {0}
    assert {(member.uid, member.gid) for member in members.values()} == {(0, 0)}


def test_pause_holds_until_it_is_told_to_end(tmp_path: Path) -> None:
    process = subprocess.Popen([compile_program(SOURCES / "pause.c", tmp_path / "pause", "-static")])
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.terminate()
    assert process.wait(5) == 0


def test_nvml_probe_says_in_json_that_there_is_no_driver(tmp_path: Path) -> None:
    probe = compile_program(SOURCES / "nvml-probe.c", tmp_path / "nvml-probe", "-ldl")
    done = subprocess.run([probe], capture_output=True, text=True, check=False, env={"LD_LIBRARY_PATH": str(tmp_path)})
    if "cannot be loaded" not in done.stdout:
        pytest.skip("this machine has a libnvidia-ml.so.1 of its own")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"error": "libnvidia-ml.so.1 cannot be loaded"}


def test_libraries_of_libraries_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "root/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    for name in ("outer", "inner"):
        (tmp_path / f"{name}.c").write_text(f"int {name}(void) {{ return 0; }}\n")
    compile_program(tmp_path / "inner.c", folder / "libinner.so", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libinner.so")
    compile_program(tmp_path / "outer.c", folder / "libouter.so", "-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed", folder / "libinner.so")
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    program = compile_program(tmp_path / "main.c", tmp_path / "main", "-Wl,--no-as-needed", folder / "libouter.so", f"-Wl,-rpath-link,{folder}")
    with pytest.raises(ArtifactError, match=r"needs libc\.so\.6, which the root file system .* does not have"):
        shared_libraries(program, tmp_path / "root")
    for name in ("libc.so.6", "ld-linux-x86-64.so.2"):
        shutil.copy(SYSTEM_LIBRARIES / name, folder / name)
    found = shared_libraries(program, tmp_path / "root")
    assert {"libinner.so", "libc.so.6"} < found


def test_a_compiler_error_is_shown(tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text("int main(void) { return missing; }\n")
    with pytest.raises(ArtifactError, match=r"compiling bad\.c: gcc ended with status 1(.|\n)*missing"):
        compile_program(tmp_path / "bad.c", tmp_path / "bad")
