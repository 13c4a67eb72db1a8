# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeping the DRA plugin off a node whose layout could not be made, and letting it back, with the rights that a kubelet has.

A kubelet may change labels and annotations of its own Node, but no taints (admission plugin NodeRestriction). What is written is the pause of
kube/pause_record.py, from which the module dra_node_pause and the role mig go on, without the cordon: pods that need no GPU may run. ``by`` marks it as
this service's.
"""
from __future__ import annotations

import json
from typing import Any, Optional

# The same as in kube/pause_record.py, which stays on the controller.
ANNOTATION = "gpufleet.dra/paused"
PAUSED = "paused-for-mig-change"
PLUGIN_LABEL = "nvidia.com/gpu.deploy.dra-driver"
LABELS = (
    "nvidia.com/gpu.deploy.dra-validator", "nvidia.com/gpu.deploy.dcgm-exporter-dra", "nvidia.com/gpu.deploy.dcgm-dra", PLUGIN_LABEL,
)
BY = "gpufleet-mig.service"

# Values with which the operator lets the plugin run, or is about to. Any other keeps it away already.
_RUNS = (None, "", "true")


def pause_patch(node: dict[str, Any]) -> Optional[dict[str, Any]]:
    """Return the labels and annotations that keep the plugin off ``node``; None when something keeps it off already.

    A pause of somebody else has its own record, which is kept.
    """
    labels = _labels(node)
    if labels.get(PLUGIN_LABEL) not in _RUNS:
        return None
    patch: dict[str, Any] = {"labels": {PLUGIN_LABEL: PAUSED}}
    if ANNOTATION not in _annotations(node):
        record = {
            "labels": {name: labels.get(name) for name in LABELS}, "cordoned": False,
            "plugin_ran": labels.get(PLUGIN_LABEL) == "true", "by": BY,
        }
        patch["annotations"] = {ANNOTATION: json.dumps(record, sort_keys=True)}
    return patch


def resume_patch(node: dict[str, Any]) -> Optional[dict[str, Any]]:
    """Return the labels and annotations that take back what :func:`pause_patch` did to ``node``; None when there is no pause of this service."""
    try:
        record = json.loads(_annotations(node).get(ANNOTATION, "null"))
        if record is None or record.get("by") != BY:
            return None
        before = {name: record["labels"][name] for name in LABELS}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # not written by this service
    present = _labels(node)
    return {"labels": {name: value for name, value in before.items() if present.get(name) == PAUSED}, "annotations": {ANNOTATION: None}}


def _labels(node: dict[str, Any]) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _annotations(node: dict[str, Any]) -> dict[str, str]:
    return node["metadata"].get("annotations") or {}
