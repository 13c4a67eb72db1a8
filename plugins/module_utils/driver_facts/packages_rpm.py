# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The driver's packages as rpm knows them, with the locks of dnf and zypper and the module streams of dnf."""
from __future__ import annotations

import re
from collections.abc import Sequence
from configparser import ConfigParser
from configparser import Error as NotIni
from fnmatch import fnmatchcase
from typing import Any, Callable

from ..knowledge.driver_packages import upstream_version
from .node import Node
from .origins import origin

_FORMAT = "%{NAME}\\t%{EPOCH}\\t%{VERSION}-%{RELEASE}\\t%{ARCH}\\t%{VENDOR}\\t%{PACKAGER}\\t%|RSAHEADER?{%{RSAHEADER:pgpsig}}:{%{SIGPGP:pgpsig}}|\\n"
# The name in a spec with a version; a version begins with two numbers and a dot between them, and a release may follow.
_LOCKED_VERSION = re.compile(r"(?P<name>.+?)-(?:\d+:)?\d+\.\d[^-]*(?:-[^-]*)?$")
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
    for line in text.split("\n"):  # no other line end: a vendor's name may hold any
        if line.count("\t") < 6:
            continue  # the rest of a vendor or packager of several lines
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


def held(node: Node, manager: str, packages: Sequence[dict[str, Any]]) -> list[str]:
    """Return ``held`` of the driver facts: the names of those of ``packages`` (installed ones of the driver) that a lock of dnf or zypper is about."""
    if manager == "zypper":
        locks = parse_zypp_locks(node.text(ZYPP_LOCKS) or "")
        return sorted({package["name"] for package in packages if any(fnmatchcase(package["name"], lock) for lock in locks)})
    specs = parse_versionlock(node.text(VERSIONLOCK) or "")
    return sorted({package["name"] for package in packages if any(is_locked(package, spec) for spec in specs)})


def parse_versionlock(text: str) -> list[str]:
    """Return the specs in dnf's list of locked versions, without those that only exclude a version (``!``)."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "!"))]


def is_locked(package: dict[str, Any], spec: str) -> bool:
    """Return whether a locked spec is about an installed package, at whatever version: dnf then offers none but those that the spec names.

    A spec is a name, or ``name-[epoch:]version-release.arch`` as a whole or in part, wildcards anywhere.
    """
    cut = _LOCKED_VERSION.match(spec)
    if cut is not None:
        return fnmatchcase(package["name"], cut.group("name"))
    whole = f"{package['name']}-{package['full'].rpartition(':')[2]}"
    return any(fnmatchcase(text, spec) for text in (package["name"], f"{package['name']}.{package['arch']}", whole, f"{whole}.{package['arch']}"))


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
