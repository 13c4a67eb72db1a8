# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Makes .rpm packages by rpmbuild, all of one set by one spec file, and the index of a repository of them."""
from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .contents import Entry, Layout, entries, pausing, scripts
from .stub import Relation, Stub
from .tools import Tools

_HEAD = """\
%global debug_package %{nil}
%global __os_install_post %{nil}
%global _binary_payload w1.gzdio
Name: stubs
Version: 1
Release: 1
Summary: stubs of driver packages, for tests
License: BSD
%description
Stubs of driver packages, for tests.
"""
#: Folders that belong to the system and not to a package.
_SYSTEM_FOLDERS = frozenset((
    "usr", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/src", "usr/share", "usr/lib/systemd", "usr/lib/systemd/system", "usr/lib/firmware",
    "usr/lib/modules", "etc", ".",
))


def build(stubs: Sequence[Stub], layout: Layout, place: Path, tool: Tools) -> None:
    """Write the packages into the folder ``place``."""
    for group in _side_by_side(stubs, layout):
        _build(group, layout, place, tool)


def _side_by_side(stubs: Sequence[Stub], layout: Layout) -> list[list[Stub]]:
    """Return ``stubs`` in groups without a file in common: rpmbuild takes the files of all packages of a spec from one tree."""
    groups: list[tuple[list[Stub], set[str]]] = []
    for stub in stubs:
        paths = {entry.path for entry in entries(stub, layout)}
        group = next((group for group in groups if not group[1] & paths), None)
        if group is None:
            group = ([], set())
            groups.append(group)
        group[0].append(stub)
        group[1].update(paths)
    return [members for members, _paths in groups]


def _build(stubs: Sequence[Stub], layout: Layout, place: Path, tool: Tools) -> None:
    top = tool.scratch / "rpmbuild"
    tree = top / "tree"
    spec = [_HEAD]
    install = [f"%install\nmkdir -p %{{buildroot}}\ncp -a {tool.inside(tree)}/. %{{buildroot}}/\n"]
    lists = []
    for stub in stubs:
        files = entries(stub, layout)
        for entry in files:
            _lay(entry, tree)
        spec.append(_package(stub))
        lists.append(_scripts(stub, files) + _files(stub, files, layout))
    top.mkdir(parents=True, exist_ok=True)
    (top / "stubs.spec").write_text("\n".join([*spec, *install, *lists]))
    tool.run("rpmbuild", "-bb", "--quiet", "--define", f"_topdir {tool.inside(top)}", tool.inside(top / "stubs.spec"))
    for path in top.glob("RPMS/*/*.rpm"):
        shutil.move(path, place / path.name)
    shutil.rmtree(top)


def index(folder: Path, tool: Tools, modules: str = "") -> None:
    """Write repodata for the packages in ``folder``, which lies in the tools' scratch folder. ``modules``: modulemd documents, if any."""
    tool.run("createrepo_c", "--quiet", "--no-database", tool.inside(folder))
    if modules:
        (folder / "modules.yaml").write_text(modules)
        tool.run("modifyrepo_c", "--mdtype=modules", tool.inside(folder / "modules.yaml"), tool.inside(folder / "repodata"))
        (folder / "modules.yaml").unlink()


def file_name(stub: Stub) -> str:
    """Return the name that rpmbuild gives the package."""
    return f"{stub.name}-{stub.version}-{stub.release}.{architecture(stub)}.rpm"


def architecture(stub: Stub) -> str:
    """Return noarch or x86_64."""
    return "noarch" if stub.all_architectures else "x86_64"


def modules_document(stubs: Sequence[Stub], default: str) -> str:
    """Return the modulemd documents of the module nvidia-driver: a stream for each that ``stubs`` name, ``default`` being the default one."""
    documents = []
    for stream in sorted({stream for stub in stubs for stream in stub.streams}):
        members = [stub for stub in stubs if stream in stub.streams]
        newest = max(tuple(int(part) for part in stub.driver.split(".")) for stub in members)
        rows = "".join(f"      - {stub.name}-{stub.epoch}:{stub.version}-{stub.release}.{architecture(stub)}\n" for stub in members)
        documents.append(_MODULE.format(stream=stream, version="".join(f"{part:03}" for part in newest), rows=rows))
    return "".join(documents) + _DEFAULTS.format(stream=default)


_MODULE = """\
---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: "{stream}"
  version: {version}
  context: stubs
  arch: x86_64
  summary: NVIDIA driver, stream {stream}
  description: Stub of NVIDIA's module, for tests.
  license:
    module: [BSD]
  artifacts:
    rpms:
{rows}"""
_DEFAULTS = """\
---
document: modulemd-defaults
version: 1
data:
  module: nvidia-driver
  stream: "{stream}"
"""


def _package(stub: Stub) -> str:
    lines = [f"%package -n {stub.name}", "Summary: stub of a driver package, for tests", f"Version: {stub.version}", f"Release: {stub.release}",
             f"Vendor: {stub.maker}", "AutoReqProv: no"]
    if stub.epoch:
        lines.append(f"Epoch: {stub.epoch}")
    if stub.all_architectures:
        lines.append("BuildArch: noarch")
    lines += [f"Requires: {_relation(stub, relation)}" for relation in stub.depends]
    lines += [f"Conflicts: {name}" for name in stub.conflicts]
    lines += [f"Provides: {name}" for name in stub.provides]
    return "\n".join([*lines, f"%description -n {stub.name}", "Stub of a driver package, for tests.", ""])


def _relation(stub: Stub, relation: Relation) -> str:
    number = f"{stub.epoch}:{stub.version}" if stub.epoch else stub.version
    if relation.operator == "=":
        return f"{relation.name} = {number}-{stub.release}"
    return f"{relation.name} >= {number}" if relation.operator else relation.name


def _scripts(stub: Stub, files: list[Entry]) -> str:
    ran = scripts(stub)
    ldconfig = ["/sbin/ldconfig"] if ran.ldconfig else []
    units = [Path(entry.path).name for entry in files if entry.path.endswith(".service")]
    reload = ["[ ! -d /run/systemd/system ] || systemctl daemon-reload"] if units else []
    before = list(ran.remove)
    if units:
        before = ["if [ $1 = 0 ]; then", *(f"systemctl disable --now {unit}" for unit in units), "fi", *before]
    text = ""
    for section, lines in (("post", [*pausing(stub.name), *ran.configure, *ldconfig, *reload]), ("preun", before), ("postun", [*ldconfig, *reload])):
        if lines:
            text += "\n".join([f"%{section} -n {stub.name}", *lines, ""])
    return text


def _files(stub: Stub, files: list[Entry], layout: Layout) -> str:
    folders: set[str] = set()
    for entry in files:
        folders |= {str(parent) for parent in Path(entry.path).parents}
    own = sorted(folders - _SYSTEM_FOLDERS - {layout.libraries, f"usr/lib/modules/{layout.kernel}"})
    lines = [f"%files -n {stub.name}", *(f"%dir /{folder}" for folder in own)]
    lines += [("%config(noreplace) " if entry.path.startswith("etc/") else "") + f"/{entry.path}" for entry in files]
    return "\n".join([*lines, ""])


def _lay(entry: Entry, tree: Path) -> None:
    path = tree / entry.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if entry.link:
        path.symlink_to(entry.link)
    else:
        path.write_bytes(entry.content)
        path.chmod(entry.mode)
