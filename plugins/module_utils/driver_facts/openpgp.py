# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fingerprints of OpenPGP keys (RFC 4880, RFC 9580) without gpg, which a bare host may lack."""
from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

_ARMOUR = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----[ \t]*\n(?:[^\n]*:[^\n]*\n)*[ \t]*\n(?P<body>.*?)-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL,
)
_PUBLIC_KEY = 6


class NotAKey(ValueError):
    """The content is not one OpenPGP public key; says why."""


def fingerprint(content: bytes) -> str:
    """Return the fingerprint of the primary key as capital hexadecimal digits: 40 for version 4, 64 for version 6.

    ``content`` is ASCII-armoured or binary. Raises NotAKey for what is no public key, and for more than one: a package manager would trust them all.
    """
    keys = [body for tag, body in _packets(dearmoured(content)) if tag == _PUBLIC_KEY]
    if len(keys) != 1:
        raise NotAKey(f"it holds {len(keys)} public keys instead of one")
    body = keys[0]
    version = body[0] if body else 0
    if version == 4:
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()  # the standard's own use of SHA-1
    if version == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise NotAKey(f"its key has version {version}, not 4 or 6")


def armoured(content: bytes) -> str:
    """Return a key, armoured or binary, as one ASCII-armoured block. Raises NotAKey."""
    binary = dearmoured(content)
    encoded = base64.b64encode(binary).decode("ascii")
    lines = [encoded[start:start + 64] for start in range(0, len(encoded), 64)]
    checksum = base64.b64encode(_crc24(binary).to_bytes(3, "big")).decode("ascii")
    return "\n".join(["-----BEGIN PGP PUBLIC KEY BLOCK-----", "", *lines, f"={checksum}", "-----END PGP PUBLIC KEY BLOCK-----", ""])


def dearmoured(content: bytes) -> bytes:
    """Return the packets of a key that is armoured or binary. Raises NotAKey."""
    if b"-----BEGIN" not in content:
        return content
    blocks = list(_ARMOUR.finditer(content.replace(b"\r\n", b"\n")))
    if len(blocks) != 1 or content.count(b"-----BEGIN") != 1:
        raise NotAKey(f"it holds {len(blocks)} blocks of public keys instead of one")
    # The checksum is a line that begins with "="; base64 itself may only end with it.
    lines = [line.strip() for line in blocks[0].group("body").splitlines() if not line.startswith(b"=")]
    try:
        return base64.b64decode(b"".join(lines), validate=True)
    except binascii.Error as error:
        raise NotAKey(f"its armour is damaged ({error})") from error


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (tag, body) of each packet. Raises NotAKey for what is cut off or no packet."""
    place = 0
    while place < len(data):
        head = data[place]
        if not head & 0x80:
            raise NotAKey("it is no OpenPGP data")
        if head & 0x40:
            tag, (length, place) = head & 0x3F, _new_length(data, place + 1)
        else:
            tag, size = (head & 0x3C) >> 2, (1, 2, 4, 0)[head & 3]
            if not size:
                raise NotAKey("it has a packet without a length")
            length, place = int.from_bytes(data[place + 1:place + 1 + size], "big"), place + 1 + size
        if place + length > len(data):
            raise NotAKey("it is cut off")
        yield tag, data[place:place + length]
        place += length


def _new_length(data: bytes, place: int) -> tuple[int, int]:
    """Return (length of the body, where it begins) of a packet in the new format."""
    first = data[place] if place < len(data) else 255
    if first < 192:
        return first, place + 1
    if first < 224 and place + 1 < len(data):
        return ((first - 192) << 8) + data[place + 1] + 192, place + 2
    if first == 255 and place + 5 <= len(data):
        return int.from_bytes(data[place + 1:place + 5], "big"), place + 5
    raise NotAKey("it has a packet of unknown length")


def _crc24(data: bytes) -> int:
    """Return the checksum of ASCII armour."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _bit in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc & 0xFFFFFF
