# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML facts of two nodes, by hand from the boards' own tables, and the ResourceSlices that the driver publishes for them."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.cluster import Cluster, NodeRecord, PluginPod
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.slices import form_pools, parse_slice

SLICES = Path(__file__).resolve().parents[2] / "fixtures" / "slices"
MIB = 2**20
NO_MIG = {"capable": False, "current": False, "pending": False, "reset_free": None, "profiles": [], "instances": []}


def profile(row: str, size: int, starts: range | list[int]) -> dict[str, Any]:
    """One profile from "name id enum count compute_slices MiB SM CE DEC ENC JPG OFA", in the order of nvidia-smi mig -lgip."""
    name, *numbers = row.split()
    ident, enum, count, slices, memory, sm, copy_engines, decoders, encoders, jpeg, ofa = map(int, numbers)
    return {
        "name": name, "id": ident, "enum": enum, "compute_slices": slices, "memory_slices": size, "instance_count": count,
        "memory_mib": memory, "multiprocessors": sm, "copy_engines": copy_engines, "decoders": decoders, "encoders": encoders,
        "jpeg_engines": jpeg, "ofa_engines": ofa, "placements": [{"start": start, "size": size} for start in starts],
    }  # fmt: skip


H100_PROFILES = [
    profile("1g.10gb 19 0 7 1 9984 16 1 1 0 1 0", 1, range(7)),
    profile("1g.10gb+me 20 7 1 1 9984 16 1 1 0 1 1", 1, range(7)),
    profile("1g.20gb 15 9 4 1 20096 26 1 1 0 1 0", 2, [0, 2, 4, 6]),
    profile("2g.20gb 14 1 3 2 20096 32 2 2 0 2 0", 2, [0, 2, 4]),
    profile("3g.40gb 9 2 2 3 40448 60 3 3 0 3 0", 4, [0, 4]),
    profile("4g.40gb 5 3 1 4 40448 64 4 4 0 4 0", 4, [0]),
    profile("7g.80gb 0 4 1 7 81152 132 8 7 0 7 1", 8, [0]),
]
A100_PROFILES = [
    profile("1g.10gb 19 0 7 1 9728 14 1 0 0 0 0", 1, range(7)),
    profile("1g.10gb+me 20 7 1 1 9728 14 1 1 0 1 1", 1, range(7)),
    profile("1g.20gb 15 9 4 1 19968 14 1 1 0 0 0", 2, [0, 2, 4, 6]),
    profile("3g.40gb 9 2 2 3 40192 42 3 2 0 0 0", 4, [0, 4]),
]


def instance(name: str, ident: int, start: int, size: int, slices: int, uuid: str | None, compute: int | None = None) -> dict[str, Any]:
    """One GPU instance; ``uuid`` None leaves it without a compute instance, ``compute`` makes that smaller than the GPU instance."""
    compute_instance = {"compute_instance_id": 0, "profile_id": 0, "slices": compute or slices, "start": 0, "size": slices, "uuid": uuid}
    return {
        "gpu_instance_id": 7 + start, "profile": name, "profile_id": ident, "start": start, "size": size,
        "compute_instances": [] if uuid is None else [compute_instance],
    }  # fmt: skip


def gpu(minor: int, uuid: str, bus: str, mib: int, **more: Any) -> dict[str, Any]:
    """One GPU document; ``more`` overrides fields."""
    base = {
        "uuid": uuid, "index": 0, "minor": minor, "pci_bus_id": bus, "pci_device_id": "0x233010DE", "pci_subsystem_id": "0x16C110DE",
        "product": "NVIDIA H100 80GB HBM3", "brand": 14, "architecture": 9, "architecture_name": "Hopper",
        "cuda_compute_capability": "9.0", "memory_bytes": mib * MIB, "memory_mib": mib, "addressing_mode": 1, "mig": dict(NO_MIG),
        "processes": [],
    }  # fmt: skip
    return dict(base, **more)


def node_document(*gpus: dict[str, Any]) -> dict[str, Any]:
    """The NVML document of a node."""
    return {
        "driver_version": "595.58.03", "nvml_version": "13.595.58.03", "cuda_driver_version": 13020, "driver_root": "/",
        "library": "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "gpus": list(gpus),
    }  # fmt: skip


def mig(profiles: list[dict[str, Any]], *instances: dict[str, Any], on: bool = True) -> dict[str, Any]:
    """A MIG document."""
    return {"capable": True, "current": on, "pending": on, "reset_free": True, "profiles": profiles, "instances": list(instances)}


H100_NODE = node_document(
    gpu(0, "GPU-11111111-0000-4000-8000-000000000000", "00000000:41:00.0", 81559, mig=mig(H100_PROFILES, on=False)),
    gpu(
        1, "GPU-11111111-0000-4000-8000-000000000001", "00000000:C1:00.0", 81559, index=1,
        mig=mig(
            H100_PROFILES,
            *(instance("1g.10gb", 19, start, 1, 1, f"MIG-33333333-0000-5000-8000-00000000000{start}") for start in range(4)),
            instance("3g.40gb", 9, 4, 4, 3, "MIG-33333333-0000-5000-8000-000000000004"),
        ),
    ),
)  # fmt: skip
A100_NODE = node_document(
    gpu(
        3, "GPU-22222222-0000-4000-8000-000000000000", "00000000:65:00.0", 81920, product="NVIDIA A100 80GB PCIe", architecture=7,
        cuda_compute_capability="8.0", addressing_mode=None,
        mig=mig(
            A100_PROFILES,
            instance("3g.40gb", 9, 0, 4, 3, "MIG-44444444-0000-5000-8000-000000000000"),
            instance("1g.10gb+me", 20, 4, 1, 1, "MIG-44444444-0000-5000-8000-000000000004"),
            instance("1g.20gb", 15, 6, 2, 1, "MIG-44444444-0000-5000-8000-000000000006"),
        ),
    )
)  # fmt: skip


class Fleet:
    """The two nodes as they should be, to be spoiled by tests: ``nvml`` and raw ``slices`` by node name."""

    machine_id = "0123456789abcdef0123456789abcdef"

    def __init__(self) -> None:
        self.nvml = {name: json.loads(json.dumps(node)) for name, node in (("h100-1", H100_NODE), ("a100-1", A100_NODE))}
        self.slices = {name: json.loads((SLICES / f"{name[:4]}-node.json").read_text()) for name in self.nvml}
        self.pods = {name: PluginPod(f"plugin-{name}", "gpu-operator", name, "") for name in self.nvml}
        self.nodes = {name: NodeRecord(name, self.machine_id, True, "true") for name in self.nvml}
        self.extra_slices: list[dict[str, Any]] = []

    def devices(self, node: str) -> list[dict[str, Any]]:
        """The raw devices of a node's slice."""
        return self.slices[node]["spec"]["devices"]

    def device(self, node: str, name: str) -> dict[str, Any]:
        """One raw device."""
        return next(device for device in self.devices(node) if device["name"] == name)

    def cluster(self) -> Cluster:
        """The snapshot."""
        raw = [*self.slices.values(), *self.extra_slices]
        return Cluster(dict(self.nodes), form_pools(parse_slice(item) for item in raw), list(self.pods.values()))


@pytest.fixture
def fleet() -> Fleet:
    """A fleet in which everything is right."""
    return Fleet()


@pytest.fixture
def make_gpu() -> Any:
    """The builders, for tests that need a GPU of their own: gpu, mig, instance, profile, node_document."""

    class Builders:
        pass

    builders = Builders()
    for function in (gpu, mig, instance, profile, node_document):
        setattr(builders, function.__name__, function)
    return builders
