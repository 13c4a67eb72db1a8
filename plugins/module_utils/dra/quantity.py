# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kubernetes quantities, exactly: "81559Mi" is a number, and two spellings of one number are equal."""
from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$")
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MIB = 2**20


def parse_quantity(text: str) -> Fraction:
    """Return the exact value of a quantity in its base unit (bytes for memory).

    The grammar is that of k8s.io/apimachinery's resource.Quantity. Raises ValueError for anything else.
    """
    match = _QUANTITY.match(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = Fraction(match.group(1)), match.group(2) or ""
    if suffix in _BINARY:
        return number * 1024 ** _BINARY[suffix]
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return number * Fraction(10) ** exponent


def format_memory(value: Fraction) -> str:
    """Return bytes for a person: whole MiB as "81559Mi", anything else as plain bytes."""
    if value % _MIB == 0:
        return f"{value // _MIB}Mi"
    return format_count(value)


def format_count(value: Fraction) -> str:
    """Return a plain number without a unit."""
    return str(value.numerator) if value.denominator == 1 else str(float(value))
