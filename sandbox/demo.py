# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""`make demo`: the main job on this machine. Arguments go to ansible-playbook."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import artifacts, spec
from .artifacts.host import DISK_COLD_GIB, DISK_WARM_GIB, MEMORY_GIB
from .environment import CHECKOUT, complete_path, environment
from .errors import SandboxError
from .inventory import report_folder
from .lifecycle import Sandbox
from .state import RunState

NAME = "default"


def main(arguments: Sequence[str]) -> int:
    """Prepare, start, converge, show. Returns ansible-playbook's status, or 1 when it could not be started."""
    os.umask(0o022)
    os.environ["PATH"] = complete_path(os.environ.get("PATH", ""))
    progress = artifacts.Progress.to_terminal()
    try:
        settings = artifacts.Settings.from_environment()
        _announce(settings, progress)
        sandbox = Sandbox(RunState(settings.cache, NAME), settings, progress)
        # one that exists has its disk and memory already
        problems = artifacts.check_machine() if sandbox.state.exists else artifacts.check_requirements(settings)
        if problems:
            for problem in problems:
                progress.note(f"demo: {problem}")
            return 1
        artifacts.install_host_packages(progress)
        sandbox.up(spec.load(spec.DEFAULT_SPEC))
    except (SandboxError, artifacts.ArtifactError) as error:
        progress.note(f"demo: {error}")
        return 1
    started = time.time()
    status = _site(settings, arguments)
    for line in verdict_lines(report_folder(settings, NAME) / "verdict.json", started):
        print(line)
    return status


def verdict_lines(verdict: Path, since: float) -> list[str]:
    """Return the table of a verdict and, last, where it lies; nothing when there is none from after ``since``, as after a run in check mode."""
    if not verdict.exists() or verdict.stat().st_mtime < since:
        return []
    return ["", *json.loads(verdict.read_text(encoding="utf-8"))["text"], f"verdict as JSON: {verdict}"]


def _announce(settings: artifacts.Settings, progress: artifacts.Progress) -> None:
    warm = any(settings.store.root.glob("nodelayer-*"))
    disk, minutes = (DISK_WARM_GIB, "about 2 minutes") if warm else (DISK_COLD_GIB, "15 to 30 minutes on 2 cores, once: Kubernetes is built from source")
    progress.note(
        f"This demo needs root, an x86-64 Debian or Ubuntu, {disk} GiB of disk below {settings.cache}, {MEMORY_GIB} GiB of memory, and {minutes}."
    )


def _site(settings: artifacts.Settings, arguments: Sequence[str]) -> int:
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")), "--inventory", str(CHECKOUT / "inventories" / "sandbox"),
        str(CHECKOUT / "playbooks" / "site.yml"), *arguments,
    ]
    return subprocess.run(command, cwd=CHECKOUT, env=environment(settings.cache, NAME), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
