# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How long nvidia_driver and cdi_runtime take on a host that is as they want it, against as many `ping` tasks in the same run (see README.md).

Ends with status 1 when the roles change something then, or execute more modules on a host than they may.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import yaml

from sandbox.artifacts import cache_folder
from sandbox.environment import environment

NAME = "bench"
MOST_EXECUTIONS = 12
SETTINGS = 'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n'
ROLES = ("nvidia_driver", "cdi_runtime")
FLEET = {
    "kubernetes": False, "packages": True,
    "nodes": [{"name": "bench-1", "gpus": [{"model": "h100-80gb-hbm3", "count": 8}], "driver": "none"}],
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run of a playbook: changed tasks, module executions by host and play, and the wall time of each play in seconds."""

    changed: int
    executions: Counter[str]
    seconds: dict[str, float]


class Bench:
    """The playbooks of the bench against one sandbox."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.variables: dict[str, Any] = {"nvidia_driver_branch": "580", "nvidia_driver_reboot_ok": True}
        self.environment = {
            **environment(cache_folder(), name), "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests" / "callbacks"), "ANSIBLE_CALLBACKS_ENABLED": "module_executions",
            "MODULE_EXECUTIONS_FILE": str(folder / "executions.json"),
        }  # fmt: skip

    def command(self, *arguments: str | Path) -> str:
        """Run a program of the checkout; raises SystemExit with what it said unless it succeeds."""
        done = subprocess.run([str(part) for part in arguments], cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def python(self, *arguments: str | Path) -> str:
        """Run a module of the checkout."""
        return self.command(sys.executable, "-m", *arguments)

    def play(self, *plays: dict[str, Any]) -> Run:
        """Run a playbook of these plays."""
        playbook = self.folder / "bench.yml"
        playbook.write_text(yaml.safe_dump(list(plays), sort_keys=False))
        program = Path(sys.executable).with_name("ansible-playbook")
        output = self.command(program, "-i", ROOT / "inventories" / "sandbox" / "00-connection", playbook, "-e", json.dumps(self.variables))
        document = json.loads((self.folder / "executions.json").read_text())
        return Run(
            sum(int(part.removeprefix("changed=")) for part in output.split() if part.startswith("changed=")),
            Counter(row["host"] for row in document["executions"] if row["task"] != "Ping"),
            {row["name"]: row["seconds"] for row in document["plays"]},
        )


def roles_play() -> dict[str, Any]:
    """The play with both roles."""
    return {"name": "roles", "hosts": "sandbox_hosts", "gather_facts": False, "roles": [f"gpufleet.dra.{role}" for role in ROLES]}


def runtime_play() -> dict[str, Any]:
    """A play that starts the container runtime, which hosts outside of a cluster have but do not run."""
    tasks = [
        {"name": "Make the folder", "ansible.builtin.file": {"path": "/etc/containerd", "state": "directory", "mode": "0755"}},
        {"name": "Write settings", "ansible.builtin.copy": {"content": SETTINGS, "dest": "/etc/containerd/config.toml", "mode": "0644"}},
        {"name": "Start containerd", "ansible.builtin.systemd_service": {"name": "containerd.service", "state": "started"}},
    ]
    return {"name": "runtime", "hosts": "sandbox_hosts", "gather_facts": False, "tasks": tasks}


def pings_play(count: int) -> dict[str, Any]:
    """A play with ``count`` tasks of one module execution each, the cheapest that there is."""
    return {"name": "pings", "hosts": "sandbox_hosts", "gather_facts": False, "tasks": [{"name": "Ping", "ansible.builtin.ping": {}}] * count}


def measure(bench: Bench, repeats: int) -> int:
    """Install, then time runs that change nothing. Returns the exit status."""
    bench.play(runtime_play(), roles_play())
    settled = bench.play(roles_play())
    most = max(settled.executions.values())
    print(f"a run without changes: {settled.changed} changed, module executions by host: {dict(settled.executions)} (at most {MOST_EXECUTIONS})")
    ratios = []
    for _number in range(repeats):
        timed = bench.play(pings_play(1), roles_play(), pings_play(most))
        roles, pings = timed.seconds["roles"], timed.seconds["pings"]
        ratios.append(roles / pings)
        print(f"  both roles {roles:5.2f} s   {most} pings {pings:5.2f} s   ratio {roles / pings:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")
    return 1 if settled.changed or most > MOST_EXECUTIONS else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="timed runs (default: %(default)s)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(NAME, Path(scratch))
        spec = bench.folder / "fleet.yml"
        spec.write_text(yaml.safe_dump(FLEET))
        try:
            bench.python("sandbox", "--name", NAME, "up", "--spec", spec)
            published = json.loads(bench.python("tests.packages", "publish", "--sandbox", NAME))
            bench.variables |= {"nvidia_driver_mirror_url": published["url"], "nvidia_driver_repository_key_fingerprint": published["fingerprint"]}
            return measure(bench, options.repeats)
        finally:
            bench.python("sandbox", "--name", NAME, "down")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
