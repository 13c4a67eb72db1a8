# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ResourceSlices (resource.k8s.io/v1, raw JSON) as small records, and the pools that they form.

Slices are matched by driver, pool and node, never by object name. A pool is what stands at its highest generation; it is complete when it
has as many slices as each of them announces, and the scheduler ignores an incomplete one.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Device(NamedTuple):
    """One published device. ``attributes`` maps names to the API's one-key unions ({"string": "x"}), ``capacities`` to quantity strings."""

    name: str
    attributes: dict[str, dict[str, Any]]
    capacities: dict[str, str]
    taints: tuple[dict[str, Any], ...]
    slice_name: str

    def attribute(self, name: str) -> Any:
        """Return the bare value of an attribute, or None if the device does not have it."""
        return next(iter(self.attributes.get(name, {}).values()), None)


class Slice(NamedTuple):
    """One ResourceSlice, reduced to what a pool needs. ``node_name`` is empty for slices that belong to no single node."""

    name: str
    driver: str
    pool: str
    generation: int
    pool_size: int
    node_name: str
    devices: tuple[Device, ...]
    counter_sets: tuple[str, ...]


class Pool(NamedTuple):
    """The slices of one (driver, pool name) at the highest generation. ``obsolete`` names the slices of older generations."""

    driver: str
    name: str
    node_name: str
    generation: int
    size: int
    slices: tuple[str, ...]
    obsolete: tuple[str, ...]
    devices: tuple[Device, ...]
    counter_sets: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether all slices that were announced are there."""
        return len(self.slices) == self.size

    def duplicates(self) -> dict[str, int]:
        """Return the device names that occur more than once, with how often."""
        counts = Counter(device.name for device in self.devices)
        return {name: count for name, count in sorted(counts.items()) if count > 1}

    def as_dict(self) -> dict[str, Any]:
        """Return the pool for module results, devices as their names."""
        return {
            "driver": self.driver,
            "name": self.name,
            "node_name": self.node_name,
            "generation": self.generation,
            "resource_slice_count": self.size,
            "slices": list(self.slices),
            "obsolete_slices": list(self.obsolete),
            "complete": self.complete,
            "devices": [device.name for device in self.devices],
            "duplicate_devices": sorted(self.duplicates()),
        }


def parse_slice(raw: dict[str, Any]) -> Slice:
    """Return the record of one ResourceSlice. Names in the driver's own domain lose it, as the API has it for bare names."""
    spec = raw["spec"]
    name, driver = raw["metadata"]["name"], spec["driver"]
    return Slice(
        name=name,
        driver=driver,
        pool=spec["pool"]["name"],
        generation=int(spec["pool"]["generation"]),
        pool_size=int(spec["pool"]["resourceSliceCount"]),
        node_name=spec.get("nodeName") or "",
        devices=tuple(_parse_device(device, driver, name) for device in spec.get("devices") or ()),
        counter_sets=tuple(counters["name"] for counters in spec.get("sharedCounters") or ()),
    )


def form_pools(slices: Iterable[Slice]) -> list[Pool]:
    """Return the pools of ``slices``, sorted by driver and pool name; devices keep the order of the slices by name."""
    groups: dict[tuple[str, str], list[Slice]] = {}
    for item in slices:
        groups.setdefault((item.driver, item.pool), []).append(item)
    return [_form_pool(groups[key]) for key in sorted(groups)]


def slice_dict(item: Slice) -> dict[str, Any]:
    """Return one slice for module results, devices as their names."""
    return {
        "name": item.name,
        "driver": item.driver,
        "pool": item.pool,
        "generation": item.generation,
        "resource_slice_count": item.pool_size,
        "node_name": item.node_name,
        "devices": [device.name for device in item.devices],
        "counter_sets": list(item.counter_sets),
    }


def device_dict(device: Device, pool: Pool) -> dict[str, Any]:
    """Return one device for module results: plain attribute values, quantities as published."""
    return {
        "name": device.name,
        "driver": pool.driver,
        "pool": pool.name,
        "node_name": pool.node_name,
        "slice": device.slice_name,
        "attributes": {name: device.attribute(name) for name in sorted(device.attributes)},
        "capacities": dict(sorted(device.capacities.items())),
        "taints": list(device.taints),
    }


def _form_pool(members: list[Slice]) -> Pool:
    generation = max(item.generation for item in members)
    current = sorted((item for item in members if item.generation == generation), key=lambda item: item.name)
    return Pool(
        driver=current[0].driver,
        name=current[0].pool,
        node_name=current[0].node_name,
        generation=generation,
        size=max(item.pool_size for item in current),
        slices=tuple(item.name for item in current),
        obsolete=tuple(sorted(item.name for item in members if item.generation != generation)),
        devices=tuple(device for item in current for device in item.devices),
        counter_sets=tuple(name for item in current for name in item.counter_sets),
    )


def _parse_device(raw: dict[str, Any], driver: str, slice_name: str) -> Device:
    return Device(
        name=raw["name"],
        attributes={_bare(name, driver): value for name, value in (raw.get("attributes") or {}).items()},
        capacities={_bare(name, driver): value["value"] for name, value in (raw.get("capacity") or {}).items()},
        taints=tuple(raw.get("taints") or ()),
        slice_name=slice_name,
    )


def _bare(name: str, driver: str) -> str:
    domain, separator, rest = name.rpartition("/")
    return rest if separator and domain == driver else name
