# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wanted, before any GPU is asked: the ``layouts`` option, parsed into rules. mig-parted files become the same rules (parted.py)."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..reasons import Finding, FleetError, finding
from .catalogue import Gpu
from .match import Match, parse_match
from .profile_names import normalise, split_compute
from .shown import clipped, listed, shown

ENABLED, DISABLED, UNMANAGED = "enabled", "disabled", "unmanaged"
MODES = (ENABLED, DISABLED, UNMANAGED)
MAX_COUNT = 64
_MAX_COMPUTES = 8  # a GPU instance has no more compute slices
_RULE_KEYS = ("match", "mode", "instances")
_REQUEST_KEYS = {"profile", "start", "count", "compute_instances"}
_FORMS = (
    "Give instances as a mapping of profile to count, an intent (balanced, whole, all-1g, all-<profile>), "
    "or a list of {profile, start, count, compute_instances}; {} for none"
)


@dataclass(frozen=True)
class Request:
    """``count`` instances of a profile, named as the user wrote it; ``start`` is a memory slot, or None when any will do.

    ``profile`` may name a compute instance (``1c.3g.40gb``); ``computes`` are the compute slices wanted in each GPU instance, largest first, empty for one
    compute instance over all of it.
    """

    profile: str
    count: int = 1
    start: Optional[int] = None
    computes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rule:
    """One entry of a layout. ``where`` names it in messages; exactly one of ``intent`` and ``requests`` counts when the mode is enabled."""

    where: str
    match: Match
    mode: str
    intent: Optional[str] = None
    requests: tuple[Request, ...] = ()
    capable_only: bool = False

    def wants_same_as(self, other: Rule) -> bool:
        """Return whether both ask for the same, so that it does not matter which one decides."""
        return (self.mode, self.intent, self.requests) == (other.mode, other.intent, other.requests)

    def applies_to(self, gpu: Gpu) -> bool:
        """Return whether this rule decides about ``gpu``. A rule for all GPUs that enables MIG passes over GPUs without MIG."""
        if self.capable_only and self.mode == ENABLED and not gpu.mig_capable:
            return False
        return self.match.matches(gpu)


@dataclass(frozen=True)
class Layout:
    """All rules of a task, in order. In a mig-parted file the last rule that matches a GPU wins, in ours the first."""

    rules: tuple[Rule, ...]
    last_wins: bool = False

    def rule_for(self, gpu: Gpu) -> Rule | None:
        """Return the rule that decides about ``gpu``, or None when it is not listed."""
        hits = [rule for rule in self.rules if rule.applies_to(gpu)]
        if not hits:
            return None
        return hits[-1] if self.last_wins else hits[0]

    def findings(self, gpus: Iterable[Gpu]) -> list[Finding]:
        """Return a warning for each entry that names a GPU which is not among ``gpus``, or decides nothing though it matches, and for each GPU that entries
        compete for.

        In our format a later entry whose match is plainly the wider one (``all`` after ``index``) is how a fallback is written, and no competition.
        """
        winners = [(gpu, winner) for gpu in gpus for winner in [self.rule_for(gpu)] if winner is not None]
        found = []
        for rule in self.rules:
            deciding = [winner for gpu, winner in winners if rule.applies_to(gpu)]
            if deciding and rule not in deciding:
                found.append(finding("LayoutEntryUnused", rule.where, winners=listed(dict.fromkeys(winner.where for winner in deciding))))
            missing = rule.match.missing(gpus)
            if missing:
                found.append(finding("LayoutGpuAbsent", rule.where, missing=listed(missing)))
        for gpu, winner in winners:
            losers = [rule.where for rule in self.rules if rule is not winner and rule.applies_to(gpu) and self._competes(rule, winner)]
            if losers:
                found.append(finding("LayoutEntriesOverlap", gpu.label, winner=winner.where, losers=listed(losers)))
        return found

    def _competes(self, loser: Rule, winner: Rule) -> bool:
        if loser.wants_same_as(winner):
            return False
        return self.last_wins or not loser.match.is_wider_than(winner.match)

    def check_matches(self, gpus: Iterable[Gpu]) -> None:
        """Refuse a layout that names a GPU which is not there, or that says nothing about this node. Raises FleetError LayoutMatchesNothing."""
        gpus = list(gpus)
        present = ", ".join(f"{gpu.label} at {gpu.pci_bus_id}, minor {gpu.minor}, id {gpu.pci_device_id}" for gpu in gpus) or "no GPU"
        for rule in self.rules:
            missing = rule.match.missing(gpus)
            # nvidia-mig-parted walks the GPUs that there are, so one file serves nodes of four and of eight.
            if missing and not self.last_wins:
                raise FleetError(finding("LayoutMatchesNothing", rule.where, {"missing": missing}, match=listed(missing), gpus=present))
        if self.rules and not any(rule.match.matches(gpu) for rule in self.rules for gpu in gpus):
            matches = listed((str(rule.match) for rule in self.rules), "; ")
            raise FleetError(finding("LayoutMatchesNothing", listed(rule.where for rule in self.rules), match=matches, gpus=present))


def parse_layouts(raw: Any) -> Layout:
    """Return the :class:`Layout` of the ``layouts`` option. Raises FleetError InvalidLayout, naming the entry and what is allowed."""
    if not isinstance(raw, list):
        raise FleetError(finding("InvalidLayout", "layouts", problem="it is not a list", allowed="Give a list of {match, mode, instances}"))
    return Layout(tuple(_rule(entry, f"layouts[{number}]") for number, entry in enumerate(raw)))


