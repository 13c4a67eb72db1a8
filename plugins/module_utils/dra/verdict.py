# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The verdict: what every host of a play reports, judged against one snapshot of the cluster."""
from __future__ import annotations

from typing import Any, NamedTuple

from ..reasons import ERROR, Finding, finding
from .cluster import Cluster
from .compare import EVENTUAL, compare_node
from .expected import ExpectedDevice, expected_devices, gpu_subject, layout_text

RIGHT = "right"
WRONG = "wrong"
NOT_JUDGED = "not judged"


class Host(NamedTuple):
    """One inventory host as the play left it.

    ``not_judged`` says why the host has nothing to be judged by (empty if it has). ``nvml`` is the document of nvml_info, or None when that
    failed, with ``nvml_error`` as the reason. ``layout`` is the result of mig_layout in check mode, also a failed one, or None if no layout was
    asked for.
    """

    name: str
    node: str
    not_judged: str = ""
    nvml: dict[str, Any] | None = None
    nvml_error: str = ""
    layout: dict[str, Any] | None = None
    machine_id: str = ""


class Row(NamedTuple):
    """One line of the table: a GPU, or a host without a GPU to show. ``gpu`` has index, product and uuid, or is None."""

    node: str
    gpu: dict[str, Any] | None
    layout: str
    devices: tuple[str, ...]
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """Return the row for results; ``devices_published`` counts ``devices``."""
        return {
            "node": self.node,
            "gpu": self.gpu,
            "layout": self.layout,
            "devices_published": len(self.devices),
            "devices": list(self.devices),
            "verdict": self.verdict,
        }


class Verdict(NamedTuple):
    """What was found. ``expected`` maps each judged node to the devices it should publish."""

    findings: list[Finding]
    rows: list[Row]
    expected: dict[str, list[ExpectedDevice]]

    @property
    def errors(self) -> list[Finding]:
        """The findings of severity error."""
        return [item for item in self.findings if item.severity == ERROR]

    @property
    def may_mend_itself(self) -> bool:
        """Whether there are errors, all of the kind that the driver puts right without anybody: worth another look later."""
        return bool(self.errors) and all(item.code in EVENTUAL for item in self.errors)


def judge(hosts: list[Host], cluster: Cluster, driver: str) -> Verdict:
    """Return the verdict over ``hosts``; nodes that publish devices but have no host in the play are named as not judged."""
    findings: list[Finding] = []
    rows: list[Row] = []
    expected: dict[str, list[ExpectedDevice]] = {}
    for host in hosts:
        own, devices = _judge_host(host, cluster, driver)
        findings.extend(own)
        rows.extend(_rows(host, own, cluster))
        if devices is not None:
            expected[host.node] = devices
    known = {host.node for host in hosts}
    for pool in cluster.pools:
        if pool.node_name and pool.node_name not in known:
            details = {"node": pool.node_name, "found": [device.name for device in pool.devices]}
            findings.append(finding("NodeNotInPlay", pool.node_name, details, count=len(pool.devices)))
    return Verdict(findings, rows, expected)


def _judge_host(host: Host, cluster: Cluster, driver: str) -> tuple[list[Finding], list[ExpectedDevice] | None]:
    details: dict[str, Any] = {"host": host.name, "node": host.node}
    if host.not_judged:
        return [finding("HostNotJudged", host.name, details, why=host.not_judged)], None
    findings = _identity_findings(host, cluster, details)
    if host.nvml is None:
        return [*findings, finding("NvmlFactsMissing", host.name, details, why=host.nvml_error)], None
    if not host.nvml["gpus"]:
        findings.append(finding("NoGpuFound", host.name, details))
    devices, obstacles = expected_devices(host.node, host.nvml)
    findings.extend(obstacles)
    findings.extend(_layout_findings(host))
    if host.node in cluster.nodes:
        findings.extend(_plugin_findings(host, cluster))
        findings.extend(compare_node(host.node, devices, cluster.pools_of(host.node), driver))
    return findings, devices


def _identity_findings(host: Host, cluster: Cluster, details: dict[str, Any]) -> list[Finding]:
    """Check that the Node is there and is this very host, by machine id: an equal name alone proves nothing."""
    node = cluster.nodes.get(host.node)
    if node is None:
        return [finding("NodeMissing", host.name, details, node=host.node)]
    if host.machine_id and node.machine_id and _hex(host.machine_id) != _hex(node.machine_id):
        both = {"expected": host.machine_id, "found": node.machine_id}
        return [finding("NodeIdentityMismatch", host.name, dict(details, **both), node=host.node, **both)]
    return []


