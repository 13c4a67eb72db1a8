# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The node layer: what lies where on a host, with which modes; the emulator stands for its compiled files."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sandbox.artifacts import ArtifactError, glibc, nodelayer
from sandbox.artifacts.nodelayer import emulated_driver, make_layer
from sandbox.nvml.build import BuildError


def write(path: Path, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(path.name)
    path.chmod(mode)
    return path


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    folder = tmp_path / "driver"
    for name in ("libnvidia-ml", "libcuda"):
        write(folder / f"{name}.so.1.2.3", 0o755)
        (folder / f"{name}.so.1").symlink_to(f"{name}.so.1.2.3")
    for name in ("nvidia-smi", "nvmlctl"):
        write(folder / name, 0o755)
    return folder


def test_a_layer_is_laid_out_as_a_host_expects_it(tmp_path: Path, driver: Path) -> None:
    files = tmp_path / "files"
    write(files / "etc/systemd/system/kubelet.service", 0o600)
    write(files / "usr/local/lib/sandbox/proc-hook", 0o700)
    (files / "etc/link").symlink_to("systemd")
    (files / "etc").chmod(0o700)
    programs = {"kubelet": write(tmp_path / "assets/kubelet", 0o755)}
    archives = {"sandbox.local/pause:1": write(tmp_path / "images/pause.tar")}
    place = tmp_path / "layer"
    before = os.umask(0o077)
    try:
        make_layer(place, files, programs, archives, driver)
    finally:
        os.umask(before)
    found = {str(path.relative_to(place)): path for path in place.rglob("*") if not path.is_dir() or path.is_symlink()}
    modes = {name: os.readlink(path) if path.is_symlink() else oct(path.stat().st_mode & 0o777) for name, path in found.items()}
    assert modes == {
        "etc/link": "systemd",
        "etc/systemd/system/kubelet.service": "0o644",
        "opt/images/pause.tar": "0o644",
        "usr/bin/nvidia-smi": "0o755",
        "usr/lib/x86_64-linux-gnu/libcuda.so.1": "libcuda.so.1.2.3",
        "usr/lib/x86_64-linux-gnu/libcuda.so.1.2.3": "0o755",
        "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "libnvidia-ml.so.1.2.3",
        "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1.2.3": "0o755",
        "usr/local/bin/kubelet": "0o755",
        "usr/local/lib/sandbox/libnvidia-ml.so.1": "0o755",
        "usr/local/bin/nvmlctl": "0o755",
        "usr/local/lib/sandbox/proc-hook": "0o755",
    }
    assert {oct(path.stat().st_mode & 0o777) for path in place.rglob("*") if path.is_dir()} == {"0o755"}
    assert not (place / "usr/bin/nvidia-smi").is_symlink(), "the plugin takes nvidia-smi only as a regular file"


def test_an_emulator_that_does_not_compile_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise BuildError("The NVML emulator does not compile: no")

    monkeypatch.setattr(nodelayer, "build", refuse)
    with pytest.raises(ArtifactError, match="does not compile: no"):
        emulated_driver()


def test_a_program_for_a_newer_c_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"libc.so.6": (2, 36), "old": (2, 4), "static": (), "new": (2, 38)}
    monkeypatch.setattr(glibc, "newest_version", lambda file: versions[file.name])
    glibc.check_runs_on(tmp_path, [tmp_path / "old", tmp_path / "static"])
    with pytest.raises(ArtifactError, match=r"new, compiled on this machine, needs glibc 2\.38, but the hosts have 2\.36: choose a newer Debian"):
        glibc.check_runs_on(tmp_path, [tmp_path / "old", tmp_path / "new"])


def test_the_needed_c_library_is_read_from_the_file(tmp_path: Path) -> None:
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text("#include <stdio.h>\nint main(void) { return puts(\"x\") < 0; }\n")
    subprocess.run(["gcc", "-o", program, tmp_path / "program.c"], check=True)
    assert (2, 2, 5) <= glibc.newest_version(program) <= glibc.newest_version(Path("/") / glibc.LIBC)
    assert glibc.newest_version(tmp_path / "program.c") == ()
