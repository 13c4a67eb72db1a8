# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Emulated machines for tests. NVML is used from subprocesses: it is loaded with LD_LIBRARY_PATH, which counts at process start."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.nvml.build import build

PRELUDE = """
import ctypes, json, os, sys
import pynvml as nvml

def device(index=0):
    return nvml.nvmlDeviceGetHandleByIndex(index)

def placement(start, size):
    return ctypes.pointer(nvml.c_nvmlGpuInstancePlacement_t(start, size))

def code_of(call, *arguments):
    try:
        call(*arguments)
    except nvml.NVMLError as error:
        return error.value
    return 0

result = None
"""


@dataclass(frozen=True)
class Machine:
    """An emulated machine in a directory of its own.

    ``folder`` holds the library, nvidia-smi and nvmlctl; ``env`` is the environment for processes that shall see the machine.
    """

    directory: Path
    folder: Path
    env: dict[str, str]

    def python(self, code: str, init: bool = True, **env: str) -> Any:
        """Run a snippet with pynvml as ``nvml`` (initialised, unless told not to); returns what it leaves in ``result``."""
        start = "nvml.nvmlInit()\n" if init else ""
        text = PRELUDE + start + textwrap.dedent(code) + "\nprint(json.dumps(result))\n"
        done = self.run([sys.executable, "-c", text], **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command that sees the machine."""
        return subprocess.run(command, env={**self.env, **env}, capture_output=True, text=True, timeout=300)

    def ctl(self, *arguments: str) -> str:
        """Run nvmlctl; fails the test if it refuses."""
        done = self.run([str(self.folder / "nvmlctl"), *arguments])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def show(self) -> dict[str, Any]:
        """The machine's state."""
        return dict(json.loads(self.ctl("show", "--json")))

    def layout(self, gpu: int = 0) -> list[tuple[str, int]]:
        """(profile, start) of the GPU's instances, by start."""
        instances = self.show()["gpus"][gpu]["instances"]
        return sorted(((item["profile"], item["start"]) for item in instances), key=lambda item: item[1])

    def mark(self) -> None:
        """Put a marker into the call log."""
        self.ctl("mark")

    def calls(self, mutating: bool = True) -> list[dict[str, Any]]:
        """The calls logged since the last marker, by default only those that change something."""
        arguments = ["log", "--since-marker", *(["--mutating"] if mutating else [])]
        return [json.loads(line) for line in self.ctl(*arguments).splitlines()]


@pytest.fixture(scope="session")
def emulator_folder() -> Path:
    """The folder with the built emulator."""
    return build()


@pytest.fixture
def nvml_machine(tmp_path: Path, emulator_folder: Path) -> Callable[..., Machine]:
    """Makes machines: ``nvml_machine("h100-80gb-hbm3", "a100-80gb-pcie:2")``. May be called several times in a test."""
    made: list[Machine] = []

    def make(*models: str, options: tuple[str, ...] = (), folder: Path = emulator_folder) -> Machine:
        directory = tmp_path / f"machine{len(made)}" / "nvml-emulator"
        env = {
            **os.environ,
            "LD_LIBRARY_PATH": str(folder),
            "NVML_EMULATOR_DIR": str(directory),
            "NVML_EMULATOR_UID": "0",
        }
        machine = Machine(directory, folder, env)
        machine.ctl("create", *(item for model in models for item in ("--gpu", model)), *options)
        made.append(machine)
        return machine

    return make
