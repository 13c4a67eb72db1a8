# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hosts of one sandbox, seen from the machine: made, booted, awaited, power-cut, removed."""
from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .. import network, probes, processes
from ..control_plane import components
from ..control_plane.plane import ControlPlane
from ..errors import SandboxError
from ..spec import NodeSpec
from ..state import MAX_SLOTS, RunState
from . import cgroups, record
from .prepare import prepare
from .record import HostRecord
from .ssh import SshAccess

CHECKOUT = Path(__file__).resolve().parent.parent.parent
SSH_TIMEOUT_S = 60.0
NODE_TIMEOUT_S = 120.0
_DRIVER_UNIT = "emulated-nvidia-driver.service"
_TAINTS_OF_A_NEW_NODE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Hosts:
    """All hosts of an existing run state. ``plane`` is None in a sandbox without Kubernetes."""

    def __init__(self, state: RunState, plane: ControlPlane | None) -> None:
        self.state = state
        self.plane = plane
        self.access = SshAccess(state)

    def all(self) -> list[HostRecord]:
        """Return the hosts in order of their slots."""
        folders = (path.parent for path in self.state.nodes.glob("*/node.json"))
        return sorted((record.load(folder) for folder in folders), key=lambda host: host.slot)

    def get(self, name: str) -> HostRecord:
        """Return one host. Raises SandboxError naming those that exist."""
        hosts = {host.name: host for host in self.all()}
        if name not in hosts:
            raise SandboxError(f"the sandbox {self.state.name} has no node {name}; it has {', '.join(hosts) or 'none'}.")
        return hosts[name]

    def is_on(self, host: HostRecord) -> bool:
        """Whether the host's power is on."""
        return host.pid_file.running() is not None

    def create(self, specs: Iterable[NodeSpec], rootfs: Mapping[str, Path], layer: Path) -> list[HostRecord]:
        """Make hosts that do not exist yet. Each knows the names of all that exist then. ``rootfs``: by the name of the system."""
        known = self.all()
        taken = {host.slot for host in known}
        free = (slot for slot in range(MAX_SLOTS) if slot not in taken)
        made: list[HostRecord] = []
        for spec in specs:
            slot = next(free, None)
            if slot is None:
                raise SandboxError(f"the sandbox {self.state.name} has no address left for {spec.name}: remove a node first.")
            made.append(self._describe(spec, slot, rootfs[spec.system], layer))
        names = {host.name: host.address for host in [*known, *made]}
        self.access.ensure_key()
        for host in made:
            if host.folder.exists():
                shutil.rmtree(host.folder)  # of a command that was killed before it wrote the record
            prepare(host, self.state.name, names, self.access, self.plane)
            host.save()
        return made

    def start(self, host: HostRecord) -> bool:
        """Boot a host; returns False when it runs already. Returns before the host can be reached: see :meth:`wait_up`."""
        if self.is_on(host):
            return False
        self.clean(host)
        host.boot_id.unlink(missing_ok=True)
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "sandbox.nodes.supervisor", "--enter-namespaces", str(host.folder)]
        if host.scope:
            scope = ["systemd-run", "--scope", "--quiet", "--collect", f"--unit={host.scope}", "--property=Delegate=yes"]
            command = [*scope, *command]
        processes.start(command, host.supervisor_log, host.pid_file, environment, CHECKOUT)
        return True

    def power_cut(self, host: HostRecord) -> None:
        """Kill the host at once with all that runs on it, and drop what it held on the machine."""
        self.cut_power(host)
        self.clean(host)

    def cut_power(self, host: HostRecord) -> None:
        """Kill the host at once with all that runs on it; :meth:`clean` has to follow."""
        host.pid_file.stop(grace_s=0)

    def clean(self, host: HostRecord) -> None:
        """Drop links and cgroups of a host that does not run. Raises SandboxError naming what is left."""
        network.delete_link(host.veth)
        if host.scope:
            subprocess.run(["systemctl", "stop", host.scope], check=False, capture_output=True)
        left = cgroups.remove(host.groups(), with_parent=not host.scope)
        if left:
            pids = ", ".join(str(pid) for pid in sorted(cgroups.members(left)))
            raise SandboxError(f"the cgroup {left[0]} of {host.name} is still in use by the processes {pids}: end them first.")

    def remove(self, host: HostRecord) -> None:
        """Cut the host's power and delete everything of it, its Node object too."""
        self.power_cut(host)
        if self.plane is not None and self.plane.running():
            self.plane.client().delete(f"/api/v1/nodes/{host.name}")
        self.access.forget([host.address, host.name])
        shutil.rmtree(host.folder)

    def wait_up(self, hosts: Iterable[HostRecord]) -> None:
        """Wait for all hosts at once: SSH answers, the driver is loaded and, with Kubernetes, the Node of this boot is Ready.

        Raises SandboxError naming the first host that does not get there, with the end of the log that tells why.
        """
        hosts = list(hosts)
        if self.plane is not None:
            self.plane.check_alive()
        with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
            for waiting in [pool.submit(self._wait_host, host) for host in hosts]:
                waiting.result()

    def ready(self, host: HostRecord) -> bool:
        """Whether the host is up now."""
        try:
            self._probe_ssh(host)
            if host.kubernetes:
                self._probe_node(host)
        except (OSError, probes.NotYet):
            return False
        return True

    def reboot(self, host: HostRecord) -> None:
        """Let the host reboot itself, as `systemctl reboot` on it does, and wait until it is up again."""
        if not self.is_on(host):
            raise SandboxError(f"the node {host.name} is off; start it first.")
        before = host.boot_id.read_text()
        self.access.run(host.address, ["systemctl", "reboot"])

        def rebooted() -> None:
            if not host.boot_id.exists() or host.boot_id.read_text() == before:
                raise probes.NotYet("it has not booted again")

        self._wait(host, "its reboot", rebooted, SSH_TIMEOUT_S)
        self.wait_up([host])

    def _describe(self, spec: NodeSpec, slot: int, rootfs: Path, layer: Path) -> HostRecord:
        addresses, unified = self.state.addresses, cgroups.is_v2()
        return HostRecord(
            name=spec.name,
            folder=self.state.nodes / spec.name,
            slot=slot,
            address=addresses.host(slot),
            mac=addresses.mac(slot),
            gateway=addresses.gateway,
            prefix_length=addresses.prefix_length,
            service_network=components.SERVICE_NETWORK if self.plane else "",
            bridge=addresses.bridge,
            veth=addresses.veth(slot),
            spec=spec.as_dict(),
            kubernetes=self.plane is not None,
            rootfs=rootfs,
            layer=layer,
            cgroups=() if unified else tuple(cgroups.v1_groups(f"{self.state.name}-{self.state.key}", spec.name)),
            scope=f"gpufleet-{self.state.name}-{self.state.key}-{spec.name}.scope" if unified else "",
            packages=bool(self.state.read().get("packages")),
        )

    def _wait_host(self, host: HostRecord) -> None:
        self._wait(host, "SSH", lambda: self._probe_ssh(host), SSH_TIMEOUT_S)
        if host.spec["gpus"]:
            self._check_driver(host)
        if host.kubernetes:
            self._wait(host, "its Node", lambda: self._probe_node(host), NODE_TIMEOUT_S)

    def _wait(self, host: HostRecord, what: str, probe: Callable[[], None], timeout_s: float) -> None:
        def possible() -> None:
            if not self.is_on(host):
                raise SandboxError(probes.with_evidence(f"the node {host.name} has ended.", self._last_words(host)))

        probes.wait_for(f"{host.name}: {what}", probe, timeout_s, possible, lambda: self.evidence(host))

    def _check_driver(self, host: HostRecord) -> None:
        if self.access.run(host.address, ["systemctl", "is-active", "--quiet", _DRIVER_UNIT]).returncode:
            sentence = f"the emulated driver of {host.name} was not loaded."
            raise SandboxError(probes.with_evidence(sentence, self.journal(host, _DRIVER_UNIT, 20)))

    def _probe_ssh(self, host: HostRecord) -> None:
        with socket.create_connection((host.address, 22), 1) as connection:
            connection.settimeout(2)
            if connection.recv(4) != b"SSH-":
                raise probes.NotYet("sshd does not answer yet")

    def _probe_node(self, host: HostRecord) -> None:
        """Raise NotYet unless the Node is Ready and speaks of the host's present boot: after a reboot the last one's status stays."""
        assert self.plane is not None
        node = self.plane.client().get(f"/api/v1/nodes/{host.name}")
        reason = node_not_ready(node, host.boot_id.read_text().strip() if host.boot_id.exists() else "")
        if reason:
            raise probes.NotYet(reason)

    def evidence(self, host: HostRecord) -> str:
        """Return the end of the log that most likely tells why a host is not up."""
        if host.kubernetes:
            said = self.journal(host, "kubelet.service", 20)
            if said:
                return said
        return self._last_words(host)

    def journal(self, host: HostRecord, unit: str, lines: int) -> str:
        """Return the end of a unit's journal on the host, or an empty string when the host cannot be asked."""
        said = self.access.run(host.address, ["journalctl", "--no-pager", "--lines", str(lines), "--unit", unit])
        return said.stdout.rstrip() if said.returncode == os.EX_OK else ""

    def _last_words(self, host: HostRecord) -> str:
        logs = (processes.tail(host.console, 15), processes.tail(host.supervisor_log, 5))
        return "\n".join(filter(None, logs))


def node_not_ready(node: dict[str, Any] | None, boot_id: str) -> str:
    """Judge a Node object against the id of its host's present boot: return why it is not ready, or an empty string."""
    if node is None:
        return "its kubelet has not registered the Node"
    if not boot_id or node["status"].get("nodeInfo", {}).get("bootID") != boot_id:
        return "its Node still speaks of an earlier boot"
    ready = next((row for row in node["status"].get("conditions", []) if row["type"] == "Ready"), None)
    if ready is None or ready["status"] != "True":
        return f"its Node is not Ready: {ready['message'] if ready else 'no condition yet'}"
    taints = [taint["key"] for taint in node["spec"].get("taints", []) if taint["key"] in _TAINTS_OF_A_NEW_NODE]
    return f"its Node is still tainted with {taints[0]}" if taints else ""
