# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The spec file: which hosts a sandbox has, with which GPUs, and whether Kubernetes runs on them."""
from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .errors import SandboxError

DEFAULT_SPEC = Path(__file__).resolve().parent / "fleet.yml"
MAX_NODES = 60
MAX_GPUS = 16  # as many as the static table of MIG minor numbers is used for here

#: Systems that a host can have, by their name in the spec file. All but Debian's are stand-ins on Debian (artifacts/systems.py).
SYSTEMS = ("debian12", "debian13", "ubuntu2404", "el9", "el10", "sles15")
#: What becomes of a host's driver: there and loaded at boot, or up to the packages that are installed on it.
DRIVERS = ("preinstalled", "none")
MAX_SWITCHES = 18

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?")


@dataclass(frozen=True)
class GpuGroup:
    """``count`` GPUs of one model; models are those of ``nvmlctl models``."""

    model: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.model}:{self.count}"


@dataclass(frozen=True)
class NodeSpec:
    """One host: its name (also its Node's name), its GPUs in index order, and what else tells it from Debian with the driver on it.

    ``headers``: kernel headers are installed. ``nouveau``: nouveau is loaded at boot unless it is blacklisted.
    """

    name: str
    gpus: tuple[GpuGroup, ...] = ()
    system: str = SYSTEMS[0]
    driver: str = DRIVERS[0]
    nvswitches: int = 0
    headers: bool = True
    secure_boot: bool = False
    nouveau: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the form that the spec file has; what is as usual stands there only if it always did."""
        shown: dict[str, Any] = {"name": self.name, "gpus": [{"model": group.model, "count": group.count} for group in self.gpus]}
        for field in dataclasses.fields(self)[2:]:
            value = getattr(self, field.name)
            if value != field.default:
                shown[field.name] = value
        return shown


@dataclass(frozen=True)
class FleetSpec:
    """All hosts of a sandbox. Without ``kubernetes`` they are plain systemd hosts with GPUs and there is no control plane.

    With ``packages`` a web server gives them what lies in the sandbox's folder ``packages``.
    """

    kubernetes: bool
    nodes: tuple[NodeSpec, ...]
    packages: bool = False


def load(path: Path) -> FleetSpec:
    """Read a spec file. Raises SandboxError with one sentence that names the file and the place of the mistake."""
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise SandboxError(f"the spec file {path} cannot be read: {error.strerror}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark else ""
        raise SandboxError(f"the spec file {path}{where} is not YAML: {getattr(error, 'problem', None) or error}.") from None
    return parse(document, str(path))


def parse(document: Any, source: str) -> FleetSpec:
    """Check a spec document and return it typed. ``source`` names it in the errors (SandboxError)."""
    _only_keys(document, {"kubernetes", "nodes", "packages"}, source)
    kubernetes = _flag(document, "kubernetes", source, default=True)
    packages = _flag(document, "packages", source)
    raw_nodes = document.get("nodes")
    if not isinstance(raw_nodes, list) or not raw_nodes:
        raise SandboxError(f"{source}: nodes must be a list of at least one node.")
    if len(raw_nodes) > MAX_NODES:
        raise SandboxError(f"{source}: {len(raw_nodes)} nodes are more than the {MAX_NODES} that one sandbox has addresses for.")
    nodes = tuple(parse_node(raw, f"{source}: nodes[{number}]") for number, raw in enumerate(raw_nodes))
    names = [node.name for node in nodes]
    for name in names:
        if names.count(name) > 1:
            raise SandboxError(f"{source}: two nodes are named {name}.")
    if kubernetes and any(node.system != SYSTEMS[0] for node in nodes):
        raise SandboxError(f"{source}: nodes of Kubernetes have the system {SYSTEMS[0]}; other systems need kubernetes: false.")
    return FleetSpec(kubernetes, nodes, packages)


def parse_node(raw: Any, where: str) -> NodeSpec:
    """Check one node of a spec document. ``where`` names it in the errors (SandboxError)."""
    _only_keys(raw, {field.name for field in dataclasses.fields(NodeSpec)}, where)
    name = raw.get("name")
    if not isinstance(name, str) or not _LABEL.fullmatch(name):
        raise SandboxError(f"{where}: name is {name!r}; give at most 30 lower-case letters, digits and inner hyphens.")
    raw_gpus = raw.get("gpus") or []
    if not isinstance(raw_gpus, list):
        raise SandboxError(f"{where}: gpus must be a list of {{model: ..., count: ...}}.")
    gpus = tuple(_gpu_group(group, f"{where}.gpus[{number}]") for number, group in enumerate(raw_gpus))
    total = sum(group.count for group in gpus)
    if total > MAX_GPUS:
        raise SandboxError(f"{where}: {total} GPUs are more than the {MAX_GPUS} that a node can have.")
    switches = raw.get("nvswitches", 0)
    if isinstance(switches, bool) or not isinstance(switches, int) or not 0 <= switches <= MAX_SWITCHES:
        raise SandboxError(f"{where}: nvswitches is {switches!r}; give a number from 0 to {MAX_SWITCHES}.")
    return NodeSpec(
        name, gpus, _choice(raw, "system", SYSTEMS, where), _choice(raw, "driver", DRIVERS, where), switches,
        _flag(raw, "headers", where, default=True), _flag(raw, "secure_boot", where), _flag(raw, "nouveau", where),
    )


def parse_gpus(text: str) -> list[dict[str, Any]]:
    """Parse the command line form ``MODEL[:COUNT][,...]`` into the spec file's form."""
    parsed: list[dict[str, Any]] = []
    for part in filter(None, text.split(",")):
        model, _, count = part.partition(":")
        if count and not count.isdigit():
            raise SandboxError(f"--gpus {part}: the count {count!r} is not a number.")
        parsed.append({"model": model, "count": int(count or 1)})
    return parsed


def _gpu_group(raw: Any, where: str) -> GpuGroup:
    _only_keys(raw, {"model", "count"}, where)
    model, count = raw.get("model"), raw.get("count", 1)
    if not isinstance(model, str) or not _LABEL.fullmatch(model):
        raise SandboxError(f"{where}: model is {model!r}; give one that `nvmlctl models` lists.")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise SandboxError(f"{where}: count is {count!r}; give a number of at least 1.")
    return GpuGroup(model, count)


def _flag(raw: dict[str, Any], key: str, where: str, default: bool = False) -> bool:
    value = raw.get(key, default)
    if not isinstance(value, bool):
        raise SandboxError(f"{where}: {key} is {value!r}; give true or false.")
    return value


def _choice(raw: dict[str, Any], key: str, choices: tuple[str, ...], where: str) -> str:
    value = raw.get(key, choices[0])
    if value not in choices:
        raise SandboxError(f"{where}: {key} is {value!r}; give one of {', '.join(choices)}.")
    return str(value)


def _only_keys(raw: Any, allowed: set[str], where: str) -> None:
    if not isinstance(raw, dict):
        raise SandboxError(f"{where}: expected a mapping with the keys {', '.join(sorted(allowed))}.")
    for key in raw:
        if key not in allowed:
            raise SandboxError(f"{where}: unknown key {key!r}; allowed are {', '.join(sorted(allowed))}.")
