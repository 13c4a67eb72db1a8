# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A node for tests: its own folder for /proc, units as given, commands answered by functions, other commands run; and runtimes that stand for real ones."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.document import Runtime
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.node import Node, Output, Unit

Answer = Callable[[Sequence[str]], Output]

#: A containerd that reads and merges configuration files by the rules of services/server/config/config.go (1.7) and
#: cmd/containerd/server/config/config.go (2.x): the loading order, whole sections against keys, versions, disabled plugins.
_CONTAINERD = '''#!{python} -I
import fnmatch, glob, json, os, sys, tomllib
VERSION = {version}
CRI = {{2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime", 4: "io.containerd.cri.v1.runtime"}}
NEWEST = 2 if VERSION < (2,) else 3 if VERSION < (2, 3) else 4
DEFAULTS = {{"enable_cdi": VERSION >= (2,), "cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"], "sandbox_image": "pause:1", "cni": {{"bin_dir": "/opt/cni/bin"}}}}

def fail(why):
    sys.exit("containerd: " + why)

def deep(to, of):
    for key, value in of.items():
        if isinstance(value, dict) and isinstance(to.get(key), dict):
            deep(to[key], value)
        else:
            to[key] = value

def load(path):
    out, pending, loaded = {{"version": NEWEST, "plugins": {{}}, "disabled_plugins": []}}, [path], set()
    while pending:
        path = pending.pop(0)
        if path in loaded:
            continue
        try:
            config = tomllib.loads(open(path).read())
        except (OSError, ValueError) as error:
            fail(f"failed to load TOML: {{path}}: {{error}}")
        plugins = config.get("plugins", {{}})
        if VERSION >= (2, 3):  # each file is brought up by itself
            plugins = {{CRI[3] if name in CRI.values() else name: value for name, value in plugins.items()}}
            config["version"] = NEWEST
        for name, value in plugins.items():
            if VERSION < (2,) or name not in out["plugins"]:
                out["plugins"][name] = value
            else:
                deep(out["plugins"][name], value)
        out["version"] = config.get("version", out["version"] if loaded else 1)
        out["disabled_plugins"] += config.get("disabled_plugins", [])
        for pattern in config.get("imports", []):
            pattern = os.path.join(os.path.dirname(path), pattern)
            pending += sorted(glob.glob(pattern)) if "*" in pattern else [pattern]
        loaded.add(path)
    if out["version"] > NEWEST:
        fail(f"expected containerd config version equal to or less than {{NEWEST}}, got {{out['version']}}")
    out["imports"] = sorted(loaded)
    return out

def shown(table, path=()):
    plain = {{key: value for key, value in table.items() if not isinstance(value, dict)}}
    if path and plain:
        print("[" + ".".join("'" + part + "'" for part in path) + "]")
    for key, value in plain.items():
        print(f"{{key}} = {{json.dumps(value)}}")
    for key, value in table.items():
        if isinstance(value, dict):
            shown(value, (*path, key))

if sys.argv[1:] == ["--version"]:
    print("containerd github.com/containerd/containerd/v2 v" + ".".join(map(str, VERSION)) + " abc")
else:
    option, path, config, command = sys.argv[1:]
    assert (option, config) == ("--config", "config") and command == ("migrate" if VERSION[:2] == (2, 0) else "dump"), sys.argv
    out = load(path)
    # a section in another version's name than the newest of the files is brought up only where all files have that version
    section = dict(out["plugins"].pop(CRI.get(out["version"], "none"), {{}}))
    for name in CRI.values():
        out["plugins"].pop(name, None)
    cri = json.loads(json.dumps(DEFAULTS))
    deep(cri, section)
    off = VERSION < (2,) and set(out["disabled_plugins"]) & {{"cri", *CRI.values()}}
    if not off:
        out["plugins"][CRI[NEWEST]] = cri
    out["version"] = NEWEST
    shown(out)
'''

