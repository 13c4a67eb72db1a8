# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One snapshot of the cluster for a verification: a paged LIST per kind, however many nodes there are."""
from __future__ import annotations

from ..dra.cluster import Cluster, parse_node, parse_plugin_pod
from ..dra.slices import form_pools, parse_slice
from .client import NODES, PODS, RESOURCE_SLICES, KubeApi


def take_snapshot(api: KubeApi, driver: str, plugin_selector: str, plugin_namespace: str | None) -> Cluster:
    """Return nodes, the pools of ``driver``, and the plugin pods with label ``plugin_selector`` (of all namespaces if none is given).

    Slices are read first: what is published cannot then be newer than the pods that are said to publish it. Raises FleetError as KubeApi does.
    """
    slices = api.list_all(RESOURCE_SLICES, field_selector=f"spec.driver={driver}")
    pods = api.list_all(PODS, plugin_namespace, label_selector=plugin_selector)
    nodes = [parse_node(raw) for raw in api.list_all(NODES)]
    return Cluster(
        nodes={node.name: node for node in nodes},
        pools=form_pools(parse_slice(raw) for raw in slices),
        plugin_pods=[parse_plugin_pod(raw) for raw in pods],
    )