def _hex(machine_id: str) -> str:
    return machine_id.strip().replace("-", "").lower()


def _plugin_findings(host: Host, cluster: Cluster) -> list[Finding]:
    """Check that a ready plugin pod stands behind the slices: the kubelet leaves those of a dead plugin for a while."""
    if not (host.nvml and host.nvml["gpus"]):
        return []
    node = cluster.nodes[host.node]
    pods = cluster.plugin_pods_of(host.node)
    if any(not pod.problem for pod in pods):
        return []
    if pods:
        why = "; ".join(f"pod {pod.namespace}/{pod.name} is not ready ({pod.problem})" for pod in pods)
    else:
        label = node.deploy_label
        why = "there is no plugin pod, the label nvidia.com/gpu.deploy.dra-driver is " + ("absent" if label is None else repr(label))
    if not node.ready:
        why = f"the Node is not Ready; {why}"
    return [finding("PluginNotRunning", host.node, {"node": host.node, "pods": [pod.name for pod in pods]}, why=why)]


def _layout_findings(host: Host) -> list[Finding]:
    """Return one LayoutMismatch per GPU that a run of mig_layout would change, from its result in check mode."""
    layout = host.layout
    if layout is None:
        return []
    if layout.get("failed"):
        return [finding("LayoutNotCompared", host.node, {"node": host.node, "reason": layout.get("reason")}, why=layout["msg"])]
    if not layout["changed"]:
        return []
    steps: dict[str, list[dict[str, Any]]] = {}
    for step in layout["plan"]:
        steps.setdefault(step["parent_uuid"], []).append(step)
    gpus = {gpu["uuid"]: gpu for gpu in (host.nvml or {}).get("gpus", ())}
    findings = []
    for uuid, own in sorted(steps.items()):
        subject = gpu_subject(host.node, gpus[uuid]) if uuid in gpus else f"{host.node}: GPU {uuid}"
        details = {"node": host.node, "gpu_uuid": uuid, "plan": [step["text"] for step in own]}
        findings.append(finding("LayoutMismatch", subject, details, difference=_plan_text(own)))
    return findings


def _plan_text(steps: list[dict[str, Any]]) -> str:
    """Return the plan of one GPU in a few words; compute instances are named only where a GPU instance stays and gets a new one."""
    modes = [f"MIG mode is to be {'on' if step['enable'] else 'off'}" for step in steps if step["action"] == "set_mode"]
    groups = {"destroy_gpu_instance": "too much is", "create_gpu_instance": "missing is"}
    words = []
    for action, text in groups.items():
        places = [f"{step['profile']} at start {step['start']}" for step in steps if step["action"] == action]
        if places:
            words.append(f"{text} {', '.join(places)}")
    return "; ".join([*modes, *words]) or "; ".join(step["text"] for step in steps)


def _rows(host: Host, findings: list[Finding], cluster: Cluster) -> list[Row]:
    if host.not_judged:
        return [Row(host.node, None, "", (), NOT_JUDGED)]
    gpus = (host.nvml or {}).get("gpus") or ()
    known = {gpu["uuid"] for gpu in gpus}
    wrong_gpus = {item.details.get("gpu_uuid") for item in findings if item.severity == ERROR}
    owned: dict[str | None, list[str]] = {}
    for device in (device for pool in cluster.pools_of(host.node) for device in pool.devices):
        owner = device.attribute("parentUUID") or device.attribute("uuid")
        owned.setdefault(owner if owner in known else None, []).append(device.name)
    # A finding without a GPU is about the whole node, and so about each of its GPUs.
    node_wrong = None in wrong_gpus
    rows = []
    for gpu in gpus:
        shown = {"index": gpu["index"], "product": gpu["product"], "uuid": gpu["uuid"]}
        wrong = node_wrong or gpu["uuid"] in wrong_gpus
        rows.append(Row(host.node, shown, layout_text(gpu), tuple(sorted(owned.get(gpu["uuid"], ()))), WRONG if wrong else RIGHT))
    strangers = tuple(sorted(owned.get(None, ())))
    if strangers or (host.nvml is None):
        rows.append(Row(host.node, None, "", strangers, WRONG))
    elif not gpus:
        # Nothing is wrong with what is published, and nothing is proven right either.
        rows.append(Row(host.node, None, "no GPU", (), WRONG if node_wrong else NOT_JUDGED))
    return rows
