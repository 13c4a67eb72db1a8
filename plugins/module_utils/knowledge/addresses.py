# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""User name and password in an address (``https://user:password@mirror/``): found, taken out, made unreadable. Nothing shows them."""
from __future__ import annotations

import hashlib
import re

# RFC 3986, section 3.2: they end at the last @ before the path.
_CREDENTIALS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<credentials>[^/\s]*)@", re.IGNORECASE)
_OF_DNF = re.compile(r"^(?P<scheme>(?:username|password)=)(?P<credentials>.+)$", re.MULTILINE)
_ROUNDS = 100_000


def credentials(address: str) -> str:
    """Return ``user:password`` of an address as it stands there, empty when it has none."""
    found = _CREDENTIALS.match(address)
    return found.group("credentials") if found else ""


def user_and_password(address: str) -> tuple[str, str]:
    """Return both, decoded (%40 is @), empty when the address has none."""
    user, _colon, password = credentials(address).partition(":")
    return _decoded(user), _decoded(password)


def without_credentials(text: str) -> str:
    """Return an address, or a text with addresses, as it may be shown."""
    return _CREDENTIALS.sub(r"\g<scheme>", text)


def sealed(text: str) -> str:
    """Return the text of a file with a digest in the place of each user name and password: equal for equal ones, and of no use to a reader."""
    for pattern in (_CREDENTIALS, _OF_DNF):
        text = pattern.sub(_seal, text)
    return text


def _seal(found: re.Match[str]) -> str:
    # Many rounds, since passwords can be guessed.
    digest = hashlib.pbkdf2_hmac("sha256", found.group("credentials").encode("utf-8"), b"gpufleet.dra", _ROUNDS).hex()[:16]
    return f"{found.group('scheme')}{digest}" + ("@" if found.group(0).endswith("@") and "://" in found.group("scheme") else "")


def _decoded(text: str) -> str:
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found.group(1), 16)]), text.encode("utf-8")).decode("utf-8", "replace")
