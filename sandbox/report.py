# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a sandbox tells about itself: status, memory, logs."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import package_server, processes
from .control_plane.plane import COMPONENTS, ControlPlane
from .errors import SandboxError
from .nodes import cgroups
from .nodes.hosts import Hosts
from .nodes.record import HostRecord
from .processes import PidFile
from .state import RunState

_UNITS = ("emulated-nvidia-driver.service", "containerd.service", "kubelet.service")


def status(state: RunState) -> dict[str, Any]:
    """Return plain data: name, running, index, kubernetes_version, server, kubeconfig, components, nodes, memory_mib (proportional)."""
    if not state.exists:
        return {"name": state.name, "exists": False, "running": False}
    record = state.read()
    plane = ControlPlane(state) if record["kubernetes"] else None
    hosts = Hosts(state, plane)
    nodes = [_node(hosts, host) for host in hosts.all()]
    components = [_component(name, plane.pid_file(name), plane.log(name)) for name in COMPONENTS] if plane else []
    if record.get("packages"):
        components.append(_component(package_server.NAME, package_server.pid_file(state), package_server.log(state)))
    return {
        "name": state.name,
        "exists": True,
        "running": all(row["running"] for row in components) and all(row["ready"] for row in nodes),
        "index": record["index"],
        "kubernetes_version": record["kubernetes_version"],
        "server": plane.server if plane else None,
        "kubeconfig": str(state.admin_kubeconfig) if plane else None,
        "components": components,
        "nodes": nodes,
        "memory_mib": sum(row["memory_mib"] for row in [*components, *nodes]),
    }


def status_text(document: dict[str, Any]) -> str:
    """Return a status document as a person reads it."""
    if not document["exists"]:
        return f"sandbox {document['name']} does not exist"
    lines = [f"sandbox {document['name']}: {'up' if document['running'] else 'not all of it is up'}, {document['memory_mib']} MiB"]
    if document["server"]:
        lines.append(f"Kubernetes {document['kubernetes_version']} at {document['server']}, kubeconfig {document['kubeconfig']}")
    for row in document["components"]:
        lines.append(f"  {row['name']:<26} {'running' if row['running'] else 'ENDED':<10} {row['memory_mib']:>5} MiB")
    for row in document["nodes"]:
        gpus = ", ".join(f"{group['count']}x {group['model']}" for group in row["gpus"]) or "no GPU"
        word = "ready" if row["ready"] else "not ready" if row["running"] else "off"
        lines.append(f"  {row['name']:<26} {word:<10} {row['memory_mib']:>5} MiB  {row['address']:<15} {gpus}")
    return "\n".join(lines)


def log_names(state: RunState) -> list[str]:
    """Return what has logs: components and nodes."""
    plane = ControlPlane(state) if state.read()["kubernetes"] else None
    return [*(COMPONENTS if plane else ()), *(host.name for host in Hosts(state, plane).all())]


def log_text(state: RunState, name: str, lines: int) -> str:
    """Return the end of one component's or node's logs, each under a heading. Raises SandboxError for an unknown name."""
    known = log_names(state)
    if name not in known:
        raise SandboxError(f"there is no log of {name}; there are logs of {', '.join(known)}.")
    plane = ControlPlane(state) if state.read()["kubernetes"] else None
    if plane is not None and name in COMPONENTS:
        return f"== {name}\n{processes.tail(plane.log(name), lines)}"
    hosts = Hosts(state, plane)
    host = hosts.get(name)
    parts = {"supervisor": processes.tail(host.supervisor_log, lines), "console": processes.tail(host.console, lines)}
    parts.update({unit: hosts.journal(host, unit, lines) for unit in _UNITS})
    return "\n".join(f"== {name}: {part}\n{text}" for part, text in parts.items() if text)


def proportional_memory_mib(pids: Iterable[int]) -> int:
    """Return the memory of the processes in MiB, shared pages split among those that share them (PSS)."""
    total_kib = 0
    for pid in pids:
        try:
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # ended meanwhile, or a kernel thread
        total_kib += sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total_kib // 1024


def _component(name: str, pid_file: PidFile, log: Path) -> dict[str, Any]:
    process = pid_file.running()
    return {
        "name": name,
        "running": process is not None,
        "pid": process.pid if process else None,
        "memory_mib": proportional_memory_mib([process.pid] if process else []),
        "log": str(log),
    }


def _node(hosts: Hosts, host: HostRecord) -> dict[str, Any]:
    process = host.pid_file.running()
    pids = cgroups.members(host.groups()) | ({process.pid} if process else set())
    return {
        "name": host.name,
        "address": host.address,
        "running": process is not None,
        "ready": hosts.ready(host),
        "gpus": host.spec["gpus"],
        "memory_mib": proportional_memory_mib(pids),
        "log": str(host.console),
    }
