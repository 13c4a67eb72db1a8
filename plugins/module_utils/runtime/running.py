# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the running daemon has of its configuration, which may be older than the files; and which pods run under it."""
from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from .document import Cdi, Runtime
from .node import Node, Process

_START_LOG_S = 60  # a daemon logs its configuration within this time of its start
_SLACK_S = 0.05  # how exact the start of a process and the times of files are


def running_cdi(node: Node, runtime: Runtime) -> Cdi | None:
    """Return the CDI settings of the running containerd, as it tells through crictl or wrote to its journal; None when neither tells."""
    if not runtime.pid:
        return None
    return _from_crictl(node, runtime) or _from_journal(node, runtime)


def _from_crictl(node: Node, runtime: Runtime) -> Cdi | None:
    # k3s and RKE2 bring theirs beside their containerd
    program = os.path.join(os.path.dirname(runtime.binary), "crictl") if runtime.embedded else node.which("crictl")
    if program is None:
        return None
    shown = node.run([program, "--runtime-endpoint", f"unix://{_socket(node, runtime)}", "info"])
    try:
        config = json.loads(shown.out)["config"] if shown.status == 0 else None
    except (ValueError, KeyError, TypeError):
        return None
    return _from_json(config, "crictl info")


def _socket(node: Node, runtime: Runtime) -> str:
    process = node.process(runtime.pid)
    given = process.option("-a", "--address") if process is not None else None
    return given or ("/run/k3s/containerd/containerd.sock" if runtime.embedded else "/run/containerd/containerd.sock")


def _from_journal(node: Node, runtime: Runtime) -> Cdi | None:
    """Read what containerd logs at its start: 2.x its configuration as JSON, 1.7 as Go prints it."""
    started = node.started_at(runtime.pid)
    if started is None:
        return None
    when = [f"--since=@{int(started) - 1}", f"--until=@{int(started) + _START_LOG_S}"]
    shown = node.run(["journalctl", f"_PID={runtime.pid}", *when, "--output=cat", "--no-pager", "--quiet"])
    for line in reversed(shown.out.splitlines() if shown.status == 0 else []):
        if "tarting cri plugin" in line:
            found = re.search(r'config="((?:[^"\\]|\\.)*)"', line)
            try:
                config = json.loads(json.loads(f'"{found[1]}"')) if found is not None else None
            except ValueError:
                return None
            return _from_json(config, "journal")
        if "Start cri plugin with config" in line:
            enabled, dirs = re.search(r"\bEnableCDI:(true|false)\b", line), re.search(r"\bCDISpecDirs:\[([^\]]*)\]", line)
            return Cdi(enabled[1] == "true", tuple(dirs[1].split()), "journal") if enabled is not None and dirs is not None else None
    return None


def _from_json(config: Any, source: str) -> Cdi | None:
    if not isinstance(config, dict) or not isinstance(config.get("cdiSpecDirs"), list):
        return None
    # without the key it is a containerd that has no switch any more
    return Cdi(config.get("enableCDI", True) is not False, tuple(str(folder) for folder in config["cdiSpecDirs"]), source)


def newer_files(node: Node, runtime: Runtime, paths: Sequence[str]) -> list[str]:
    """Return those of the files and folders that were changed after the daemon was started."""
    started = node.started_at(runtime.pid) if runtime.pid else None
    if started is None:
        return []
    times = {path: node.changed_at(path) for path in dict.fromkeys(paths)}
    return [path for path, changed in times.items() if changed is not None and changed > started + _SLACK_S]


def pods(node: Node, runtime: Runtime) -> list[str]:
    """Return what runs under the runtime: pods as namespace/name, other containers by their id. Sorted, each once."""
    found: set[str] = set()
    for process in node.processes():
        if runtime.name == "crio" and process.program in ("conmon", "conmonrs", "conmon-rs"):
            found.add(_of_conmon(node, process))
        elif runtime.name != "crio" and process.program.startswith("containerd-shim") and _shim_of(runtime, process):
            found.add(_of_shim(node, process))
    return sorted(found)


def _shim_of(runtime: Runtime, process: Process) -> bool:
    """Return whether a shim belongs to the runtime: those of k3s and RKE2 have their own socket."""
    return (process.option("-address", "--address") or "").startswith("/run/k3s/") == runtime.embedded


def _of_shim(node: Node, process: Process) -> str:
    identity = process.option("-id", "--id") or f"process {process.pid}"
    namespace = process.option("-namespace", "--namespace") or "default"
    state = os.path.dirname(process.option("-address", "--address") or "/run/containerd/containerd.sock")
    bundle = f"{state}/io.containerd.runtime.v2.task/{namespace}/{identity}"
    name = _annotated(node, bundle, "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name")
    return name or f"container {identity[:13]}"


def _of_conmon(node: Node, process: Process) -> str:
    bundle = process.option("-b", "--bundle") or ""
    name = _annotated(node, bundle, "io.kubernetes.pod.namespace", "io.kubernetes.pod.name") if bundle else None
    return name or f"container {(process.option('-c', '--cid') or str(process.pid))[:13]}"


def _annotated(node: Node, bundle: str, namespace: str, name: str) -> str | None:
    """Return namespace/name from the annotations of a container's bundle, None when they are not there."""
    try:
        annotations = json.loads(node.read(f"{bundle}/config.json") or "{}").get("annotations") or {}
        return f"{annotations[namespace]}/{annotations[name]}"
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
