# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A sandbox that tests start themselves, driven through its command line as a user does."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from sandbox import machine_state

ROOT = Path(__file__).resolve().parents[2]
H100 = "h100-80gb-hbm3"


def lasting_differences(before: machine_state.MachineState, timeout_s: float = 5) -> list[str]:
    """Return how the machine differs from ``before`` for good: what other programs do in passing has ended within ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = machine_state.differences(before, machine_state.take())
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


class RunningSandbox:
    """The commands of one sandbox. Commands raise AssertionError with what was said unless they succeed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command and return how it ended."""
        environment = {key: value for key, value in os.environ.items() if key != "GPUFLEET_SANDBOX"}
        return subprocess.run(
            [sys.executable, "-m", "sandbox", "--name", self.name, *arguments],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
        )

    def run(self, *arguments: str) -> str:
        """Run one command and return its stdout."""
        done = self.command(*arguments)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def up(self, document: dict[str, Any]) -> str:
        """Bring the sandbox up with the spec ``document``; returns its progress lines."""
        spec = self.folder / "fleet.yml"
        spec.write_text(yaml.safe_dump(document))
        done = self.command("up", "--spec", str(spec))
        assert done.returncode == 0, done.stderr
        return done.stderr

    def status(self) -> dict[str, Any]:
        """Return the status document."""
        document: dict[str, Any] = json.loads(self.run("status", "--json"))
        return document

    def kubectl(self, *arguments: str) -> dict[str, Any]:
        """Return the object that a `kubectl get` gives."""
        document: dict[str, Any] = json.loads(self.run("kubectl", *arguments, "--output=json"))
        return document
