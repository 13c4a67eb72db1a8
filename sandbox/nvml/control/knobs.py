# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names and values of the knobs of ``nvmlctl set``. The library holds them as numbers."""
from __future__ import annotations

from .codes import CODES
from .library import EmulatorError


def _choices(*names: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


_OFF_ON = _choices("off", "on")
#: The values that have a name, by knob. Of the knobs in _NUMBERS any number is a value, too.
_NAMED = {
    "held": _OFF_ON,
    "lost": _OFF_ON,
    "not-ready": _OFF_ON,
    "persistence": _OFF_ON,
    "virtualization": _choices("none", "passthrough", "vgpu", "host-vgpu", "host-vsga"),
    "reset-refused": _OFF_ON,
    "in-use-form": _choices("activation", "return"),
    "activation": {"none": 0, **{name: CODES[name] for name in ("IN_USE", "RESET_REQUIRED", "NOT_SUPPORTED")}},
    "nvlink": {"off": 0, "switch": 0xFFFFFFFF},
    "nvlink-reset": _choices("single", "group"),
    "log": _choices("changes", "all"),
    "ecc": _choices("on", "off"),
    "ecc-pending": _choices("on", "off"),
    "sram-threshold": _OFF_ON,
    "remap-pending": _OFF_ON,
    "remap-failed": _OFF_ON,
    "channel-repair-pending": _OFF_ON,
    "tpc-repair-pending": _OFF_ON,
    "recovery-action": _choices(
        "none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot"
    ),
    "fabric-state": _choices("not_supported", "not_started", "in_progress", "completed"),
    "fabric-summary": _choices("not_supported", "healthy", "unhealthy", "limited"),
    "names": _choices("on", "off"),
    "known-enums": {"all": 0},
    "instance-counts": _choices("right", "wrong"),
    "profiles-need-mode": _OFF_ON,
    "bad-version": _choices("mismatch", "argument"),
    "parent-query": _choices("argument", "unsupported"),
    "uuid-mode": _choices("stable", "fresh"),
    "nvl-compute": _OFF_ON,
}
_NUMBERS = (
    "activation", "nvlink", "recovery-action", "clock-reasons", "fabric-status", "fabric-health-mask", "fabric-summary", "fabric-clique",
    *(f"{memory}-{kind}-{since}" for memory in ("dram", "sram") for kind in ("corrected", "uncorrected") for since in ("volatile", "aggregate")),
    "remap-correctable", "remap-uncorrectable", "banks-high", "banks-partial", "banks-low", "banks-none", "known-enums",
)
_KNOBS = dict.fromkeys([*_NAMED, *_NUMBERS])


def describe(knob: str) -> str:
    """The knob with its values: ``held=off|on``."""
    return f"{knob}={'|'.join([*_NAMED.get(knob, {}), *(['N'] if knob in _NUMBERS else [])])}"


def parse(setting: str) -> tuple[str, int]:
    """Name and number of ``KNOB=VALUE``. Raises EmulatorError for what is no setting."""
    knob, equals, text = setting.partition("=")
    if knob not in _KNOBS:
        raise EmulatorError(f"{setting} is not a setting: the known ones are {', '.join(map(describe, _KNOBS))}.")
    if text in _NAMED.get(knob, {}):
        return knob, _NAMED[knob][text]
    number = _number(text) if knob in _NUMBERS else None
    if not equals or number is None:
        raise EmulatorError(f"{setting} is not a setting: it is {describe(knob)}.")
    return knob, number


def _number(text: str) -> int | None:
    """A decimal or hexadecimal number of 32 bits."""
    try:
        number = int(text, 0)
    except ValueError:
        return None
    return number if 0 <= number < 2**32 else None


def value_text(knob: str, number: int) -> str:
    """The value as one writes it."""
    return next((name for name, value in _NAMED.get(knob, {}).items() if value == number), str(number))
