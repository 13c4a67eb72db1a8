# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the firmware's Secure Boot is on: from the EFI variable itself, which mokutil reads as well."""
from __future__ import annotations

from typing import Any

from .node import Node

_EFI = "/sys/firmware/efi"
_VARIABLE = f"{_EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def read_secure_boot(node: Node) -> dict[str, Any]:
    """Return ``secure_boot`` of the driver facts: ``enabled`` and the ``evidence`` for it."""
    try:
        content = node.at(_VARIABLE).read_bytes()
    except OSError:
        content = b""
    if len(content) >= 5:  # four bytes of attributes, then the value
        return {"enabled": content[4] == 1, "evidence": f"{_VARIABLE} is {content[4]}"}
    if not node.exists(_EFI):
        return {"enabled": False, "evidence": f"{_EFI} does not exist: not started by EFI"}
    if node.which("mokutil"):
        # Where efivarfs is not mounted; exit status 255 when EFI variables are not supported.
        ran = node.run(["mokutil", "--sb-state"])
        return {"enabled": "SecureBoot enabled" in ran.out, "evidence": f"mokutil --sb-state: {ran.tail()}"}
    return {"enabled": False, "evidence": f"{_VARIABLE} does not exist"}
