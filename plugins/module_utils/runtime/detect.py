# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which container runtime the node's pods run in: by the units that systemd knows, and by the processes that they run."""
from __future__ import annotations

import re

from ..reasons import FleetError, finding
from .document import Runtime
from .node import Node, Process, Unit

#: Units of each runtime. k3s and RKE2 bring a containerd of their own (https://docs.k3s.io/advanced, https://docs.rke2.io/advanced).
UNITS = {
    "containerd": ("containerd.service",),
    "crio": ("crio.service", "cri-o.service"),
    "k3s": ("k3s.service", "k3s-agent.service"),
    "rke2": ("rke2-server.service", "rke2-agent.service"),
}
DATA_DIRS = {"k3s": "/var/lib/rancher/k3s", "rke2": "/var/lib/rancher/rke2"}
_EMBEDDED_BINARIES = {"k3s": "data/current/bin/containerd", "rke2": "bin/containerd"}
_CONFIG_FILES = {"containerd": "/etc/containerd/config.toml", "crio": "/etc/crio/crio.conf"}


def detect(node: Node, subject: str, asked: str) -> Runtime:
    """Return the runtime: ``asked`` by name, or with ``auto`` the one that runs, else the one that is enabled, else the one that is installed.

    Raises FleetError CdiRuntimeMissing, CdiRuntimeAmbiguous, CdiRuntimeUnreadable.
    """
    units = node.units([unit for names in UNITS.values() for unit in names])
    candidates = {name: found for name, names in UNITS.items() if asked in (name, "auto") and (found := _first(units, names)) is not None}
    for choice in (_which(candidates, "active"), _which(candidates, "enabled"), candidates):
        if len(choice) == 1:
            (name, unit), = choice.items()
            return _runtime(node, subject, name, unit)
        if choice:
            raise FleetError(finding("CdiRuntimeAmbiguous", subject, units=", ".join(unit.name for unit in choice.values()), names=" or ".join(choice)))
    looked = ", ".join(unit for name, names in UNITS.items() if asked in (name, "auto") for unit in names)
    raise FleetError(finding("CdiRuntimeMissing", subject, units=looked))


def _first(units: dict[str, Unit], names: tuple[str, ...]) -> Unit | None:
    """Return of the units of one runtime the active one, else the first."""
    found = [units[name] for name in names if name in units]
    return next((unit for unit in found if unit.active), found[0] if found else None)


def _which(candidates: dict[str, Unit], state: str) -> dict[str, Unit]:
    return {name: unit for name, unit in candidates.items() if getattr(unit, state)}


def _runtime(node: Node, subject: str, name: str, unit: Unit) -> Runtime:
    pid, binary, config_file = unit.main_pid, unit.program, _CONFIG_FILES.get(name, "")
    if name in DATA_DIRS:
        folder = _data_dir(node, name, unit)
        config_file = f"{folder}/agent/etc/containerd/config.toml"
        binary = f"{folder}/{_EMBEDDED_BINARIES[name]}"
        daemon = next((process for process in node.processes() if process.program == "containerd" and process.option("-c", "--config") == config_file), None)
        pid = daemon.pid if daemon is not None else 0
    else:
        # the unit's variables are filled in only in what runs
        daemon = node.process(pid) if pid else None
        config_file = (daemon or Process(0, unit.command)).option("--config", "-c") or config_file
    version_text = _version(node, subject, binary)
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", version_text)
    if numbers is None:
        raise FleetError(finding("CdiRuntimeUnreadable", subject, binary=binary or unit.name, why=f"it does not tell its version, but: {version_text}"))
    major, minor, patch = (int(number) for number in numbers.groups())
    return Runtime(name, unit.name, unit.active and (pid > 0), pid, binary, (major, minor, patch), numbers[0], config_file)


def _data_dir(node: Node, name: str, unit: Unit) -> str:
    """Return the folder with all that k3s or RKE2 brings: ``--data-dir`` of the running process or of its unit, else the usual one."""
    # the unit's variables are filled in only in what runs
    running = node.process(unit.main_pid) if unit.main_pid else None
    for command in filter(None, (running, Process(0, unit.command))):
        given = command.option("--data-dir", "-d")
        if given and "$" not in given:
            return given.rstrip("/")
    return DATA_DIRS[name]


def _version(node: Node, subject: str, binary: str) -> str:
    """Return what ``--version`` says, without the name of the Go module, which has a v2 in it."""
    if not binary:
        raise FleetError(finding("CdiRuntimeUnreadable", subject, binary="the unit", why="it names no program"))
    shown = node.run([binary, "--version"])
    if shown.status != 0:
        raise FleetError(finding("CdiRuntimeUnreadable", subject, binary=binary, why=shown.last_words))
    return shown.out.strip().splitlines()[0] if shown.out.strip() else "nothing"
