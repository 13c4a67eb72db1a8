# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bringing a whole sandbox up and down."""
from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import artifacts, leftovers, limits, network, package_server, spec
from .control_plane.plane import BINARIES, ControlPlane
from .errors import SandboxError
from .nodes import masters, models
from .nodes.hosts import Hosts
from .nodes.record import HostRecord
from .state import RunState

_TOOLS = ("kubectl", "helm")
_MAIN = spec.SYSTEMS[0]


class Sandbox:
    """One sandbox by name, existing or not."""

    def __init__(self, state: RunState, settings: artifacts.Settings, progress: artifacts.Progress) -> None:
        self.state = state
        self.settings = settings
        self.progress = progress

    def plane(self) -> ControlPlane | None:
        """Return the control plane; None in a sandbox without Kubernetes. Raises SandboxError when the sandbox does not exist."""
        return ControlPlane(self.state) if self.state.read()["kubernetes"] else None

    def require_plane(self) -> ControlPlane:
        """Return the control plane. Raises SandboxError where there is none."""
        plane = self.plane()
        if plane is None:
            raise SandboxError(f"the sandbox {self.state.name} has no Kubernetes.")
        return plane

    def hosts(self) -> Hosts:
        """Return the hosts of the existing sandbox."""
        return Hosts(self.state, self.plane())

    def up(self, fleet: spec.FleetSpec) -> None:
        """Make the sandbox run with at least the nodes of ``fleet``; one that runs already is left as it is.

        After a crash of everything it cleans what was left and boots again from the state on disk, as after a power failure.
        Raises SandboxError, also when a node exists with other GPUs than ``fleet`` wants.
        """
        started = time.monotonic()
        with self.state.locked():
            if not self.state.exists:
                limits.check_for(len(fleet.nodes), fleet.kubernetes, control_plane_runs=False)
                self._create(fleet)
            record = self.state.read()
            self._check_fits(record, fleet)
            if self._all_up(fleet):
                self.progress.note(f"sandbox {self.state.name} is up already")
                return
            self._start(record, fleet)
        self.progress.note(f"sandbox {self.state.name} is up after {time.monotonic() - started:.1f} s")

    def down(self) -> list[str]:
        """End and delete everything of the sandbox. Returns a sentence for each thing that was left all the same."""
        with self.state.locked():
            if not self.state.exists:
                self.progress.note(f"sandbox {self.state.name} does not exist")
                if self.state.root.exists():
                    self.state.remove()
                return []
            with self.progress.step(f"taking sandbox {self.state.name} down"):
                hosts, addresses = self.hosts(), self.state.addresses
                records = hosts.all()
                masters.end(self.state.control_sockets)
                for host in records:
                    hosts.cut_power(host)
                ControlPlane(self.state).stop()
                package_server.stop(self.state)
                for host in records:
                    with contextlib.suppress(SandboxError):  # leftovers.find says it, with all else
                        hosts.clean(host)
                for link in network.links_of(addresses, self.state.owner):
                    network.delete_link(link)
                left = leftovers.find(self.state, records)
                if not left:
                    self.state.remove()
        return left

    def add_node(self, node: spec.NodeSpec) -> None:
        """Add one node to the running sandbox and wait until it is up."""
        with self.state.locked():
            record = self.state.read()
            models.check([node], Path(record["layer"]))
            hosts = self.hosts()
            if any(host.name == node.name for host in hosts.all()):
                raise SandboxError(f"the sandbox {self.state.name} has a node {node.name} already.")
            self._check_limits(hosts, len(hosts.all()) + 1)
            self._boot(hosts, self._create_hosts(hosts, record, [node]))

    @contextlib.contextmanager
    def changing_node(self, name: str) -> Iterator[tuple[Hosts, HostRecord]]:
        """Give the hosts and the record of one node while the sandbox's lock is held."""
        with self.state.locked():
            hosts = self.hosts()
            yield hosts, hosts.get(name)

    def start_node(self, name: str) -> None:
        """Boot a node that is powered off and wait until it is up."""
        with self.changing_node(name) as (hosts, host):
            self._check_limits(hosts, sum(known.name == name or hosts.is_on(known) for known in hosts.all()))
            self._boot(hosts, [host])

    def _create(self, fleet: spec.FleetSpec) -> None:
        problems = [*artifacts.check_requirements(self.settings), *cache_problems(self.settings.cache)]
        missing = artifacts.missing_host_packages()
        if missing:
            problems.append(f"Packages are missing on this machine: apt-get install {' '.join(missing)}.")
        if problems:
            raise SandboxError(" ".join(problems))
        layer = artifacts.node_layer(self.settings, self.progress)
        models.check(fleet.nodes, layer)
        programs = artifacts.ensure(BINARIES, self.settings, self.progress) if fleet.kubernetes else {}
        record = {
            "kubernetes": fleet.kubernetes,
            "kubernetes_version": self.settings.kubernetes_version if fleet.kubernetes else None,
            "programs": {name: str(path) for name, path in programs.items()},
            "rootfs": str(artifacts.rootfs(self.settings, self.progress)),
            "layer": str(layer),
            "packages": fleet.packages,
        }
        for system in {node.system for node in fleet.nodes} - {_MAIN}:  # before anything runs
            artifacts.system_root(system, self.settings, self.progress)
        self.state.create(record, lambda addresses: network.ensure_bridge(addresses, self.state.owner))

    def _start(self, record: dict[str, Any], fleet: spec.FleetSpec) -> None:
        network.ensure_bridge(self.state.addresses, self.state.owner)
        plane = self.plane()
        hosts = Hosts(self.state, plane)
        self._check_limits(hosts, len({node.name for node in fleet.nodes} | {host.name for host in hosts.all()}))
        if plane is not None:
            self._link_tools(record)
            with self.progress.step("starting the control plane"):
                plane.prepare()
                plane.start({name: Path(path) for name, path in record["programs"].items()})
        if record.get("packages"):
            package_server.start(self.state)
        existing = {host.name for host in hosts.all()}
        self._create_hosts(hosts, record, [node for node in fleet.nodes if node.name not in existing])
        self._boot(hosts, hosts.all())
        if plane is not None:
            plane.wait_controllers()

    def _check_limits(self, hosts: Hosts, wanted: int) -> None:
        """Refuse to start when ``wanted`` running hosts would be more than the machine can have."""
        more = wanted - sum(hosts.is_on(host) for host in hosts.all())
        limits.check_for(more, hosts.plane is not None, hosts.plane is not None and hosts.plane.running())

    def _create_hosts(self, hosts: Hosts, record: dict[str, Any], nodes: list[spec.NodeSpec]) -> list[HostRecord]:
        roots = {system: artifacts.system_root(system, self.settings, self.progress) for system in sorted({node.system for node in nodes} - {_MAIN})}
        return hosts.create(nodes, {_MAIN: Path(record["rootfs"]), **roots}, Path(record["layer"]))

    def _boot(self, hosts: Hosts, records: list[HostRecord]) -> None:
        names = ", ".join(host.name for host in records)
        with self.progress.step(f"booting {names}"):
            for host in records:
                hosts.start(host)
            hosts.wait_up(records)

    def _all_up(self, fleet: spec.FleetSpec) -> bool:
        hosts = self.hosts()
        plane, records = hosts.plane, {host.name: host for host in hosts.all()}
        if any(node.name not in records for node in fleet.nodes):
            return False
        served = package_server.running(self.state) or not self.state.read().get("packages")
        return served and (plane is None or plane.running()) and all(hosts.ready(host) for host in records.values())

    def _check_fits(self, record: dict[str, Any], fleet: spec.FleetSpec) -> None:
        if record["kubernetes"] != fleet.kubernetes:
            wanted = "with" if fleet.kubernetes else "without"
            raise SandboxError(f"the sandbox {self.state.name} exists, and not {wanted} Kubernetes: take it down first, or choose another --name.")
        if fleet.packages and not record.get("packages"):
            raise SandboxError(f"the sandbox {self.state.name} exists, and not with a package server: take it down first, or choose another --name.")
        for path in (record["rootfs"], record["layer"], *record["programs"].values()):
            if not Path(path).exists():
                raise SandboxError(f"{path}, which the sandbox {self.state.name} was made from, is gone: take the sandbox down and up again.")
        models.check(fleet.nodes, Path(record["layer"]))
        existing = {host.name: host for host in self.hosts().all()}
        for node in fleet.nodes:
            if node.name in existing and existing[node.name].spec != node.as_dict():
                raise SandboxError(f"the node {node.name} of sandbox {self.state.name} exists with other GPUs or another system: remove the node first.")

    def _link_tools(self, record: dict[str, Any]) -> None:
        self.state.bin.mkdir(exist_ok=True)
        for tool in _TOOLS:
            link = self.state.bin / tool
            link.unlink(missing_ok=True)
            link.symlink_to(record["programs"][tool])


def cache_problems(cache: Path) -> list[str]:
    """Return a sentence when hosts cannot have their layers below ``cache``, for overlay on overlay does not work."""
    cache.mkdir(parents=True, exist_ok=True)
    command = ["findmnt", "--noheadings", "--output=FSTYPE", f"--target={cache}"]
    kind = subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
    if kind != "overlay":
        return []
    return [f"{cache} lies on an overlay file system, as inside a container image: let GPUFLEET_SANDBOX_CACHE name a folder on a plain one."]
