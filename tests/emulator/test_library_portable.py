# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is compiled here runs on the hosts' Debian 12, whichever newer Debian or Ubuntu compiled it."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sandbox.artifacts.glibc import newest_version
from sandbox.artifacts.images import SOURCES as IMAGE_SOURCES
from sandbox.artifacts.images import compile_program
from sandbox.nvml.build import SOURCE

BOOKWORM = (2, 36)
C_SOURCES = sorted([*(SOURCE / "src").glob("*.c"), *IMAGE_SOURCES.glob("*.c")])


def test_programs_need_no_newer_c_library_than_that_of_the_hosts(emulator_folder: Path, tmp_path: Path) -> None:
    probe = compile_program(IMAGE_SOURCES / "nvml-probe.c", tmp_path / "nvml-probe", "-ldl")
    for file in (emulator_folder / "libnvidia-ml.so.1", emulator_folder / "libcuda.so.1", emulator_folder / "nvidia-smi", probe):
        assert newest_version(file) <= BOOKWORM, file.name


@pytest.mark.parametrize("source", C_SOURCES, ids=lambda path: path.name)
def test_no_source_asks_for_the_number_parsers_of_c23(source: Path) -> None:
    """With _GNU_SOURCE, glibc 2.38 and later bind strtol, sscanf and their like to names that older ones do not have."""
    text = source.read_text()
    assert not ("_GNU_SOURCE" in text and re.search(r"\b(strto[a-z]+|v?[fs]?w?scanf|ato[il]l?)\s*\(", text))


def test_sources_compile_without_warnings(tmp_path: Path) -> None:
    for command in (
        ["make", "-C", str(SOURCE), f"OUT={tmp_path / 'driver'}", "WERROR=-Werror"],
        *(["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", "-o", "/dev/null", str(source)] for source in IMAGE_SOURCES.glob("*.c")),
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
