# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Taking the DRA plugin off a node for a MIG mode change, and putting it back (GPU Operator, GPUCluster path).

The order matters: record, cordon, no claims, operands with admin claims first, plugin last; the other way round their pods would hang in
Terminating. Everything that is needed to put the node back stands in one annotation that is written before anything else, in the same
request as the cordon; so an interrupted run is finished by the next one, whichever way it goes. The cordon is lifted last, when the plugin
publishes what there is now: the slices of the old layout outlive the old plugin, and the scheduler would go on allocating from them.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ..dra.claims import HeldClaim, held_claims
from ..dra.cluster import pod_problem
from ..dra.slices import form_pools, parse_slice
from ..reasons import FleetError, finding
from . import pause_record as record
from .client import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, KubeApi
from .waits import poll

Poll = Callable[[Callable[[], Any], Callable[[Any], bool], float], Any]


class PauseOptions(NamedTuple):
    """What a pause is about.

    ``devices`` None means any device of the node; ``namespace`` None looks for pods in all namespaces. ``timeout_s`` bounds every wait but the
    one for claims to end, which ``claims_timeout_s`` bounds (0: refuse at once). ``published`` names the devices that the node has to publish
    before it is put back into service, None when that is not known.
    """

    node: str
    driver: str
    devices: list[str] | None
    plugin_selector: str
    namespace: str | None
    timeout_s: float
    claims_timeout_s: float = 0
    published: Collection[str] | None = None
    check_mode: bool = False


