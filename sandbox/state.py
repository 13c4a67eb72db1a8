# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a sandbox keeps its run state, and which addresses it owns.

Everything lies below CACHE/run/NAME. A sandbox has an index, taken under a lock that all sandboxes of the machine share; the index decides
its subnet, its loopback address and the names of its links, so that sandboxes run side by side with the standard port numbers.
"""
from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .errors import SandboxError

MAX_INDEX = 200
FIRST_HOST = 10  # host part of the address of slot 0
MAX_SLOTS = 100
#: Sandboxes of different caches share the machine's addresses, so the lock over choosing one lies outside of every cache.
INDEX_LOCK = Path("/run/lock/gpufleet-dra")
#: Routes with shorter prefixes, as VPNs set them for all of 10.0.0.0/8, lose to a sandbox's own more exact route.
MIN_PREFIX_LENGTH = 16
_ALL_SUBNETS = ipaddress.IPv4Network("10.91.0.0/16")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?")


@dataclass(frozen=True)
class Addresses:
    """Addresses and link names of the sandbox with this index."""

    index: int

    @property
    def subnet(self) -> str:
        """The hosts' network on the sandbox's bridge, e.g. ``10.91.0.0/24``."""
        return f"10.91.{self.index}.0/{self.prefix_length}"

    @property
    def prefix_length(self) -> int:
        """Of the subnet."""
        return 24

    @property
    def gateway(self) -> str:
        """The machine's own address on the bridge; the API server listens here."""
        return f"10.91.{self.index}.1"

    @property
    def loopback(self) -> str:
        """A loopback address of this sandbox alone: etcd, controller manager and scheduler listen here."""
        return f"127.91.{self.index}.1"

    @property
    def bridge(self) -> str:
        """Name of the bridge."""
        return f"gfsbx{self.index}"

    def host(self, slot: int) -> str:
        """Address of the host in this slot."""
        return f"10.91.{self.index}.{FIRST_HOST + slot}"

    def mac(self, slot: int) -> str:
        """Hardware address of that host, the same at every boot: the machine's neighbour table stays right over a reboot."""
        return f"02:5b:{self.index:02x}:00:00:{slot:02x}"

    def veth(self, slot: int) -> str:
        """Name of the machine's end of that host's link."""
        return f"gfsbx{self.index}n{slot}"


class RunState:
    """The folder CACHE/run/NAME. Raises SandboxError for a name that cannot be used."""

    def __init__(self, cache: Path, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise SandboxError(f"the sandbox name {name!r} cannot be used; give at most 20 lower-case letters, digits and inner hyphens.")
        self.name = name
        self.runs = cache / "run"
        self.root = self.runs / name
        self.logs = self.root / "logs"
        self.pids = self.root / "pids"
        self.pki = self.root / "pki"
        self.ssh = self.root / "ssh"
        self.bin = self.root / "bin"
        self.nodes = self.root / "nodes"
        self.control_sockets = self.root / "cp"  # of ssh masters; a short name, for a socket's path has at most 107 characters
        self.admin_kubeconfig = self.root / "kubeconfig"

    @property
    def key(self) -> str:
        """Six hex digits that tell this sandbox from those of the same name in other caches."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()[:6]

    @property
    def owner(self) -> str:
        """What stands on the bridge as its alias: the folder, so that a person finds whose it is."""
        return f"gpufleet sandbox {self.key} {self.root}"[:255]

    @property
    def exists(self) -> bool:
        """Whether such a sandbox was made and not taken down."""
        return self._record.is_file()

    def read(self) -> dict[str, Any]:
        """Return the record that :meth:`create` wrote. Raises SandboxError when the sandbox does not exist."""
        try:
            record: dict[str, Any] = json.loads(self._record.read_text())
            return record
        except FileNotFoundError:
            raise SandboxError(f"there is no sandbox {self.name}; start it with `python -m sandbox --name {self.name} up`.") from None

    @cached_property
    def addresses(self) -> Addresses:
        """The addresses of the existing sandbox."""
        return Addresses(int(self.read()["index"]))

    def create(self, record: dict[str, Any], claim: Callable[[Addresses], None] | None = None) -> None:
        """Make the folder and take a free index; ``record`` is kept beside it.

        ``claim`` takes the addresses on the machine while nobody else can choose them. Raises SandboxError when no index is free.
        """
        self.runs.mkdir(parents=True, exist_ok=True)
        with _only_one_chooses():
            index = self._free_index()
            self.root.mkdir(mode=0o700, exist_ok=True)
            write_json(self._record, dict(record, index=index))
            if claim is not None:
                claim(Addresses(index))

    def remove(self) -> None:
        """Delete the folder with all that is in it."""
        shutil.rmtree(self.root, ignore_errors=False)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the sandbox's lock: two commands that change it cannot interleave. Raises SandboxError when another one holds it."""
        self.runs.mkdir(parents=True, exist_ok=True)
        with (self.runs / f".{self.name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SandboxError(f"another command is changing the sandbox {self.name} now; wait until it has ended.") from None
            yield

    @property
    def _record(self) -> Path:
        return self.root / "sandbox.json"

    def _free_index(self) -> int:
        taken = {int(json.loads(record.read_text())["index"]) for record in self.runs.glob("*/sandbox.json")}
        networks = [network for network in _networks_of_machine() if network.prefixlen >= MIN_PREFIX_LENGTH]
        for index in range(MAX_INDEX):
            subnet = ipaddress.ip_network(Addresses(index).subnet)
            if index not in taken and not any(subnet.overlaps(network) for network in networks):
                return index
        if _ALL_SUBNETS in networks:
            raise SandboxError(f"this machine has a route to {_ALL_SUBNETS}, in which sandboxes have their subnets: remove that route first.")
        raise SandboxError(f"no subnet of {_ALL_SUBNETS} is free on this machine: take a sandbox down.")


@contextmanager
def _only_one_chooses() -> Iterator[None]:
    INDEX_LOCK.parent.mkdir(exist_ok=True)
    descriptor = os.open(INDEX_LOCK, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _networks_of_machine() -> list[ipaddress.IPv4Network]:
    """Return the networks that the machine has routes to, without default routes."""
    routes = json.loads(subprocess.run(["ip", "-json", "-4", "route", "show"], check=True, capture_output=True).stdout or "[]")
    return [ipaddress.IPv4Network(route["dst"]) for route in routes if route.get("dst", "default") != "default"]


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file so that readers see the old or the new content, never half of it."""
    scratch = path.with_name(path.name + ".new")
    scratch.write_text(json.dumps(document, indent=2) + "\n")
    scratch.rename(path)
