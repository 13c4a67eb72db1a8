# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host's kernels: which runs, which boots next, and for each the headers and the NVIDIA module that it has."""
from __future__ import annotations

import gzip
import lzma
import platform
import re
from pathlib import Path
from typing import Any

from .node import Node
from .versions import deb_key

_MODULES = "/lib/modules"
# Debian's own packages call the module nvidia-current and give it the alias nvidia.
_MODULE_NAMES = ("nvidia", "nvidia-current")
_MODULE_FILE = re.compile(r"^(?P<path>[^:]*/nvidia(?:-current)?\.ko(?:\.[a-z0-9]+)?):", re.MULTILINE)
_FIELD = re.compile(r"^(?P<name>filename|version|license|signer):[ \t]*(?P<value>.*)$", re.MULTILINE)
_FIELD_IN_FILE = re.compile(rb"(?:\A|\0)(?P<name>version|license)=(?P<value>[^\0]*)(?=\0)")
_LOADED_VERSION = re.compile(r"^NVRM version:\s+(?P<text>.*?)\s+(?P<version>\d+\.\d+(?:\.\d+)*)\s", re.MULTILINE)


def read_kernels(node: Node, running: str | None = None) -> dict[str, Any]:
    """Return ``kernel`` of the driver facts; ``installed`` from the oldest to the newest."""
    running = running or platform.release()
    releases = sorted((name for name in node.names(_MODULES) if _is_installed(node, name, running)), key=deb_key())
    if running not in releases:
        releases = sorted([*releases, running], key=deb_key())
    kernels = [{"release": name, "headers": _has_headers(node, name), "module": _module(node, name)} for name in releases]
    return {"running": running, "next": _next(node, releases, running), "installed": kernels}


def read_loaded(node: Node) -> dict[str, Any]:
    """Return ``loaded`` of the driver facts: the NVIDIA module that the running kernel has loaded, and whether nouveau is."""
    modules = [line.split(" ", 1)[0] for line in (node.text("/proc/modules") or "").splitlines()]
    return {"module": parse_loaded(node.text("/proc/driver/nvidia/version") or ""), "nouveau": "nouveau" in modules or node.exists("/sys/module/nouveau")}


def parse_loaded(text: str) -> dict[str, str] | None:
    """Return version and flavour from /proc/driver/nvidia/version, or None for any other text."""
    found = _LOADED_VERSION.search(text)
    if found is None:
        return None
    return {"version": found.group("version"), "flavour": "open" if "Open Kernel Module" in found.group("text") else "proprietary"}


def parse_modinfo(text: str) -> dict[str, Any] | None:
    """Return path, version, flavour and signer from the output of modinfo, or None where it shows no module."""
    fields = {found.group("name"): found.group("value").strip() for found in _FIELD.finditer(text)}
    if "filename" not in fields:
        return None
    flavour = _flavour(fields.get("license", ""))
    return {"path": fields["filename"], "version": fields.get("version", ""), "flavour": flavour, "signer": fields.get("signer") or None}


def _flavour(license_text: str) -> str:
    """Return the flavour by the licence that a module declares: "Dual MIT/GPL" or "NVIDIA"."""
    return "open" if "GPL" in license_text else "proprietary"


def _is_installed(node: Node, release: str, running: str) -> bool:
    """Return whether a folder of modules belongs to a kernel that is there: a removed kernel leaves what others (dkms) put into its folder."""
    return release == running or _has_image(node, release) or node.exists(f"{_MODULES}/{release}/kernel")


def _has_image(node: Node, release: str) -> bool:
    return any(node.exists(f"/boot/{name}-{release}") for name in ("vmlinuz", "vmlinux", "Image")) or node.exists(f"{_MODULES}/{release}/vmlinuz")


def _has_headers(node: Node, release: str) -> bool:
    """Return whether modules can be built for a kernel: its ``build`` link leads to a makefile."""
    return node.exists(f"{_MODULES}/{release}/build/Makefile")


def _next(node: Node, releases: list[str], running: str) -> str:
    """Return the kernel that boots next: what grubby says, else the newest with a boot image, as GRUB orders them; on a host without images the running one."""
    if node.which("grubby"):
        ran = node.run(["grubby", "--default-kernel"])
        release = ran.out.strip().partition("vmlinuz-")[2]
        if ran.rc == 0 and release:
            return release
    bootable = [release for release in releases if _has_image(node, release)]
    return bootable[-1] if bootable else running


def _module(node: Node, release: str) -> dict[str, Any] | None:
    """Return the NVIDIA module that a kernel would load, or None."""
    if node.which("modinfo"):
        for name in _MODULE_NAMES:
            ran = node.run(["modinfo", "-k", release, name])
            if ran.rc == 0:
                return parse_modinfo(ran.out)
        return None
    listed = _MODULE_FILE.search(node.text(f"{_MODULES}/{release}/modules.dep") or "")
    return None if listed is None else _from_file(node, f"{_MODULES}/{release}/{listed.group('path')}")


def _from_file(node: Node, path: str) -> dict[str, Any]:
    """Return what a module file says about itself, where there is no modinfo. The signer is not told; version is empty for a compression unknown here."""
    pairs = [found.groups() for found in _FIELD_IN_FILE.finditer(_unpacked(node.at(path)))]
    fields = {name.decode("ascii"): value.decode("utf-8", "replace") for name, value in pairs}
    return {"path": path, "version": fields.get("version", ""), "flavour": _flavour(fields.get("license", "")), "signer": None}


def _unpacked(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        if path.suffix == ".xz":
            return lzma.decompress(content)
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, lzma.LZMAError):
        return b""
