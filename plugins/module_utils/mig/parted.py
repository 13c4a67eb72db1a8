# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvidia-mig-parted's configuration format (``version: v1``), turned into the same rules as our own layouts.

Meaning as in mig-parted 0.15: the rules of the selected configuration are walked in file order, so for a GPU that several match the last one stands; GPUs
that none matches are not listed; ``devices: all`` means all MIG-capable ones.
"""
from __future__ import annotations

from typing import Any

from ..reasons import FleetError, finding
from .layout import DISABLED, ENABLED, Layout, Request, Rule, not_all_zero, parse_count, parse_layouts
from .match import Match, match_values
from .profile_names import parse_profile
from .shown import clipped, listed, shown

_SPEC_KEYS = ("device-filter", "devices", "mig-enabled", "mig-devices")


def layout_from_options(params: dict[str, Any]) -> Layout:
    """Return the :class:`Layout` of the module options layouts, or mig_parted_config with mig_parted_selected and mig_parted_source.

    Raises FleetError InvalidLayout, also when both are given, or neither and ``unlisted`` is ``keep``; and what :func:`parse_parted` raises.
    """
    config = params["mig_parted_config"]
    if config is None:
        if params["layouts"] == [] and params["unlisted"] == "keep":
            raise FleetError(finding("InvalidLayout", "layouts", problem="no layout is given, so there is nothing to make",
                                     allowed="Give layouts or mig_parted_config, or set unlisted to disable"))
        return parse_layouts(params["layouts"])
    if params["layouts"]:
        raise FleetError(finding("InvalidLayout", "layouts", problem="layouts and mig_parted_config are both given", allowed="Give one of the two"))
    return parse_parted(config, params["mig_parted_selected"], params["mig_parted_source"])


def parse_parted(document: Any, selected: str | None, source: str) -> Layout:
    """Return the :class:`Layout` of the configuration ``selected`` in a parsed mig-parted ``document``; ``source`` names it in messages.

    ``selected`` may be None when there is only one. Raises FleetError LayoutFileUnreadable, UnknownConfigName or InvalidLayout.
    """
    if not isinstance(document, dict):
        raise FleetError(finding("LayoutFileUnreadable", source, problem="it is not a mapping"))
    if document.get("version") != "v1":
        raise FleetError(finding("LayoutFileUnreadable", source, problem=f"its version is {shown(document.get('version'))}, only v1 is known"))
    configs = document.get("mig-configs")
    if not isinstance(configs, dict) or not configs:
        raise FleetError(finding("LayoutFileUnreadable", source, problem="it has no mig-configs"))
    by_name = {name if isinstance(name, str) else shown(name): specs for name, specs in configs.items()}
    known = listed(sorted(by_name), most=100)  # the file that NVIDIA ships has some sixty
    if selected is None:
        if len(configs) > 1:
            raise FleetError(finding("UnknownConfigName", source, name="(none selected)", known=known))
        selected = next(iter(by_name))
    if selected not in by_name:
        raise FleetError(finding("UnknownConfigName", source, name=clipped(selected), known=known))
    where = f"{source}: mig-configs.{clipped(selected)}"
    specs = by_name[selected]
    if not isinstance(specs, list) or not specs:
        raise FleetError(finding("InvalidLayout", where, problem="it is not a list of entries", allowed=f"Give entries of {', '.join(_SPEC_KEYS)}"))
    return Layout(tuple(_rule(spec, f"{where}[{number}]") for number, spec in enumerate(specs)), last_wins=True)


def _rule(spec: Any, where: str) -> Rule:
    allowed = f"Give {', '.join(_SPEC_KEYS)}"
    if not isinstance(spec, dict):
        raise FleetError(finding("InvalidLayout", where, problem="it is not a mapping", allowed=allowed))
    unknown = sorted(shown(key) for key in spec if key not in _SPEC_KEYS)
    if unknown:
        raise FleetError(finding("InvalidLayout", where, problem=f"unknown key {listed(unknown)}", allowed=allowed))
    enabled = spec.get("mig-enabled")
    if not isinstance(enabled, bool):
        raise FleetError(finding("InvalidLayout", where, problem="mig-enabled is missing or not a boolean", allowed="Give mig-enabled: true or false"))
    match, capable_only = _match(spec, where)
    devices = spec.get("mig-devices")
    if not enabled:
        if devices:
            raise FleetError(finding("InvalidLayout", where, problem="mig-devices are given although mig-enabled is false",
                                     allowed="Leave mig-devices out or empty"))
        return Rule(where, match, DISABLED)
    return Rule(where, match, ENABLED, requests=_requests(devices, f"{where}.mig-devices"), capable_only=capable_only)


def _match(spec: dict[str, Any], where: str) -> tuple[Match, bool]:
    devices = spec.get("devices")
    keys: list[tuple[str, tuple[str, ...]]] = []
    if devices != "all":
        if not isinstance(devices, list) or not all(isinstance(item, int) for item in devices):
            hint = f"Give devices: all, or a list of GPU indices{f' such as [{shown(devices)}]' if isinstance(devices, int) else ''}"
            raise FleetError(finding("InvalidLayout", where, problem=f"devices is {shown(devices)}", allowed=hint))
        keys.append(("index", match_values("index", devices, f"{where}.devices")))
    wanted = spec.get("device-filter")
    if wanted:
        filters = wanted if isinstance(wanted, list) else [wanted]
        keys.append(("pci_device_id", match_values("pci_device_id", filters, f"{where}.device-filter")))
    return Match(tuple(keys)), devices == "all"


def _requests(devices: Any, where: str) -> tuple[Request, ...]:
    if not isinstance(devices, dict):
        raise FleetError(finding("InvalidLayout", where, problem="it is missing or not a mapping", allowed="Give profile: count, or {} for no instance"))
    requests = []
    for name, raw in devices.items():
        parsed = parse_profile(name) if isinstance(name, str) else None
        if parsed is None or parsed.gb is None:
            raise FleetError(finding("InvalidLayout", where, problem=f"{shown(name)} is not a MIG profile name",
                                     allowed="Give names such as 3g.40gb or 1c.3g.40gb"))
        requests.append(Request(name, parse_count(raw, f"{where}.{clipped(name)}")))
    return not_all_zero(requests, where)