class NodePause:
    """The pause of one node.

    ``before`` and ``after`` are the node's views (pause_record.view), ``changed`` whether they differ. In check mode ``warnings`` holds as
    sentences what would have kept the node from being paused.
    """

    def __init__(self, api: KubeApi, options: PauseOptions, wait: Poll = poll) -> None:
        self._api = api
        self._options = options
        self._wait = wait
        self._node = self._read_node()
        self.before = record.view(self._node)
        self.warnings: list[str] = []

    @property
    def after(self) -> dict[str, Any]:
        """The node's view as it is now; in check mode, as it would be."""
        return record.view(self._node)

    @property
    def changed(self) -> bool:
        """Whether the node was changed; in check mode, whether it would be."""
        return self.before != self.after

    def claims(self) -> list[HeldClaim]:
        """Return the claims without admin access that hold the devices in question."""
        return held_claims(self._api.list_all(RESOURCE_CLAIMS), self._options.driver, self._options.node, self._options.devices)

    def plugin_pods(self) -> list[dict[str, Any]]:
        """Return the plugin pods on the node, raw."""
        return self._pods(self._options.plugin_selector)

    def pause(self) -> None:
        """Take the plugin off the node. A node that the operator does not manage, without a plugin pod, is left as it is.

        Raises DriverUpgradeInProgress or ClaimsInUse with the node as it was found, or PauseTimedOut (the next run goes on from there). What
        an earlier run had paused stays paused, whatever happens here.
        """
        paused = record.read_record(self._node)
        if paused is None:
            plugin_pods = self.plugin_pods()
            if not plugin_pods and not record.is_managed(self._node):
                return
            self._refuse(lambda: record.refuse_during_upgrade(self._node))
            if not self._options.claims_timeout_s and not self._options.check_mode:
                self._refuse_claims(self.claims())
            paused = self._record(bool(plugin_pods))
            try:
                self._wait_for_claims()
            except FleetError:
                # Pods that were there, or came in between the first look and the cordon. Nothing was taken away from them yet.
                self._restore(paused)
                raise
        else:
            self._wait_for_claims()
            if not paused.plugin_ran and all(value is None for value in paused.labels.values()):
                return  # cordoned for a drain; there is no operator whose pods could be taken off
        if self._plugin_is_off():
            return
        self._set_labels(paused.paused_labels(tuple(record.OPERANDS)))
        self._wait_gone(f"app in ({','.join(record.OPERANDS.values())})", "the validator and monitoring pods to go")
        self._set_labels(paused.paused_labels((record.PLUGIN_LABEL,)))
        self._wait_plugin_gone()

    def cordon(self) -> None:
        """Begin a pause and no more: record and cordon, with the plugin and all pods where they are. For a drain, which needs the plugin.

        The node then counts as paused: :meth:`pause` goes on from there and :meth:`resume` lifts the cordon, if it was this one. A node that
        the operator does not manage is cordoned too. Raises DriverUpgradeInProgress with the node as it was found.
        """
        if record.read_record(self._node) is None:
            self._refuse(lambda: record.refuse_during_upgrade(self._node))
            self._record(bool(self.plugin_pods()))

    def _record(self, plugin_ran: bool) -> record.PauseRecord:
        paused = record.new_record(self._node, plugin_ran)
        self._patch({"metadata": {"annotations": {record.ANNOTATION: paused.annotation()}}, "spec": {"unschedulable": True}})
        return paused

    def _plugin_is_off(self) -> bool:
        """Whether the last step of a pause is done: by an earlier run, or by the boot service, which takes off the plugin alone. Pods with claims that are left
        then cannot go before the plugin is back."""
        return record.labels_of(self._node).get(record.PLUGIN_LABEL) == record.PAUSED and not self.plugin_pods()

    def resume(self) -> None:
        """Put the node back as it was recorded, with a new, ready plugin pod that has published. A node that is not paused is left as it is.

        Raises PauseTimedOut while the plugin is not ready or has not published; the node then stays cordoned and the next run goes on from there.
        """
        paused = record.read_record(self._node)
        if paused is None:
            self._set_labels(record.stale_labels(self._node))
            return
        if record.labels_of(self._node).get(record.PLUGIN_LABEL) == record.PAUSED:
            # An interrupted pause may not have waited for this. Once the old pod is gone, any that comes has seen the GPUs as they are now.
            self._wait_plugin_gone()
        self._set_labels({record.PLUGIN_LABEL: paused.labels[record.PLUGIN_LABEL]})
        if paused.plugin_comes_back:
            self._wait_plugin_ready()
            self._wait_published()
        self._restore(paused)

    def _restore(self, paused: record.PauseRecord) -> None:
        patch: dict[str, Any] = {"metadata": {"annotations": {record.ANNOTATION: None}, "labels": paused.labels}}
        if paused.cordoned:
            patch["spec"] = {"unschedulable": None}
        self._patch(patch)

    def _refuse(self, check: Callable[[], None]) -> None:
        """Run a check that raises FleetError; in check mode keep its sentence as a warning, for the plan is worth seeing all the same."""
        try:
            check()
        except FleetError as error:
            if not self._options.check_mode:
                raise
            self.warnings.append(str(error))

    def _wait_for_claims(self) -> None:
        """Wait until no claim holds the devices any more; the node is cordoned, so none comes. Raises ClaimsInUse when the time is over."""
        wait_s = 0 if self._options.check_mode else self._options.claims_timeout_s
        claims = self._wait(self.claims, lambda claims: not claims, wait_s)
        self._refuse(lambda: self._refuse_claims(claims))

    def _refuse_claims(self, claims: list[HeldClaim]) -> None:
        if claims:
            details = {"claims": [claim.as_dict() for claim in claims]}
            texts = "; ".join(claim.text() for claim in claims)
            raise FleetError(finding("ClaimsInUse", self._options.node, details, claims=texts))

    def _set_labels(self, labels: Mapping[str, str | None]) -> None:
        """Set labels that differ; None removes one."""
        present = record.labels_of(self._node)
        different = {name: value for name, value in labels.items() if present.get(name) != value}
        if different:
            self._patch({"metadata": {"labels": different}})

    def _patch(self, body: dict[str, Any]) -> None:
        if self._options.check_mode:
            self._node = record.merged(self._node, body)
        else:
            self._node = self._api.patch(NODES, self._options.node, body)

    def _wait_gone(self, selector: str, what: str) -> None:
        if self._options.check_mode:
            return
        left = self._wait(lambda: self._pods(selector), lambda pods: not pods, self._options.timeout_s)
        if left:
            self._timed_out(f"{what}: {', '.join(_pod_text(pod) for pod in left)}")

    def _wait_plugin_gone(self) -> None:
        self._wait_gone(self._options.plugin_selector, "the DRA plugin pod to go")

    def _wait_plugin_ready(self) -> None:
        def ready(pods: list[dict[str, Any]]) -> bool:
            return bool(pods) and not any(pod_problem(pod) for pod in pods)

        if self._options.check_mode:
            return
        pods = self._wait(self.plugin_pods, ready, self._options.timeout_s)
        if not ready(pods):
            self._timed_out("a ready DRA plugin pod: " + (", ".join(_pod_text(pod) for pod in pods) or "there is none"))

    def _wait_published(self) -> None:
        """Wait until the node's pool is whole and holds exactly the devices that it should.

        Names are enough: a name holds GPU, profile and place, and NVML derives the UUID of a MIG device from these.
        """
        wanted = self._options.published
        if wanted is None or self._options.check_mode:
            return
        problem = self._wait(lambda: self._publication_problem(wanted), lambda problem: not problem, self._options.timeout_s)
        if problem:
            self._timed_out(f"the DRA plugin to publish the devices as they are now: {problem}")

    def _publication_problem(self, wanted: Collection[str]) -> str:
        """Return in which way the node's pool differs from ``wanted``; empty when it does not."""
        fields = f"spec.driver={self._options.driver},spec.nodeName={self._options.node}"
        pools = form_pools(parse_slice(raw) for raw in self._api.list_all(RESOURCE_SLICES, field_selector=fields))
        names = {device.name for pool in pools for device in pool.devices}
        problems = {"missing": sorted(set(wanted) - names), "still there": sorted(names - set(wanted))}
        texts = [f"{what} {', '.join(devices)}" for what, devices in problems.items() if devices]
        texts += [f"pool {pool.name} has {len(pool.slices)} of {pool.size} slices" for pool in pools if not pool.complete]
        return "; ".join(texts)

    def _timed_out(self, what: str) -> None:
        raise FleetError(finding("PauseTimedOut", self._options.node, timeout_s=self._options.timeout_s, what=what))

    def _pods(self, selector: str) -> list[dict[str, Any]]:
        on_node = f"spec.nodeName={self._options.node}"
        return self._api.list_all(PODS, self._options.namespace, label_selector=selector, field_selector=on_node)

    def _read_node(self) -> dict[str, Any]:
        node = self._api.get(NODES, self._options.node)
        if node is None:
            raise FleetError(finding("NodeMissing", self._options.node, node=self._options.node))
        return node


def _pod_text(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']} ({pod_problem(pod) or 'ready'})"
