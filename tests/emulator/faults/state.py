# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What GPUs hold, as plain values that can be compared, and what the steps of a journal do to them. Knows nothing of the engine but its journal's words."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Place = tuple[int, int]
"""(profile id, first memory slot) of a GPU instance, or (compute slices, first compute slice) of a compute instance in it."""


class GpuState(NamedTuple):
    """One GPU: its MIG mode now and after a reset, and its GPU instances by place, each with the places of its compute instances."""

    current: bool
    pending: bool
    instances: frozenset[tuple[Place, frozenset[Place]]]

    def describe(self) -> str:
        """Return the state as text for messages."""
        mode = f"{int(self.current)}/{int(self.pending)}"
        held = [f"{profile_id}@{start}:{'+'.join(f'{slices}c@{at}' for slices, at in sorted(inside)) or '-'}"
                for (profile_id, start), inside in sorted(self.instances, key=lambda item: item[0][1])]
        return f"mode {mode} [{' '.join(held)}]"


NodeState = dict[str, GpuState]
"""The GPUs of a machine by UUID."""


class Inconsistent(Exception):
    """A journal whose steps cannot have happened in this order."""


def read_state(shown: Mapping[str, Any]) -> NodeState:
    """Return the state of a machine from the emulator's ``show``."""
    return {
        gpu["uuid"]: GpuState(
            bool(gpu["mig_current"]), bool(gpu["mig_pending"]),
            frozenset(((item["profile_id"], item["start"]), _inside(item["compute_instances"])) for item in gpu["instances"]),
        )
        for gpu in shown["gpus"]
    }


def _inside(computes: Iterable[Mapping[str, Any]]) -> frozenset[Place]:
    return frozenset((item["slices"], item["start"]) for item in computes)


def identities(shown: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """Return what tells one instance from another made anew at its place: (GPU, GPU instance id, place[, compute instance id, place, UUID])."""
    found: set[tuple[Any, ...]] = set()
    for gpu in shown["gpus"]:
        for item in gpu["instances"]:
            whole = (gpu["uuid"], item["gpu_instance_id"], item["profile_id"], item["start"])
            found.add(whole)
            found.update((*whole, inner["compute_instance_id"], inner["slices"], inner["start"], inner["uuid"]) for inner in item["compute_instances"])
    return found


def possible_states(before: NodeState, steps: Iterable[Mapping[str, Any]]) -> list[NodeState]:
    """Return the states that a journal allows: ``before`` with its finished steps, and with or without each step in doubt.

    ``steps`` are the journal's. Raises Inconsistent.
    """
    states = [before]
    for step in steps:
        if step["state"] == "done":
            states = [{**state, **effect} for state in states for effect in [_effect(state, step)]]
        elif step["state"] == "waiting":
            states = [{**state, **_pending_only(state, step)} for state in states]
        elif step["state"] in ("doing", "undoing"):
            states = [{**state, **effect} for state in states for effect in _maybe(state, step)]
        elif step["state"] not in ("planned", "failed", "undone"):
            raise Inconsistent(f"unknown state {step['state']}")
    return states


def _maybe(state: NodeState, step: Mapping[str, Any]) -> list[NodeState]:
    half = [_pending_only(state, step)] if step["action"] == "set_mode" else []
    return [{}, *half, _effect(state, step)]


def _pending_only(state: NodeState, step: Mapping[str, Any]) -> NodeState:
    """Return the GPU of a mode change that waits for a reset."""
    if step["action"] != "set_mode":
        raise Inconsistent(f"{step['text']} waits for a reset")
    return {step["parent_uuid"]: state[step["parent_uuid"]]._replace(pending=step["enable"])}


def _effect(state: NodeState, step: Mapping[str, Any]) -> NodeState:
    """Return the GPU of a step after it."""
    gpu = state[step["parent_uuid"]]
    if step["action"] == "set_mode":
        if gpu.instances and not step["enable"]:
            raise Inconsistent(f"{step['text']}: there are instances")
        return {step["parent_uuid"]: gpu._replace(current=step["enable"], pending=step["enable"])}
    instances = dict(gpu.instances)
    place = (step["profile_id"], step["start"])
    if step["action"] == "create_gpu_instance":
        if place in instances:
            raise Inconsistent(f"{step['text']}: it is there")
        instances[place] = frozenset()
        return {step["parent_uuid"]: gpu._replace(instances=frozenset(instances.items()))}
    if place not in instances:
        raise Inconsistent(f"{step['text']}: no such GPU instance")
    inside = (step.get("compute_slices"), step.get("compute_start"))
    if step["action"] == "destroy_gpu_instance":
        if instances.pop(place):
            raise Inconsistent(f"{step['text']}: there are compute instances in it")
    elif step["action"] == "create_compute_instance":
        instances[place] |= {inside}
    elif step["action"] == "destroy_compute_instance":
        if inside not in instances[place]:
            raise Inconsistent(f"{step['text']}: no such compute instance")
        instances[place] -= {inside}
    else:
        raise Inconsistent(f"unknown action {step['action']}")
    return {step["parent_uuid"]: gpu._replace(instances=frozenset(instances.items()))}