def _rule(entry: Any, where: str) -> Rule:
    allowed = f"Give {', '.join(_RULE_KEYS)}"
    if not isinstance(entry, dict):
        raise FleetError(finding("InvalidLayout", where, problem="it is not a mapping", allowed=allowed))
    unknown = sorted(shown(key) for key in entry if key not in _RULE_KEYS)
    if unknown:
        raise FleetError(finding("InvalidLayout", where, problem=f"unknown key {listed(unknown)}", allowed=allowed))
    if "match" not in entry:
        raise FleetError(finding("InvalidLayout", where, problem="match is missing", allowed="Say which GPUs are meant, or match: all"))
    match = parse_match(entry["match"], where)
    mode = entry.get("mode") or ENABLED
    if mode not in MODES:
        raise FleetError(finding("InvalidLayout", f"{where}.mode", problem=f"the mode is {shown(mode)}", allowed=f"Give {', '.join(MODES)}"))
    instances = entry.get("instances")
    if mode != ENABLED:
        if instances:
            raise FleetError(finding("InvalidLayout", where, problem=f"instances are given although the mode is {mode}",
                                     allowed="Leave instances out, or set mode: enabled"))
        return Rule(where, match, mode)
    if instances is None:
        raise FleetError(finding("InvalidLayout", where, problem="instances are missing", allowed=_FORMS))
    if isinstance(instances, str):
        return Rule(where, match, mode, intent=_intent(instances, f"{where}.instances"), capable_only=match.is_all)
    return Rule(where, match, mode, requests=_requests(instances, f"{where}.instances"), capable_only=match.is_all)


def _intent(text: str, where: str) -> str:
    name = normalise(text)
    if name in ("balanced", "whole") or (name.startswith("all-") and len(name) > len("all-")):
        return name
    raise FleetError(finding("InvalidLayout", where, problem=f"{shown(text)} is not an intent", allowed=_FORMS))


def _requests(raw: Any, where: str) -> tuple[Request, ...]:
    if isinstance(raw, dict):
        return not_all_zero([Request(_profile(name, where), parse_count(count, f"{where}.{clipped(str(name))}")) for name, count in raw.items()], where)
    if isinstance(raw, list):
        return not_all_zero([_listed(item, f"{where}[{number}]") for number, item in enumerate(raw)], where)
    raise FleetError(finding("InvalidLayout", where, problem=f"they are {shown(raw)}", allowed=_FORMS))


def not_all_zero(requests: Sequence[Request], where: str) -> tuple[Request, ...]:
    """Return the requests. Raises FleetError InvalidLayout when there are some and none asks for an instance: a slip would clear the GPU."""
    if requests and not any(request.count for request in requests):
        raise FleetError(finding("InvalidLayout", where, problem="every count is 0", allowed="Give {} for no instance"))
    return tuple(requests)


def _profile(name: Any, where: str) -> str:
    # A profile id is a number in YAML.
    if isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool) and 0 <= name < 1 << 16):
        return str(name)
    raise FleetError(finding("InvalidLayout", where, problem=f"{shown(name)} is not a profile", allowed=_FORMS))


def _listed(item: Any, where: str) -> Request:
    if isinstance(item, str):
        return Request(item)
    if not isinstance(item, dict) or not set(item) <= _REQUEST_KEYS or not isinstance(item.get("profile"), str):
        allowed = "Give a profile, or {profile, start, count, compute_instances}"
        raise FleetError(finding("InvalidLayout", where, problem=f"it is {shown(item)}", allowed=allowed))
    count = parse_count(item.get("count", 1), f"{where}.count")
    start = item.get("start")
    if start is not None and count != 1:
        raise FleetError(finding("InvalidLayout", where, problem="start is given for more than one instance", allowed="Give one entry per start"))
    computes = _computes(item["compute_instances"], f"{where}.compute_instances") if item.get("compute_instances") is not None else ()
    if split_compute(item["profile"])[0] is not None and (computes or start is not None):
        raise FleetError(finding("InvalidLayout", where, problem=f"{shown(item['profile'])} names a compute instance",
                                 allowed="With start or compute_instances give the profile of the GPU instance, such as 3g.40gb"))
    return Request(item["profile"], count, None if start is None else parse_count(start, f"{where}.start"), computes)


def _computes(raw: Any, where: str) -> tuple[int, ...]:
    """Return the sizes in compute slices, largest first; written ``[2, 1]`` or ``[2c, 1c]``."""
    allowed = "Give a list of compute slices, such as [2, 1] or [2c, 1c]"
    if not isinstance(raw, list) or not 1 <= len(raw) <= _MAX_COMPUTES:
        raise FleetError(finding("InvalidLayout", where, problem=f"it is {shown(raw)}", allowed=allowed))
    sizes = [parse_count(size[:-1] if isinstance(size, str) and size.endswith("c") else size, where) for size in raw]
    if 0 in sizes:
        raise FleetError(finding("InvalidLayout", where, problem="a compute instance has no slices", allowed=allowed))
    return tuple(sorted(sizes, reverse=True))


def parse_count(raw: Any, where: str) -> int:
    """Return a whole number from 0 to 64; digits in text are accepted, for templates make text. Raises FleetError InvalidLayout."""
    if isinstance(raw, str) and raw.strip().isascii() and raw.strip().isdigit() and len(raw) <= 8:
        raw = int(raw)
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= MAX_COUNT:
        return raw
    raise FleetError(finding("InvalidLayout", where, problem=f"{shown(raw)} is not a number from 0 to {MAX_COUNT}", allowed="Give a whole number"))
