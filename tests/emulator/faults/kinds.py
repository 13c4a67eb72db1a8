# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What can happen to a call."""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

RESET = "reset of the GPU"  # stands beside NVML's symbols: the one act of the engine that is no NVML call
NOT_SUPPORTED = "NOT_SUPPORTED"


class Call(NamedTuple):
    """One call of an undisturbed run: its function, and whether it is one that changes the machine."""

    symbol: str
    mutating: bool


@dataclass(frozen=True)
class Kind:
    """What happens to a call: it fails with ``code`` (nvmlReturn_t), or its caller is killed there, or it takes longer than its phase may (``late``).

    ``lasting``: that happens to all later calls, too.
    """

    name: str
    code: int = 0
    kill: bool = False
    late: bool = False
    lasting: bool = False


KINDS = (
    Kind("IN_USE", code=19), Kind("INSUFFICIENT_RESOURCES", code=23), Kind(NOT_SUPPORTED, code=3), Kind("UNKNOWN", code=999), Kind("GPU_IS_LOST", code=15),
    Kind("RESET_REQUIRED", code=16), Kind("GPU_IS_LOST for good", code=15, lasting=True), Kind("killed", kill=True), Kind("late", late=True),
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A fault at the ``number``-th call (from 1) of a run, ``before`` or ``after`` its effect."""

    number: int
    call: Call
    kind: Kind
    when: str

    @property
    def hides(self) -> bool:
        """Whether the driver seems to say that there is no such thing, so that nobody can know that something is hidden."""
        return self.kind.name == NOT_SUPPORTED and not self.call.mutating

    def __str__(self) -> str:
        return f"{self.kind.name} {self.when} call {self.number}, {self.call.symbol}"