#: A CRI-O that reads its files in the order of their names and comments out what has its default value.
_CRIO = '''#!{python} -I
import json, os, sys, tomllib
DEFAULT = ["/etc/cdi", "/var/run/cdi"]
if sys.argv[1:] == ["--version"]:
    print("crio version {version}")
    sys.exit()
if sys.argv[1:] == ["status", "config"]:
    running = os.environ.get("CRIO_RUNNING")
    sys.exit("connection refused") if running is None else print("[crio]\\n  [crio.runtime]\\n    cdi_spec_dirs = " + running)
    sys.exit()
options = dict(zip(sys.argv[1:-1:2], sys.argv[2:-1:2]))
dirs = DEFAULT
folder = options["--config-dir"]
for path in [options[key] for key in ("--config",) if key in options] + [os.path.join(folder, name) for name in sorted(os.listdir(folder))]:
    try:
        dirs = tomllib.loads(open(path).read()).get("crio", {{}}).get("runtime", {{}}).get("cdi_spec_dirs", dirs)
    except ValueError as error:
        sys.exit(f"validating root config: {{path}}: {{error}}")
sign = "# " if dirs == DEFAULT else ""
print("[crio]\\n\\n# Folders of CDI specifications, used as in [\\n[crio.runtime]\\n" + sign + "cdi_spec_dirs = [")
for item in dirs:
    print(f"{{sign}}\\t{{json.dumps(item)}},")
print(sign + "]")
'''


class FakeNode(Node):
    """A node whose units are given and whose commands are answered by the first word, those without an answer by being run."""

    def __init__(self, folder: Path, units: Sequence[Unit] = (), answers: dict[str, Answer] | None = None) -> None:
        self.proc = folder / "proc"
        self.proc.mkdir(exist_ok=True)
        super().__init__(str(self.proc))
        self.given = {unit.name: unit for unit in units}
        self.answers = answers or {}
        self.started: dict[int, float] = {}
        self.ran: list[list[str]] = []

    def units(self, names: Sequence[str]) -> dict[str, Unit]:
        return {name: unit for name, unit in self.given.items() if name in names}

    def run(self, command: Sequence[str]) -> Output:
        self.ran.append(list(command))
        answer = self.answers.get(Path(command[0]).name)
        return answer(command) if answer is not None else super().run(command)

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in self.answers else None

    def started_at(self, pid: int) -> float | None:
        return self.started.get(pid)

    def start(self, pid: int, *command: str) -> None:
        """Let a process run."""
        (self.proc / str(pid)).mkdir()
        (self.proc / str(pid) / "cmdline").write_bytes(b"".join(part.encode() + b"\0" for part in command))


def containerd(folder: Path, version: tuple[int, int, int]) -> Path:
    """Make a program that stands for a containerd of this version; returns its path."""
    return _program(folder / "containerd", _CONTAINERD.format(python=sys.executable, version=version))


def crio(folder: Path, version: str = "1.34.1") -> Path:
    """Make a program that stands for a CRI-O of this version; returns its path."""
    return _program(folder / "crio", _CRIO.format(python=sys.executable, version=version))


def runtime(folder: Path, name: str, version: tuple[int, int, int], pid: int = 0) -> Runtime:
    """Return a runtime with its configuration in ``folder``."""
    binary = crio(folder, ".".join(map(str, version))) if name == "crio" else containerd(folder, version)
    config = folder / ("crio.conf" if name == "crio" else "config.toml")
    return Runtime(name, f"{name}.service", pid > 0, pid, str(binary), version, ".".join(map(str, version)), str(config))


def unit(name: str, program: str | Path = "/usr/bin/true", *, active: bool = True, enabled: bool = True, pid: int = 0) -> Unit:
    """Return a loaded unit."""
    return Unit(name, True, active, enabled, pid, (str(program),))


def bundle(folder: Path, annotations: dict[str, str]) -> None:
    """Write the part of an OCI bundle that tells which pod it is of."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"annotations": annotations}))


def _program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path
