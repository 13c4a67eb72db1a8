# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record of a pause: what the Node was like before, kept on the Node itself, so that any later run can put it back."""
from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..reasons import FleetError, finding

ANNOTATION = "gpufleet.dra/paused"
PAUSED = "paused-for-mig-change"

PLUGIN_LABEL = "nvidia.com/gpu.deploy.dra-driver"
# Operands whose pods hold admin claims: they must be gone before the plugin, or they hang in Terminating. Label -> value of their pods' label app.
OPERANDS = {
    "nvidia.com/gpu.deploy.dra-validator": "nvidia-operator-validator",
    "nvidia.com/gpu.deploy.dcgm-exporter-dra": "nvidia-dcgm-exporter-dra",
    "nvidia.com/gpu.deploy.dcgm-dra": "nvidia-dcgm-dra",
}
_DRIVER_LABEL = "nvidia.com/gpu.deploy.driver"
_UPGRADE_LABEL = "nvidia.com/gpu-driver-upgrade-state"
_UPGRADE_MARK = "paused-for-driver-upgrade"
_LABELS = (*OPERANDS, PLUGIN_LABEL)


class PauseRecord(NamedTuple):
    """``labels`` before the pause (None: absent), ``cordoned`` whether the pause did it, ``plugin_ran`` whether there was a plugin pod."""

    labels: dict[str, str | None]
    cordoned: bool
    plugin_ran: bool

    def annotation(self) -> str:
        """Return the annotation's value."""
        return json.dumps(self._asdict(), sort_keys=True)

    def paused_labels(self, names: tuple[str, ...] = _LABELS) -> dict[str, str]:
        """Return the labels to set during the pause. A value other than "true" already keeps the operand away and is left alone."""
        return {name: PAUSED for name in names if self.labels[name] in (None, "", "true")}

    @property
    def plugin_comes_back(self) -> bool:
        """Whether a plugin pod is to be expected after the pause: there was one before, and its label lets it run."""
        return self.plugin_ran and PLUGIN_LABEL in self.paused_labels()


def new_record(node: dict[str, Any], plugin_ran: bool) -> PauseRecord:
    """Return the record for a Node that is about to be paused. A leftover pause value without a record stands for the operator's "true"."""
    labels = labels_of(node)
    return PauseRecord(
        labels={name: "true" if labels.get(name) == PAUSED else labels.get(name) for name in _LABELS},
        cordoned=not is_cordoned(node),
        plugin_ran=plugin_ran,
    )


def read_record(node: dict[str, Any]) -> PauseRecord | None:
    """Return the record on the Node, None if it is not paused. Raises PauseRecordUnreadable."""
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        raw = json.loads(text)
        return PauseRecord({name: raw["labels"][name] for name in _LABELS}, bool(raw["cordoned"]), bool(raw["plugin_ran"]))
    except (ValueError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise FleetError(finding("PauseRecordUnreadable", node["metadata"]["name"], annotation=ANNOTATION, why=why)) from None


def labels_of(node: dict[str, Any]) -> dict[str, str]:
    """Return the labels of a Node."""
    return node["metadata"].get("labels") or {}


def is_cordoned(node: dict[str, Any]) -> bool:
    """Return spec.unschedulable of a Node."""
    return bool((node.get("spec") or {}).get("unschedulable"))


def is_managed(node: dict[str, Any]) -> bool:
    """Whether the GPU Operator has put its deploy labels on the Node."""
    return any(name in labels_of(node) for name in _LABELS)


def stale_labels(node: dict[str, Any]) -> dict[str, str]:
    """Return the labels that still hold the pause value, each with the operator's own value to replace it."""
    return {name: "true" for name in _LABELS if labels_of(node).get(name) == PAUSED}


def refuse_during_upgrade(node: dict[str, Any]) -> None:
    """Raise DriverUpgradeInProgress if the operator's upgrade controller or driver manager is at work on the Node."""
    labels = labels_of(node)
    state = labels.get(_UPGRADE_LABEL, "")
    marked = [name for name in (*_LABELS, _DRIVER_LABEL) if _UPGRADE_MARK in labels.get(name, "")]
    if state not in ("", "upgrade-done"):
        marked.insert(0, _UPGRADE_LABEL)
    if marked:
        subject = node["metadata"]["name"]
        raise FleetError(finding("DriverUpgradeInProgress", subject, label=marked[0], value=labels[marked[0]]))


def view(node: dict[str, Any]) -> dict[str, Any]:
    """Return what a pause changes of a Node, for diffs and results."""
    labels = labels_of(node)
    return {
        "labels": {name: labels[name] for name in _LABELS if name in labels},
        "unschedulable": is_cordoned(node),
        "paused": ANNOTATION in (node["metadata"].get("annotations") or {}),
    }


def merged(node: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return the Node as a merge patch (RFC 7386) would leave it; check mode predicts with it."""
    return _merge(node, patch)


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result
