# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a host needs a reboot for its driver, and why: sentences, never a mere yes."""
from __future__ import annotations

from typing import Any, Optional

from . import facts as read
from .facts import Facts


def reasons(facts: Facts, version: str = "", flavour: str = "", options_changed: bool = False) -> list[str]:
    """Return the reasons for a reboot, empty when there are none.

    Without ``version`` and ``flavour`` the facts speak of what is installed; with them, of what is about to be. ``options_changed`` says that module
    options were or will be changed. A driver that is not loaded yet is no reason where :func:`can_load` says so.
    """
    loaded = read.loaded_module(facts)
    installed = _module(facts)
    version, flavour = version or str(installed.get("version") or ""), flavour or str(installed.get("flavour") or "")
    running, following = read.kernel(facts, "running"), read.kernel(facts, "next")
    found: list[Optional[str]] = [
        "the kernel module nouveau is loaded" if (facts.get("loaded") or {}).get("nouveau") else None,
        f"kernel module {loaded['version']} is loaded, {version} is installed" if loaded and version and loaded["version"] != version else None,
        _flavours(loaded, flavour),
        _nvml(facts, loaded, version),
        f"kernel {following['release']} boots next and has the driver's kernel module, the running {running['release']} has not"
        if following["release"] != running["release"] and following["module"] and not running["module"] and not loaded else None,
        "options of the loaded kernel module have changed" if options_changed and loaded else None,
        *(str(hint) for hint in facts.get("reboot_hints") or []),
    ]
    return [reason for reason in found if reason]


def can_load(facts: Facts) -> bool:
    """Return whether the installed driver can be loaded by modprobe, without a reboot: none is loaded, neither is nouveau, the running kernel has it."""
    nouveau = (facts.get("loaded") or {}).get("nouveau")
    return not read.loaded_module(facts) and not nouveau and bool(read.kernel(facts, "running")["module"])


def _module(facts: Facts) -> dict[str, Any]:
    """Return the installed kernel module: that of the kernel which boots next, else that of the running one, else empty."""
    return read.kernel(facts, "next")["module"] or read.kernel(facts, "running")["module"] or {}


def _flavours(loaded: Optional[dict[str, Any]], flavour: str) -> Optional[str]:
    if not loaded or not flavour or not loaded.get("flavour") or loaded["flavour"] == flavour:
        return None
    return f"the loaded kernel module is {loaded['flavour']}, the installed one {flavour}"


def _nvml(facts: Facts, loaded: Optional[dict[str, Any]], version: str) -> Optional[str]:
    """Return the library's mismatch, unless the versions of the modules say it already."""
    cause = str(((facts.get("nvml") or {}).get("error") or {}).get("cause") or "")
    told = bool(loaded and version and loaded["version"] != version)
    return f"NVML says: {cause}" if loaded and "mismatch" in cause.lower() and not told else None
