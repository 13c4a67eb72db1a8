# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which GPU a layout rule means: by UUID, PCI address, index, minor, product glob or PCI device id."""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Callable

from ..reasons import FleetError, finding
from .catalogue import Gpu
from .shown import clipped, listed, shown

_PCI = re.compile(r"^(?:([0-9a-f]{4}|[0-9a-f]{8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?$")
_DEVICE_ID = re.compile(r"^0x[0-9a-f]{8}(:0x[0-9a-f]{8})?$")
KEYS = ("uuid", "pci_bus_id", "index", "minor", "product", "pci_device_id")
_PHYSICAL = ("uuid", "pci_bus_id", "index", "minor")


@dataclass(frozen=True)
class Match:
    """The condition of one rule: for every key one of its values must fit. No key at all means every GPU."""

    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def matches(self, gpu: Gpu) -> bool:
        """Return whether the rule means this GPU."""
        return all(any(_fits(key, value, gpu) for value in values) for key, values in self.keys)

    @property
    def is_all(self) -> bool:
        """Return whether the rule means every GPU."""
        return not self.keys

    def is_wider_than(self, other: Match) -> bool:
        """Return whether this condition plainly holds wherever ``other`` does: each of its keys is there too, with no other values."""
        theirs = dict(other.keys)
        return self.keys != other.keys and all(key in theirs and set(theirs[key]) <= set(values) for key, values in self.keys)

    def missing(self, gpus: Iterable[Gpu]) -> list[str]:
        """Return the values that name one physical GPU which this node does not have. Empty when the rule also has a model condition."""
        if any(key not in _PHYSICAL for key, _values in self.keys):
            return []
        gpus = list(gpus)
        return [f"{key} {clipped(value)}" for key, values in self.keys for value in values if not any(_fits(key, value, gpu) for gpu in gpus)]

    def __str__(self) -> str:
        return " and ".join(f"{key} {listed(values, ' or ')}" for key, values in self.keys) or "all"


def _fits(key: str, value: str, gpu: Gpu) -> bool:
    if key == "uuid":
        return gpu.uuid.lower() == value
    if key == "pci_bus_id":
        return normalise_pci(gpu.pci_bus_id) == value
    if key == "product":
        return fnmatchcase(gpu.product.lower(), value)
    if key == "pci_device_id":
        device, _colon, subsystem = value.partition(":")
        return gpu.pci_device_id == device and subsystem in ("", gpu.pci_subsystem_id)
    return getattr(gpu, key) == int(value)


def normalise_pci(text: str) -> str | None:
    """Return a PCI address as ``dddddddd:bb:dd.f`` in lower case, or None when ``text`` is none. Domain and function may be left out."""
    found = _PCI.match(text.strip().lower())
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return f"{(domain or '0').zfill(8)}:{bus}:{device}.{function or '0'}"


def _device_id(text: str) -> str | None:
    text = text.strip().lower()
    return text if _DEVICE_ID.match(text) else None


def _number(text: str) -> str | None:
    text = text.strip()
    return str(int(text)) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def _lowered(text: str) -> str | None:
    return text.strip().lower() or None


_READERS: dict[str, tuple[Callable[[str], str | None], str]] = {
    "uuid": (_lowered, "a GPU UUID"),
    "pci_bus_id": (normalise_pci, "a PCI address such as 0000:41:00.0"),
    "index": (_number, "an NVML index"),
    "minor": (_number, "the N of /dev/nvidiaN"),
    "product": (_lowered, 'a product name or glob such as "*H100*"'),
    "pci_device_id": (_device_id, "a device and vendor id such as 0x233010DE, optionally with :0x<subsystem>"),
}


def parse_match(raw: Any, where: str) -> Match:
    """Return the :class:`Match` of the ``match`` value at ``where``. Raises FleetError InvalidLayout."""
    if raw == "all":
        return Match()
    allowed = f"Give match: all, or a mapping of {', '.join(KEYS)}, each one value or a list"
    if not isinstance(raw, dict) or not raw:
        raise FleetError(finding("InvalidLayout", where, problem=f"match is {shown(raw)}", allowed=allowed))
    keys = []
    for key, value in raw.items():
        if key not in _READERS:
            raise FleetError(finding("InvalidLayout", where, problem=f"match has the unknown key {shown(key)}", allowed=allowed))
        keys.append((key, match_values(key, value if isinstance(value, list) else [value], f"{where}.match.{key}")))
    return Match(tuple(keys))


def _text(key: str, item: Any) -> str:
    """Return a YAML scalar as text; an unquoted 0x233010DE arrives as a number. Anything else becomes empty, which no reader accepts."""
    if isinstance(item, str):
        return item
    if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 32:
        return f"0x{item:08x}" if key == "pci_device_id" else str(item)
    return ""


def match_values(key: str, raw: list[Any], where: str) -> tuple[str, ...]:
    """Return the normalised values of one match ``key``. Raises FleetError InvalidLayout for an empty list or a value of the wrong form."""
    reader, meaning = _READERS[key]
    values = []
    for item in raw:
        text = reader(_text(key, item))
        if text is None:
            raise FleetError(finding("InvalidLayout", where, problem=f"{shown(item)} is not {meaning}", allowed=f"Give {meaning}"))
        values.append(text)
    if not values:
        raise FleetError(finding("InvalidLayout", where, problem="the list is empty", allowed=f"Give {meaning}"))
    return tuple(values)
