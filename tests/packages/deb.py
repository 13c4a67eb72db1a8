# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Makes .deb packages and the index of a repository of them, without Debian's tools."""
from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from .contents import Entry, Layout, entries, pausing, scripts
from .stub import Relation, Stub

_TIME = 1_700_000_000


def write(stub: Stub, layout: Layout, folder: Path) -> Path:
    """Write the package into ``folder`` and return its path."""
    files = entries(stub, layout)
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tar(_control_files(stub, files)),
        "data.tar.gz": _tar(files),
    }
    path = folder / f"{stub.name}_{stub.version}-{stub.release}_{_architecture(stub)}.deb"
    with path.open("wb") as stream:
        stream.write(b"!<arch>\n")
        for name, content in members.items():
            stream.write(f"{name:<16}{_TIME:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2))
    path.with_suffix(".control").write_text(control(stub))
    return path


def control(stub: Stub) -> str:
    """Return the control paragraph."""
    fields = {
        "Package": stub.name,
        "Version": stub.full_version,
        "Architecture": _architecture(stub),
        "Maintainer": stub.maker,
        "Section": "non-free/libs",
        "Priority": "optional",
        "Multi-Arch": "foreign",
        "Depends": ", ".join(_relation(stub, relation) for relation in stub.depends),
        "Conflicts": ", ".join(stub.conflicts),
        "Replaces": ", ".join(stub.conflicts),
        "Provides": ", ".join(stub.provides),
        "Description": "stub of a driver package, for tests",
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def index(folder: Path, packages: Iterable[Path], origin: str, label: str) -> None:
    """Write Packages, Packages.gz and Release of a flat repository. ``packages`` lie in ``folder``; beside each is its .control file (see write)."""
    paragraphs = []
    for path in sorted(packages):
        content = path.read_bytes()
        paragraphs.append(
            path.with_suffix(".control").read_text()
            + f"Filename: ./{path.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
        )
    text = "\n".join(paragraphs).encode()
    contents = {"Packages": text, "Packages.gz": gzip.compress(text, mtime=0)}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    rows = "".join(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n" for name, content in contents.items())
    release = f"Origin: {origin}\nLabel: {label}\nArchitectures: amd64\nDate: Thu, 05 Nov 2026 08:00:00 UTC\nSHA256:\n{rows}"
    (folder / "Release").write_text(release)


def _architecture(stub: Stub) -> str:
    return "all" if stub.all_architectures else "amd64"


def _relation(stub: Stub, relation: Relation) -> str:
    return f"{relation.name} ({relation.operator} {stub.full_version})" if relation.operator else relation.name


def _control_files(stub: Stub, files: list[Entry]) -> list[Entry]:
    ran = scripts(stub)
    ldconfig = ["ldconfig"] if ran.ldconfig else []
    after = ["#!/bin/sh", "set -e", '[ "$1" = configure ] || exit 0', *pausing(stub.name), *ran.configure, *ldconfig]
    units = [entry.path for entry in files if entry.path.endswith(".service")]
    if units:
        after.append("[ ! -d /run/systemd/system ] || systemctl daemon-reload")
    if "persistenced" in stub.parts:  # as NVIDIA's does; it runs from the next boot on
        after.append("systemctl enable nvidia-persistenced.service")
    found = [Entry("control", control(stub).encode()), Entry("postinst", "\n".join([*after, ""]).encode(), 0o755)]
    stop = [f"systemctl disable --now {Path(unit).name}" for unit in units]
    before = ["#!/bin/sh", "set -e", *ran.remove, *(["if [ \"$1\" = remove ]; then", *stop, "fi"] if stop else [])]
    if len(before) > 2:
        found.append(Entry("prerm", "\n".join([*before, ""]).encode(), 0o755))
    if ldconfig or units:
        last = ["#!/bin/sh", "set -e", *ldconfig, *(["[ ! -d /run/systemd/system ] || systemctl daemon-reload"] if units else [])]
        found.append(Entry("postrm", "\n".join([*last, ""]).encode(), 0o755))
    configuration = [f"/{entry.path}\n" for entry in files if entry.path.startswith("etc/")]
    if configuration:
        found.append(Entry("conffiles", "".join(configuration).encode()))
    return found


def _tar(files: Iterable[Entry]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        made: set[str] = set()
        for entry in sorted(files, key=lambda entry: entry.path):
            for parent in reversed(Path(entry.path).parents):
                name = f"./{parent}" if str(parent) != "." else "."
                if name not in made:
                    made.add(name)
                    folder = _member(name, 0o755)
                    folder.type = tarfile.DIRTYPE
                    archive.addfile(folder)
            member = _member(f"./{entry.path}", entry.mode)
            if entry.link:
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, entry.link, 0o777
                archive.addfile(member)
            else:
                member.size = len(entry.content)
                archive.addfile(member, io.BytesIO(entry.content))
    return gzip.compress(stream.getvalue(), compresslevel=1, mtime=0)


def _member(name: str, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = mode, _TIME
    member.uname = member.gname = "root"
    return member
