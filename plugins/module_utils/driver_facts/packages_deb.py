# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The driver's packages as dpkg knows them."""
from __future__ import annotations

import re
from typing import Any, Callable

from ..knowledge.driver_packages import upstream_version
from .node import Node
from .origins import origin

_FORMAT = "${db:Status-Abbrev}\\t${Package}\\t${Version}\\t${Architecture}\\t${Maintainer}\\n"
# dpkg's answer where a pattern matches nothing.
_NONE_FOUND = 1
# Third letter of the state: what dpkg could not finish ("reinstreq").
_BROKEN_STATES = "HUFWt"  # half-installed, unpacked, half-configured, triggers awaited, triggers pending


def read(node: Node, of_the_driver: Callable[[str], bool]) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return (``packages``, ``held``, ``broken_packages``) of the driver facts."""
    return parse(node.query(["dpkg-query", "-W", f"--showformat={_FORMAT}"], good=(0, _NONE_FOUND)), of_the_driver)


def parse(text: str, of_the_driver: Callable[[str], bool]) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return what :func:`read` returns, from dpkg-query's output.

    Packages of which only configuration files are left are not installed. Broken are those of any kind whose installation was interrupted:
    with them apt refuses every transaction until ``dpkg --configure -a``.
    """
    packages, held, broken = [], [], []
    for line in text.split("\n"):  # no other line end: a maintainer's name may hold any
        if line.count("\t") < 4:
            continue
        status, name, version, arch, maintainer = line.split("\t", 4)
        want, state = status[0], status[1]
        if state in _BROKEN_STATES or status[2:3].strip():
            broken.append(name)
        if not of_the_driver(name) or state in "nc":
            continue
        if want == "h":
            held.append(name)
        source = f"Maintainer: {maintainer}"
        packages.append({"name": name, "version": upstream_version(version), "full": version, "arch": arch, "origin": origin(maintainer), "source": source})
    return sorted(packages, key=lambda package: (package["name"], package["arch"])), sorted(set(held)), sorted(set(broken))


def owners(node: Node, paths: list[str]) -> dict[str, str | None]:
    """Return the package that each file belongs to, None for a file of none. dpkg knows a file by the path under which it was packed."""
    found: dict[str, str | None] = dict.fromkeys(paths)
    spellings = {spelling: path for path in paths for spelling in (path, path.removeprefix("/usr"))}
    for line in node.run(["dpkg-query", "-S", *spellings]).out.splitlines():
        package, _colon, path = line.rpartition(": ")
        if path in spellings:
            found[spellings[path]] = package.partition(":")[0]
    return found


def sources(node: Node) -> list[tuple[str, str]]:
    """Return (file, address) of every package source that is switched on."""
    found = []
    for path in ("/etc/apt/sources.list", *(f"/etc/apt/sources.list.d/{name}" for name in node.names("/etc/apt/sources.list.d"))):
        if path.endswith((".list", ".sources")):
            found += [(path, address) for address in parse_sources(path, node.text(path) or "")]
    return found


def parse_sources(path: str, text: str) -> list[str]:
    """Return the addresses in a sources file: one-line form, or deb822 for names that end in ``.sources`` (sources.list(5))."""
    if not path.endswith(".sources"):
        return re.findall(r"^\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s*)?(\S+)", text, re.MULTILINE)
    addresses = []
    for stanza in re.split(r"\n\s*\n", text):
        if re.search(r"^Enabled:\s*(?:no|false|0|off|without|disable)\s*$", stanza, re.MULTILINE | re.IGNORECASE):
            continue
        for value in re.findall(r"^URIs:((?:.|\n[ \t])*)", stanza, re.MULTILINE | re.IGNORECASE):
            addresses += value.split()
    return addresses
