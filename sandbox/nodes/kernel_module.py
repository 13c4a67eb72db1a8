# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kernel module files that `modinfo` reads as it reads NVIDIA's. They hold their description and no code: nothing can load them."""
from __future__ import annotations

import struct

#: Flavour of the driver -> licence that its module declares, by which the flavours are told apart.
LICENCES = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}

_HEADER = "<16sHHIQQQIHHHHHH"
_SECTION = "<IIQQQQIIQQ"
_HEADER_SIZE, _SECTION_SIZE, _SYMBOL_SIZE = struct.calcsize(_HEADER), struct.calcsize(_SECTION), 24
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC = 2


def nvidia_module(version: str, flavour: str, kernel: str) -> bytes:
    """Return nvidia.ko of a driver for one kernel release. Raises KeyError for an unknown flavour."""
    fields = {
        "name": "nvidia", "version": version, "license": LICENCES[flavour], "supported": "external", "depends": "", "retpoline": "Y",
        "alias": "pci:v000010DEd*sv*sd*bc03sc02i00*", "vermagic": f"{kernel} SMP preempt mod_unload ",
    }
    return module_file(fields)


def module_file(fields: dict[str, str]) -> bytes:
    """Return an ELF object (relocatable, x86-64) whose section .modinfo holds ``fields``, with an empty symbol table."""
    modinfo = b"".join(f"{key}={value}\0".encode() for key, value in fields.items())
    names = b"\0.modinfo\0.symtab\0.strtab\0.shstrtab\0"
    sections = [  # name, type, flags, content, link, info, alignment, size of an entry
        (b".modinfo", _PROGBITS, _ALLOC, modinfo, 0, 0, 1, 0),
        (b".symtab", _SYMTAB, 0, bytes(_SYMBOL_SIZE), 3, 1, 8, _SYMBOL_SIZE),
        (b".strtab", _STRTAB, 0, b"\0", 0, 0, 1, 0),
        (b".shstrtab", _STRTAB, 0, names, 0, 0, 1, 0),
    ]
    body, table = b"", bytes(_SECTION_SIZE)
    for name, kind, flags, content, link, info, alignment, entry in sections:
        body += bytes(-(_HEADER_SIZE + len(body)) % alignment)
        offset = _HEADER_SIZE + len(body)
        table += struct.pack(_SECTION, names.index(b"\0" + name + b"\0") + 1, kind, flags, 0, offset, len(content), link, info, alignment, entry)
        body += content
    body += bytes(-(_HEADER_SIZE + len(body)) % 8)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack(
        _HEADER, identity, _RELOCATABLE, _X86_64, 1, 0, 0, _HEADER_SIZE + len(body), 0, _HEADER_SIZE, 0, 0, _SECTION_SIZE, len(sections) + 1, len(sections),
    )
    return header + body + table
