# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What NVIDIA's plugin publishes equals what dra.expected predicts, over many layouts of every model.

The device names and sizes below come from NVIDIA's tables, not from our code: a mistake in the prediction cannot hide behind itself.
"""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.compare import compare_node
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.expected import expected_devices
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.slices import Pool, form_pools, parse_slice
from cluster import Cluster, wait_for

# Per node and round: GPU index -> layout as nvmlctl takes it ("off" is a GPU out of MIG mode). Names are <profile>-<id>-<start>.
ROUNDS: list[dict[str, dict[int, str]]] = [
    {
        "h100-1": {
            0: "7g.80gb@0", 1: "4g.40gb@0,3g.40gb@4", 2: "2g.20gb@0,2g.20gb@2,2g.20gb@4,1g.10gb@6", 3: "1g.20gb@0,1g.20gb@2,1g.20gb@4,1g.20gb@6",
            4: "1g.10gb+me@0,1g.10gb@1,2g.20gb@2,3g.40gb@4", 5: "3g.40gb@4", 6: "off", 7: "4g.40gb@0,1g.10gb@4,1g.10gb@5,1g.20gb@6",
        },
        "a100-1": {0: "7g.80gb@0", 1: "4g.40gb@0,2g.20gb@4,1g.10gb@6"},
        "h200-1": {0: "7g.141gb@0", 1: "3g.71gb@0,3g.71gb@4"},
        "rtx-1": {0: "4g.96gb@0", 1: "1g.24gb@0,1g.24gb@3,1g.24gb@6,1g.24gb@9"},
    },
    {
        "a100-1": {0: "3g.40gb@4,1g.10gb@0,1g.10gb@1,2g.20gb@2", 1: "1g.20gb@0,1g.20gb@2,1g.10gb+me@4"},
        "h200-1": {0: "1g.35gb@0,1g.35gb@6,2g.35gb@2,1g.18gb@4", 1: "4g.71gb@0,3g.71gb@4"},
        "rtx-1": {0: "2g.48gb+gfx@0,1g.24gb+me@6,1g.24gb-me@9", 1: "2g.48gb+me.all@0,1g.24gb-me@6"},
    },
    {
        "a100-1": {0: "off", 1: "1g.10gb@0,1g.10gb@1,1g.10gb@2,1g.10gb@3,1g.10gb@4,1g.10gb@5,1g.10gb@6"},
        "h200-1": {0: "1g.18gb+me@0,1g.18gb@1,2g.35gb@2,3g.71gb@4", 1: "off"},
        "rtx-1": {0: "2g.48gb@0,1g.24gb+gfx@6,1g.24gb@9", 1: "off"},
    },
]

# NVIDIA MIG User Guide and `nvidia-smi mig -lgip`: profile id of each profile name.
PROFILE_IDS = {
    "1g": 19, "1g+me": 20, "1g-double": 15, "2g": 14, "3g": 9, "4g": 5, "7g": 0,
    "rtx-1g": 14, "rtx-1g+me": 21, "rtx-1g+gfx": 47, "rtx-1g+me.all": 65, "rtx-1g-me": 67,
    "rtx-2g": 5, "rtx-2g+gfx": 35, "rtx-2g+me.all": 64, "rtx-2g-me": 66, "rtx-4g": 0, "rtx-4g+gfx": 32,
}
DOUBLE = {"1g.20gb", "1g.35gb"}
# Published multiprocessors and memory of some profiles, by product.
SIZES = {
    ("NVIDIA H100 80GB HBM3", "1g.10gb"): (16, "9984Mi"),
    ("NVIDIA H100 80GB HBM3", "7g.80gb"): (132, "81152Mi"),
    ("NVIDIA H200 NVL", "1g.18gb"): (16, "16Gi"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "2g.48gb+gfx"): (94, None),
    ("NVIDIA A100 80GB PCIe", "3g.40gb"): (42, None),
}


def device_name(node: str, gpu: int, instance: str) -> str:
    profile, start = instance.split("@")
    slices, _, rest = profile.partition(".")
    suffix = rest[rest.index("gb") + 2:]
    key = f"{slices}{suffix}"
    if node == "rtx-1":
        key = f"rtx-{key}"
    elif profile in DOUBLE:
        key = "1g-double"
    text = profile.replace(".", "").replace("+", "-")
    return f"gpu-{gpu}-mig-{text}-{PROFILE_IDS[key]}-{start}"


def device_names(node: str, layouts: dict[int, str]) -> set[str]:
    names: set[str] = set()
    for gpu, layout in layouts.items():
        names |= {f"gpu-{gpu}"} if layout == "off" else {device_name(node, gpu, instance) for instance in layout.split(",")}
    return names


def lay_out(cluster: Cluster, node: str, layouts: dict[int, str]) -> None:
    """Repartition behind everybody's back, as an administrator's shell would."""
    for gpu, layout in layouts.items():
        if layout == "off":
            cluster.emulator(node, "mode", str(gpu), "off")
        else:
            cluster.emulator(node, "repartition", str(gpu), layout)


@pytest.fixture(scope="module")
def playground(cluster: Cluster) -> Iterator[Cluster]:
    yield cluster
    cluster.playbook("site")


def pools(cluster: Cluster, node: str) -> list[Pool]:
    return form_pools([parse_slice(raw) for raw in cluster.slices(node)])


def test_what_the_demo_published_is_what_was_predicted(cluster: Cluster) -> None:
    for node in ("a100-1", "h100-1", "h200-1", "rtx-1"):
        expected, findings = expected_devices(node, cluster.nvml(node))
        assert not findings
        assert compare_node(node, expected, pools(cluster, node), "gpu.nvidia.com") == []


@pytest.mark.parametrize("number", range(len(ROUNDS)))
def test_the_plugin_publishes_what_was_predicted(playground: Cluster, number: int) -> None:
    cluster, wanted = playground, ROUNDS[number]
    for node, layouts in wanted.items():
        lay_out(cluster, node, layouts)
    cluster.restart_plugin(*wanted)
    for node, layouts in wanted.items():
        names = device_names(node, layouts)
        wait_for(f"{node} to publish {sorted(names)}", lambda node=node, names=names: names == {d.name for pool in pools(cluster, node) for d in pool.devices})
        expected, findings = expected_devices(node, cluster.nvml(node))
        assert not findings
        assert {device.name for device in expected} == names
        assert compare_node(node, expected, pools(cluster, node), "gpu.nvidia.com") == []
        for device in (device for pool in pools(cluster, node) for device in pool.devices):
            multiprocessors, memory = SIZES.get((device.attribute("productName"), device.attribute("profile")), (None, None))
            assert multiprocessors is None or device.capacities["multiprocessors"] == str(multiprocessors)
            assert memory is None or device.capacities["memory"] == memory


def test_every_model_was_seen_with_at_least_five_layouts() -> None:
    for node in ("a100-1", "h100-1", "h200-1", "rtx-1"):
        assert len({layout for layouts in ROUNDS for layout in layouts.get(node, {}).values()}) >= 5
