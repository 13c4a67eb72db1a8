# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the firmware's Secure Boot is on: from the EFI variable itself, which mokutil reads as well."""
from __future__ import annotations

from typing import Any

from .node import Node

_EFI = "/sys/firmware/efi"
_VARIABLE = f"{_EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_NOT_ENFORCED = f"{_EFI}/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"

# Public halves of the key by which dkms signs what it builds: its own, and Ubuntu's.
_DKMS_KEYS = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der")


def read_secure_boot(node: Node) -> dict[str, Any]:
    """Return ``secure_boot`` of the driver facts: ``enabled``, the ``evidence`` for it, and ``dkms_key_enrolled``, always false where it is not enabled."""
    found = _state(node)
    return {**found, "dkms_key_enrolled": found["enabled"] and _dkms_key_enrolled(node)}


def _dkms_key_enrolled(node: Node) -> bool:
    """Return whether the firmware's list of keys has the one of dkms. mokutil says so in words; its exit status means other things as well."""
    keys = [key for key in _DKMS_KEYS if node.exists(key)] if node.which("mokutil") else []
    return any("already enrolled" in node.run(["mokutil", "--test-key", key]).tail() for key in keys)


def _not_enforced(node: Node) -> bool:
    """Return whether shim tells the kernel not to check signatures; the kernel then counts Secure Boot as off (its drivers/firmware/efi/libstub)."""
    try:
        return node.at(_NOT_ENFORCED).read_bytes()[4:5] == b"\1"
    except OSError:
        return False


def _state(node: Node) -> dict[str, Any]:
    try:
        content = node.at(_VARIABLE).read_bytes()
    except OSError:
        content = b""
    if len(content) >= 5 and content[4] == 1 and _not_enforced(node):
        return {"enabled": False, "evidence": f"{_NOT_ENFORCED} is 1: switched off by mokutil --disable-validation"}
    if len(content) >= 5:  # four bytes of attributes, then the value
        return {"enabled": content[4] == 1, "evidence": f"{_VARIABLE} is {content[4]}"}
    if not node.exists(_EFI):
        return {"enabled": False, "evidence": f"{_EFI} does not exist: not started by EFI"}
    if node.which("mokutil"):
        # Where efivarfs is not mounted; exit status 255 when EFI variables are not supported.
        ran = node.run(["mokutil", "--sb-state"])
        return {"enabled": "SecureBoot enabled" in ran.out, "evidence": f"mokutil --sb-state: {ran.tail()}"}
    return {"enabled": False, "evidence": f"{_VARIABLE} does not exist"}
