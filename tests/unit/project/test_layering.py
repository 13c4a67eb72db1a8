# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rooms of docs/architecture.md, held by a look at every import under plugins/."""
from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins" / "module_utils"
PACKAGE = "ansible_collections.gpufleet.dra.plugins.module_utils"

# What may be imported, by room; first match wins. Node code is standard library and our own code only.
PURE_STDLIB = {
    "__future__", "collections", "copy", "dataclasses", "decimal", "enum", "fnmatch", "fractions", "functools", "hashlib", "itertools", "json", "math",
    "operator", "re", "reprlib", "typing", "xml",
}
PURE_ROOMS = ("mig", "dra", "knowledge", "driver", "reason_rows")
# The rooms that run on GPU nodes.
NODE_ROOMS = ("mig", "converge", "nvml", "dra", "knowledge", "boot", "driver", "driver_facts", "runtime", "reason_rows")
# Bindings that a node has or is brought, and the one file of each that uses them.
BINDINGS = {("pynvml", "nvml/session.py"), ("dnf", "driver_facts/dnf_questions.py")}
CLUSTER_CLIENTS = ("kubernetes", "ansible_collections.kubernetes")


def imports_of(path: Path) -> set[str]:
    """Return every absolute module name that ``path`` imports, also inside functions; relative ones are resolved."""
    package = [PACKAGE, *path.relative_to(UTILS).parts[:-1]] if path.is_relative_to(UTILS) else [""]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = ".".join([*".".join(package).split(".")[: len(".".join(package).split(".")) - node.level + 1], node.module or ""]).rstrip(".")
                found.update(f"{base}.{alias.name}" for alias in node.names)
            else:
                found.add(node.module or "")
    return found


def sources(*parts: str) -> list[Path]:
    return sorted(path for path in UTILS.joinpath(*parts).rglob("*.py") if path.name != "__init__.py")


def relative(path: Path) -> str:
    return str(path.relative_to(UTILS))


def room(name: str) -> str | None:
    """Return the room of an import of our own ('mig', 'nvml', 'reasons', ...), None for others."""
    return name.removeprefix(PACKAGE + ".").split(".")[0] if name.startswith(PACKAGE + ".") else None


PURE = [*(path for room_of_thought in PURE_ROOMS for path in sources(room_of_thought)), UTILS / "reasons.py"]
NODE = [*(path for room_of_node in NODE_ROOMS for path in sources(room_of_node)), UTILS / "reasons.py"]


@pytest.mark.parametrize("path", PURE, ids=relative)
def test_pure_rooms_have_no_io_no_clock_and_no_ansible(path: Path) -> None:
    for name in imports_of(path):
        if room(name) is None:
            assert name.split(".")[0] in PURE_STDLIB, f"{relative(path)} imports {name}"
        else:
            assert room(name) in {*PURE_ROOMS, "reasons"}, f"{relative(path)} imports {name}"
    calls = {node.func.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not calls & {"open", "print", "input", "exec", "eval"}, relative(path)


@pytest.mark.parametrize("path", NODE, ids=relative)
def test_node_code_is_standard_library_and_pynvml_only(path: Path) -> None:
    for name in imports_of(path):
        top = name.split(".")[0]
        allowed = top in sys.stdlib_module_names or room(name) is not None or (top, relative(path)) in BINDINGS
        assert allowed, f"{relative(path)} imports {name}"


def test_only_the_nvml_session_imports_pynvml() -> None:
    users = {relative(path) for path in sources() if any(name.split(".")[0] == "pynvml" for name in imports_of(path))}
    assert users == {"nvml/session.py"}


def test_only_the_kube_room_imports_a_kubernetes_client() -> None:
    users = {relative(path) for path in sources() if any(name.startswith(CLUSTER_CLIENTS) for name in imports_of(path))}
    assert users
    assert all(name.startswith("kube/") for name in users), users


def test_only_planning_without_a_gpu_reads_the_profile_tables() -> None:
    users = {relative(path) for path in sources() if any(name.startswith(f"{PACKAGE}.knowledge.mig_profiles.") for name in imports_of(path))}
    assert users
    assert all(name.startswith("knowledge/") for name in users), users


def test_the_node_rooms_never_import_the_kube_room() -> None:
    for path in NODE:
        assert "kube" not in {room(name) for name in imports_of(path)}, relative(path)


@pytest.mark.parametrize("path", sorted((ROOT / "plugins" / "modules").glob("*.py")), ids=lambda path: path.name)
def test_modules_are_thin(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
    docs = [node for node in tree.body if isinstance(node, ast.Assign) and {t.id for t in node.targets if isinstance(t, ast.Name)} & names]
    last = max((node.end_lineno or 0 for node in docs), default=0)
    below = len(path.read_text(encoding="utf-8").splitlines()) - last
    assert below <= 150, f"{path.name} has {below} lines below its documentation: the logic belongs to module_utils"
