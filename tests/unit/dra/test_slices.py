# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pools: generations, completeness, duplicates, names of the driver's own domain."""
from __future__ import annotations

import copy
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.dra.slices import device_dict, form_pools, parse_slice


def variant(raw: dict[str, Any], name: str, generation: int = 1, count: int = 1, keep: slice = slice(None)) -> dict[str, Any]:
    """A copy of a raw slice under another name, generation and count, with some of its devices."""
    other = copy.deepcopy(raw)
    other["metadata"]["name"] = name
    other["spec"]["pool"].update(generation=generation, resourceSliceCount=count)
    other["spec"]["devices"] = other["spec"]["devices"][keep]
    return other


def test_one_slice_is_a_complete_pool(fleet: Any) -> None:
    (pool,) = form_pools([parse_slice(fleet.slices["h100-1"])])
    assert (pool.driver, pool.name, pool.node_name, pool.complete) == ("gpu.nvidia.com", "h100-1", "h100-1", True)
    assert len(pool.devices) == 6
    assert pool.duplicates() == {}


def test_only_the_highest_generation_counts(fleet: Any) -> None:
    raw = fleet.slices["h100-1"]
    (pool,) = form_pools(parse_slice(item) for item in (variant(raw, "new", 3, keep=slice(0, 2)), variant(raw, "old", 2)))
    assert (pool.generation, pool.slices, pool.obsolete) == (3, ("new",), ("old",))
    assert len(pool.devices) == 2


def test_missing_slice_makes_the_pool_incomplete(fleet: Any) -> None:
    raw = fleet.slices["h100-1"]
    (pool,) = form_pools([parse_slice(variant(raw, "a", 2, count=2, keep=slice(0, 3)))])
    assert not pool.complete
    parts = [variant(raw, "a", 2, 2, slice(0, 3)), variant(raw, "b", 2, 2, slice(3, None))]
    assert form_pools(map(parse_slice, parts))[0].complete


def test_device_named_twice(fleet: Any) -> None:
    raw = fleet.slices["h100-1"]
    (pool,) = form_pools([parse_slice(variant(raw, "a", 1, 2)), parse_slice(variant(raw, "b", 1, 2, slice(1, 2)))])
    assert pool.duplicates() == {"gpu-0": 2}


def test_pools_of_other_drivers_and_nodes_stay_apart(fleet: Any) -> None:
    other = variant(fleet.slices["h100-1"], "x")
    other["spec"]["driver"] = "compute-domain.nvidia.com"
    pools = form_pools(map(parse_slice, [*fleet.slices.values(), other]))
    found = [(pool.driver, pool.name) for pool in pools]
    assert found == [("compute-domain.nvidia.com", "h100-1"), ("gpu.nvidia.com", "a100-1"), ("gpu.nvidia.com", "h100-1")]


def test_qualified_name_in_the_drivers_own_domain_is_the_bare_name(fleet: Any) -> None:
    device = fleet.device("h100-1", "gpu-0")
    device["attributes"]["gpu.nvidia.com/type"] = device["attributes"].pop("type")
    (pool,) = form_pools([parse_slice(fleet.slices["h100-1"])])
    found = next(item for item in pool.devices if item.name == "gpu-0")
    assert found.attribute("type") == "gpu"
    assert found.attribute("resource.kubernetes.io/pciBusID") == "0000:41:00.0"


def test_shared_counters_and_slices_without_devices(fleet: Any) -> None:
    raw = fleet.slices["h100-1"]
    del raw["spec"]["devices"]
    raw["spec"]["sharedCounters"] = [{"name": "gpu-0-counter-set", "counters": {"memory": {"value": "1"}}}]
    (pool,) = form_pools([parse_slice(raw)])
    assert (pool.counter_sets, pool.devices) == (("gpu-0-counter-set",), ())


def test_device_for_results(fleet: Any) -> None:
    (pool,) = form_pools([parse_slice(fleet.slices["h100-1"])])
    found = {device.name: device_dict(device, pool) for device in pool.devices}["gpu-0"]
    assert found["attributes"]["driverVersion"] == "595.58.3"
    assert found["attributes"]["resource.kubernetes.io/numaNode"] == 0
    assert found["capacities"] == {"memory": "81559Mi"}
    assert (found["node_name"], found["pool"], found["driver"]) == ("h100-1", "h100-1", "gpu.nvidia.com")
