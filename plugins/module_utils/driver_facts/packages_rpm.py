# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The driver's packages as rpm knows them, with the locks of dnf and zypper and the module streams of dnf."""
from __future__ import annotations

import re
from configparser import ConfigParser
from configparser import Error as NotIni
from typing import Any, Callable

from ..knowledge.driver_packages import upstream_version
from .node import Node
from .origins import origin

_FORMAT = "%{NAME}\\t%{EPOCH}\\t%{VERSION}-%{RELEASE}\\t%{ARCH}\\t%{VENDOR}\\t%{PACKAGER}\\t%|RSAHEADER?{%{RSAHEADER:pgpsig}}:{%{SIGPGP:pgpsig}}|\\n"
VERSIONLOCK = "/etc/dnf/plugins/versionlock.list"
ZYPP_LOCKS = "/etc/zypp/locks"
_STREAM = "/etc/dnf/modules.d/nvidia-driver.module"
REPOSITORIES = {"dnf": "/etc/yum.repos.d", "tdnf": "/etc/yum.repos.d", "zypper": "/etc/zypp/repos.d"}


def read(node: Node, of_the_driver: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Return ``packages`` of the driver facts."""
    return parse(node.query(["rpm", "-qa", f"--queryformat={_FORMAT}"]), of_the_driver)


def parse(text: str, of_the_driver: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Return ``packages`` from rpm's output. ``full`` has the epoch in front unless it is none or 0."""
    packages = []
    for line in text.splitlines():
        name, epoch, release, arch, vendor, packager, signature = line.split("\t", 6)
        if not of_the_driver(name):
            continue
        full = release if epoch in ("(none)", "0", "") else f"{epoch}:{release}"
        said = ", ".join(
            f"{title}: {value}" for title, value in (("Vendor", vendor), ("Packager", packager), ("Signature", signature)) if value not in ("(none)", "")
        )
        packages.append({"name": name, "version": upstream_version(release), "full": full, "arch": arch, "origin": origin(said), "source": said or "no vendor"})
    return sorted(packages, key=lambda package: (package["name"], package["arch"], package["full"]))


def trusted_keys(node: Node) -> list[str]:
    """Return the ids, eight hexadecimal digits each, of the keys that rpm trusts."""
    out = node.query(["rpm", "-q", "--queryformat=%{VERSION}\\n", "gpg-pubkey"], good=(0, 1))
    return sorted({line.strip().lower() for line in out.splitlines() if re.fullmatch(r"[0-9A-Fa-f]{8}", line.strip())})


def owners(node: Node, paths: list[str]) -> dict[str, str | None]:
    """Return the package that each file belongs to, None for a file of none."""
    found: dict[str, str | None] = {}
    for path in paths:
        ran = node.run(["rpm", "-qf", "--queryformat=%{NAME}", path])
        found[path] = ran.out.strip() if ran.rc == 0 else None
    return found


def held(node: Node, manager: str, installed: list[str], of_the_driver: Callable[[str], bool]) -> list[str]:
    """Return ``held`` of the driver facts: installed packages of the driver that a lock names, and locks by pattern as they stand."""
    zypper = manager == "zypper"
    patterns = parse_zypp_locks(node.text(ZYPP_LOCKS) or "") if zypper else parse_versionlock(node.text(VERSIONLOCK) or "", installed)
    return sorted({pattern for pattern in patterns if of_the_driver(pattern) or ("*" in pattern and "nvidia" in pattern)})


def parse_versionlock(text: str, installed: list[str]) -> list[str]:
    """Return the names in dnf's list of locked versions; a line that excludes a version (``!``) locks nothing.

    A line is ``name-epoch:version-release.arch`` with wildcards, or any other package spec; the name is the longest installed one that it begins with.
    """
    names = []
    for line in text.splitlines():
        spec = line.strip()
        if not spec or spec.startswith(("#", "!")):
            continue
        known = [name for name in installed if spec == name or spec.startswith(f"{name}-")]
        cut = re.match(r"(?P<name>.+?)-(?:\d+:)?\d", spec)
        names.append(max(known, key=len) if known else cut.group("name") if cut else spec)
    return names


def parse_zypp_locks(text: str) -> list[str]:
    """Return the names in zypper's locks."""
    return re.findall(r"^solvable_name:[ \t]*(\S+)", text, re.MULTILINE)


def read_stream(node: Node) -> str | None:
    """Return the enabled stream of dnf's module nvidia-driver, or None."""
    state = _ini(node.text(_STREAM) or "")
    if not state.has_section("nvidia-driver") or state.get("nvidia-driver", "state", fallback="") != "enabled":
        return None
    return state.get("nvidia-driver", "stream", fallback="") or None


def sources(node: Node, manager: str) -> list[tuple[str, str]]:
    """Return (file, address) of every package source that is switched on."""
    found = []
    folder = REPOSITORIES.get(manager, "")
    for name in node.names(folder) if folder else []:
        if name.endswith(".repo"):
            found += [(f"{folder}/{name}", address) for address in parse_repo(node.text(f"{folder}/{name}") or "")]
    return found


def parse_repo(text: str) -> list[str]:
    """Return the addresses of the sections of a .repo file that are enabled; those of a file that is none are none."""
    parser = _ini(text)
    addresses: list[str] = []
    for section in parser.sections():
        if parser.get(section, "enabled", fallback="1").strip().lower() not in ("0", "false", "no", "off"):
            for key in ("baseurl", "mirrorlist", "metalink"):
                addresses += parser.get(section, key, fallback="").replace(",", " ").split()
    return addresses


def _ini(text: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except NotIni:
        return ConfigParser(interpolation=None)
    return parser
