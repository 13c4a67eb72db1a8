# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pausing a node, against a cluster in memory that does what operator and kubelet do with the labels."""
from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.boot.node_pause import pause_patch
from ansible_collections.gpufleet.dra.plugins.module_utils.kube import pause_record as record
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.client import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.pause import NodePause, PauseOptions
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding

NODE = "h100-1"
PLUGIN = "nvidia.com/gpu.deploy.dra-driver"
VALIDATOR = "nvidia.com/gpu.deploy.dra-validator"
EXPORTER = "nvidia.com/gpu.deploy.dcgm-exporter-dra"
DCGM = "nvidia.com/gpu.deploy.dcgm-dra"
APPS = {
    PLUGIN: "nvidia-dra-driver-kubelet-plugin",
    VALIDATOR: "nvidia-operator-validator",
    EXPORTER: "nvidia-dcgm-exporter-dra",
    DCGM: "nvidia-dcgm-dra",
}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


class Interrupted(Exception):
    """Stands for a kill -9 of the run."""


class FakeCluster:
    """One node with operator pods: a pod exists exactly while its label is "true". ``log`` lists writes and how the pods went."""

    def __init__(self) -> None:
        self.node: dict[str, Any] = {"metadata": {"name": NODE, "labels": dict.fromkeys(APPS, "true"), "annotations": {}}, "spec": {}}
        self.claims: list[dict[str, Any]] = []
        self.claims_end_after: int | None = None
        self.api_fails = False
        self.looks_at_slices: list[list[dict[str, Any]]] = []
        self.pods: dict[str, dict[str, Any]] = {}
        self.stuck: set[str] = set()
        self.plugin_status: dict[str, Any] = READY
        self.log: list[str] = []
        self.interrupt_after: int | None = None
        self.before_cordon: Callable[[], None] = lambda: None
        self._uid = 0
        self.settle()
        self.log.clear()

    def settle(self) -> None:
        """Do what the DaemonSet controller does."""
        labels = self.node["metadata"]["labels"]
        for label, app in APPS.items():
            runs = labels.get(label) == "true"
            if runs and app not in self.pods:
                self._uid += 1
                self.pods[app] = {
                    "metadata": {"name": app, "namespace": "gpu-operator", "uid": f"uid-{self._uid}", "labels": {"app": app}},
                    "status": self.plugin_status if label == PLUGIN else READY,
                }
            if not runs and app in self.pods and app not in self.stuck:
                del self.pods[app]
                self.log.append(f"gone {app}")

    def get(self, resource: Any, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """Read the node."""
        assert (resource, namespace) == (NODES, None)
        return copy.deepcopy(self.node) if name == NODE else None

    def list_all(self, resource: Any, namespace: str | None = None, **selectors: str) -> list[dict[str, Any]]:
        """List claims, slices, or the node's pods by label app."""
        if resource == RESOURCE_CLAIMS:
            if self.api_fails:
                raise FleetError(finding("ApiRequestFailed", "https://api", verb="list", resource="resourceclaims", why="503"))
            if self.claims_end_after == 0:
                self.claims.clear()
            elif self.claims_end_after is not None:
                self.claims_end_after -= 1
            return copy.deepcopy(self.claims)
        if resource == RESOURCE_SLICES:
            assert selectors == {"field_selector": f"spec.driver=gpu.nvidia.com,spec.nodeName={NODE}"}
            self.log.append(f"slices, node {'cordoned' if self.node['spec'].get('unschedulable') else 'in service'}")
            return self.looks_at_slices.pop(0) if len(self.looks_at_slices) > 1 else self.looks_at_slices[0]
        assert (resource, selectors["field_selector"]) == (PODS, f"spec.nodeName={NODE}")
        wanted = selectors["label_selector"].removeprefix("app in (").removeprefix("app=").removesuffix(")").split(",")
        return [copy.deepcopy(pod) for app, pod in self.pods.items() if app in wanted]

    def patch(self, resource: Any, name: str, body: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
        """Change the node, unless the run is to be interrupted here."""
        assert (resource, name, namespace) == (NODES, NODE, None)
        if body.get("spec", {}).get("unschedulable"):
            self.before_cordon()
        if self.interrupt_after is not None:
            if self.interrupt_after == 0:
                raise Interrupted
            self.interrupt_after -= 1
        self.node = record.merged(self.node, body)
        self.log.append(f"patch {json.dumps(body, sort_keys=True)}")
        self.settle()
        return copy.deepcopy(self.node)

    def claim(self, device: str = "gpu-1", pod: str = "trainer", admin: bool = False) -> None:
        """Allocate a device to a pod."""
        result = {"driver": "gpu.nvidia.com", "pool": NODE, "device": device, "adminAccess": admin}
        users = [{"resource": "pods", "name": pod, "uid": "u"}]
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}
        self.claims.append({"metadata": {"name": f"claim-{pod}", "namespace": "team"}, "status": status})

    def state(self) -> dict[str, Any]:
        """What a pause may change."""
        return copy.deepcopy({"metadata": self.node["metadata"], "spec": self.node["spec"]})


def look_twice(look: Callable[[], Any], enough: Callable[[Any], bool], _timeout_s: float) -> Any:
    """A wait without time: two looks."""
    seen = look()
    return seen if enough(seen) else look()


def manage(cluster: FakeCluster, devices: list[str] | None = None, **more: Any) -> NodePause:
    options = PauseOptions(NODE, "gpu.nvidia.com", devices, f"app={APPS[PLUGIN]}", None, 30, **more)
    return NodePause(cluster, options, wait=look_twice)  # type: ignore[arg-type]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def failure(action: Callable[[], None]) -> Any:
    with pytest.raises(FleetError) as error:
        action()
    return error.value.finding


def test_pause_takes_everything_off_in_order(cluster: FakeCluster) -> None:
    pause = manage(cluster)
    pause.pause()
    assert pause.changed
    assert cluster.pods == {}
    assert cluster.node["spec"]["unschedulable"] is True
    assert set(cluster.node["metadata"]["labels"].values()) == {"paused-for-mig-change"}
    writes = [entry for entry in cluster.log if entry.startswith("patch")]
    assert record.ANNOTATION in writes[0]
    assert "unschedulable" in writes[0]
    assert cluster.log[-1] == f"gone {APPS[PLUGIN]}", "the plugin goes last"


def test_pause_and_resume_leave_the_node_as_it_was(cluster: FakeCluster) -> None:
    cluster.node["metadata"]["labels"][EXPORTER] = "false"
    del cluster.node["metadata"]["labels"][DCGM]
    cluster.settle()
    before, old_pods = cluster.state(), copy.deepcopy(cluster.pods)
    manage(cluster).pause()
    assert cluster.node["metadata"]["labels"][EXPORTER] == "false"
    pause = manage(cluster)
    pause.resume()
    assert pause.changed
    assert cluster.state() == before
    plugin = APPS[PLUGIN]
    assert cluster.pods[plugin]["metadata"]["uid"] != old_pods[plugin]["metadata"]["uid"]


def test_a_node_that_was_cordoned_stays_cordoned(cluster: FakeCluster) -> None:
    cluster.node["spec"]["unschedulable"] = True
    manage(cluster).pause()
    manage(cluster).resume()
    assert cluster.node["spec"]["unschedulable"] is True


def test_second_run_changes_nothing(cluster: FakeCluster) -> None:
    manage(cluster).pause()
    cluster.log.clear()
    again = manage(cluster)
    again.pause()
    assert (again.changed, cluster.log) == (False, [])
    manage(cluster).resume()
    cluster.log.clear()
    again = manage(cluster)
    again.resume()
    assert (again.changed, cluster.log) == (False, [])


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
@pytest.mark.parametrize("then", ["pause", "resume"])
def test_interrupted_pause_is_finished_either_way(cluster: FakeCluster, writes: int, then: str) -> None:
    before = cluster.state()
    cluster.interrupt_after = writes
    if writes < 3:
        with pytest.raises(Interrupted):
            manage(cluster).pause()
    else:
        manage(cluster).pause()
    cluster.interrupt_after = None
    if then == "pause":
        manage(cluster).pause()
        assert cluster.pods == {}
    manage(cluster).resume()
    assert cluster.state() == before


@pytest.mark.parametrize("writes", [0, 1])
def test_interrupted_resume_is_finished(cluster: FakeCluster, writes: int) -> None:
    before = cluster.state()
    manage(cluster).pause()
    cluster.interrupt_after = writes
    with pytest.raises(Interrupted):
        manage(cluster).resume()
    cluster.interrupt_after = None
    manage(cluster).resume()
    assert cluster.state() == before


def test_claims_in_use_are_refused_and_named(cluster: FakeCluster) -> None:
    cluster.claim(pod="trainer")
    before = cluster.state()
    found = failure(manage(cluster).pause)
    assert (found.code, cluster.state(), cluster.log) == ("ClaimsInUse", before, [])
    assert "team/claim-trainer (gpu-1; pod trainer)" in found.cause


def test_claims_on_other_devices_and_admin_claims_do_not_matter(cluster: FakeCluster) -> None:
    cluster.claim("gpu-0", pod="trainer")
    cluster.claim("gpu-1", pod="monitor", admin=True)
    manage(cluster, devices=["gpu-1"]).pause()
    assert cluster.pods == {}


def test_claim_that_comes_before_the_cordon_undoes_the_pause(cluster: FakeCluster) -> None:
    before = cluster.state()
    cluster.before_cordon = cluster.claim
    assert failure(manage(cluster).pause).code == "ClaimsInUse"
    assert cluster.state() == before
    assert not any(entry.startswith("gone") for entry in cluster.log)


@pytest.mark.parametrize("trouble", ["claim", "api"])
def test_what_an_earlier_run_left_paused_stays_paused_when_the_next_one_fails(cluster: FakeCluster, trouble: str) -> None:
    """The earlier run may have died with the GPUs half changed, so nothing may put the node back before the layout is made."""
    manage(cluster).pause()
    left = cluster.state()
    if trouble == "claim":
        cluster.claim()
    cluster.api_fails = trouble == "api"
    assert failure(manage(cluster).pause).code == {"claim": "ClaimsInUse", "api": "ApiRequestFailed"}[trouble]
    assert (cluster.state(), cluster.pods) == (left, {})


def test_waiting_for_claims_cordons_first_and_goes_on_when_they_end(cluster: FakeCluster) -> None:
    cluster.claim()
    cluster.claims_end_after = 1
    manage(cluster, claims_timeout_s=60).pause()
    assert cluster.pods == {}
    assert "unschedulable" in cluster.log[0]


def test_claims_that_do_not_end_in_time_leave_the_node_as_it_was(cluster: FakeCluster) -> None:
    cluster.claim()
    before = cluster.state()
    assert failure(manage(cluster, claims_timeout_s=60).pause).code == "ClaimsInUse"
    assert cluster.state() == before
    assert not any(entry.startswith("gone") for entry in cluster.log)


@pytest.mark.parametrize("claims_timeout_s", [0, 60])
def test_check_mode_warns_of_what_would_refuse_the_pause(cluster: FakeCluster, claims_timeout_s: float) -> None:
    cluster.claim()
    cluster.node["metadata"]["labels"]["nvidia.com/gpu-driver-upgrade-state"] = "drain-required"
    predicted = manage(cluster, check_mode=True, claims_timeout_s=claims_timeout_s)
    predicted.pause()
    assert (predicted.changed, cluster.log) == (True, [])
    assert [warning.rpartition(" ")[2] for warning in predicted.warnings] == ["[DriverUpgradeInProgress]", "[ClaimsInUse]"]


@pytest.mark.parametrize(
    ("label", "value", "refused"),
    [
        ("nvidia.com/gpu-driver-upgrade-state", "drain-required", True),
        ("nvidia.com/gpu-driver-upgrade-state", "upgrade-failed", True),
        ("nvidia.com/gpu-driver-upgrade-state", "upgrade-done", False),
        ("nvidia.com/gpu-driver-upgrade-state", "", False),
        (PLUGIN, "true_paused-for-driver-upgrade", True),
        ("nvidia.com/gpu.deploy.driver", "paused-for-driver-upgrade", True),
    ],
)
def test_driver_upgrade(cluster: FakeCluster, label: str, value: str, refused: bool) -> None:
    cluster.node["metadata"]["labels"][label] = value
    before = cluster.state()
    if refused:
        found = failure(manage(cluster).pause)
        assert (found.code, cluster.state()) == ("DriverUpgradeInProgress", before)
        assert f"{label}={value}" in found.cause
    else:
        manage(cluster).pause()
        assert cluster.pods == {}


def test_node_without_the_operator_is_left_alone(cluster: FakeCluster) -> None:
    cluster.node["metadata"]["labels"] = {"kubernetes.io/arch": "amd64"}
    cluster.pods.clear()
    for action in ("pause", "resume"):
        pause = manage(cluster)
        getattr(pause, action)()
        assert (pause.changed, cluster.log) == (False, [])


def test_a_cordon_for_a_drain_leaves_every_pod_and_claim_and_the_pause_goes_on_from_it(cluster: FakeCluster) -> None:
    before = copy.deepcopy(cluster.node)
    cluster.claim("gpu-0")
    manage(cluster).cordon()
    assert cluster.node["spec"] == {"unschedulable": True} and record.ANNOTATION in cluster.node["metadata"]["annotations"]
    assert len(cluster.pods) == len(APPS), "the plugin has to be there to release the claims of the pods that are drained"
    assert failure(manage(cluster).pause).code == "ClaimsInUse"
    assert cluster.node["spec"] == {"unschedulable": True}, "a node that is being drained stays cordoned"
    cluster.claims.clear()
    manage(cluster).pause()
    assert not cluster.pods
    manage(cluster).resume()
    assert cluster.node["metadata"]["labels"] == before["metadata"]["labels"] and not cluster.node["spec"].get("unschedulable")


def test_a_node_without_the_operator_can_be_cordoned_for_a_drain(cluster: FakeCluster) -> None:
    cluster.node["metadata"]["labels"] = {"other": "1"}
    cluster.settle()
    manage(cluster).cordon()
    assert cluster.node["spec"] == {"unschedulable": True}
    manage(cluster).pause()
    assert cluster.node["metadata"]["labels"] == {"other": "1"}
    manage(cluster).resume()
    assert not cluster.node["spec"].get("unschedulable") and cluster.node["metadata"]["labels"] == {"other": "1"}


def test_a_cordon_is_refused_during_an_upgrade_by_the_operator(cluster: FakeCluster) -> None:
    cluster.node["metadata"]["labels"]["nvidia.com/gpu-driver-upgrade-state"] = "cordon-required"
    before = copy.deepcopy(cluster.node)
    assert failure(manage(cluster).cordon).code == "DriverUpgradeInProgress"
    assert cluster.node == before


def test_labels_left_by_a_removed_operator_do_not_make_resume_wait(cluster: FakeCluster) -> None:
    before = cluster.state()
    cluster.pods.clear()
    cluster.settle = lambda: None  # type: ignore[method-assign]
    manage(cluster).pause()
    manage(cluster).resume()
    assert cluster.state() == before


@pytest.mark.parametrize("app", [APPS[VALIDATOR], APPS[PLUGIN]])
def test_pod_that_does_not_go(cluster: FakeCluster, app: str) -> None:
    cluster.stuck.add(app)
    found = failure(manage(cluster).pause)
    assert found.code == "PauseTimedOut"
    assert app in found.cause
    assert APPS[PLUGIN] in cluster.pods, "the plugin stays until the holders of admin claims are gone"
    cluster.stuck.clear()
    cluster.settle()
    manage(cluster).pause()
    assert cluster.pods == {}


def test_plugin_that_does_not_come_back_keeps_the_node_cordoned(cluster: FakeCluster) -> None:
    manage(cluster).pause()
    cluster.plugin_status = {"phase": "Pending"}
    found = failure(manage(cluster).resume)
    assert found.code == "PauseTimedOut"
    assert "(Pending)" in found.cause and "stays cordoned" in found.cause
    assert cluster.node["spec"]["unschedulable"] is True
    cluster.pods[APPS[PLUGIN]]["status"] = READY
    manage(cluster).resume()
    assert "unschedulable" not in cluster.node["spec"]


def slices(*devices: str, generation: int = 1, of: int = 1) -> list[dict[str, Any]]:
    """One ResourceSlice of the node's pool, which announces ``of``."""
    pool = {"name": NODE, "generation": generation, "resourceSliceCount": of}
    spec = {"driver": "gpu.nvidia.com", "nodeName": NODE, "pool": pool, "devices": [{"name": name} for name in devices]}
    return [{"metadata": {"name": f"slice-{generation}"}, "spec": spec}]


NEW = ["gpu-0-mig-1g10gb-19-0", "gpu-1"]


def test_the_cordon_is_lifted_only_when_the_new_devices_are_published(cluster: FakeCluster) -> None:
    """The old plugin's slices are still there when the new plugin is ready; the scheduler would allocate devices from them that are gone."""
    before = cluster.state()
    manage(cluster).pause()
    cluster.log.clear()
    cluster.looks_at_slices = [slices("gpu-0", "gpu-1"), slices(*NEW, generation=2)]
    manage(cluster, published=NEW).resume()
    assert cluster.state() == before
    assert [entry for entry in cluster.log if entry.startswith("slices")] == ["slices, node cordoned"] * 2


@pytest.mark.parametrize(
    ("published", "says"),
    [
        (slices("gpu-0", "gpu-1"), "missing gpu-0-mig-1g10gb-19-0; still there gpu-0"),
        (slices(*NEW, of=2), "pool h100-1 has 1 of 2 slices"),
        ([], "missing gpu-0-mig-1g10gb-19-0, gpu-1"),
    ],
)
def test_a_node_that_does_not_publish_its_devices_stays_cordoned(cluster: FakeCluster, published: list[dict[str, Any]], says: str) -> None:
    manage(cluster).pause()
    cluster.looks_at_slices = [published]
    found = failure(manage(cluster, published=NEW).resume)
    assert found.code == "PauseTimedOut"
    assert says in found.cause and "stays cordoned" in found.cause
    assert cluster.node["spec"]["unschedulable"] is True
    cluster.looks_at_slices = [slices(*NEW)]
    manage(cluster, published=NEW).resume()
    assert "unschedulable" not in cluster.node["spec"]


def test_plugin_that_the_pause_did_not_see_go_is_waited_for_before_it_may_come_back(cluster: FakeCluster) -> None:
    """A run that was killed right after it had set the plugin's label: the old pod, which has not seen a new layout, must not count."""
    plugin = APPS[PLUGIN]
    old = cluster.pods[plugin]["metadata"]["uid"]
    cluster.stuck.add(plugin)
    assert failure(manage(cluster).pause).code == "PauseTimedOut"
    assert failure(manage(cluster).resume).code == "PauseTimedOut"
    assert cluster.node["metadata"]["labels"][PLUGIN] == "paused-for-mig-change"
    cluster.stuck.clear()
    cluster.settle()
    manage(cluster).resume()
    assert cluster.pods[plugin]["metadata"]["uid"] != old


def test_what_the_boot_service_kept_off_is_paused_already_and_comes_back(cluster: FakeCluster) -> None:
    before = cluster.state()
    patch = pause_patch(cluster.node)
    cluster.patch(NODES, NODE, {"metadata": patch})
    # Their claims cannot be unprepared without the plugin.
    cluster.stuck = {APPS[VALIDATOR], APPS[EXPORTER]}
    cluster.log.clear()
    manage(cluster).pause()
    assert cluster.log == [], "nothing is left to take off, and waiting for these pods would be in vain"
    manage(cluster).resume()
    assert cluster.state() == before and APPS[PLUGIN] in cluster.pods


def test_stale_pause_labels_without_a_record(cluster: FakeCluster) -> None:
    before = cluster.state()
    manage(cluster).pause()
    del cluster.node["metadata"]["annotations"][record.ANNOTATION]
    del cluster.node["spec"]["unschedulable"]
    manage(cluster).resume()
    assert cluster.state() == before


@pytest.mark.parametrize("text", ["", "null", "{}", '{"labels": {}, "cordoned": true, "plugin_ran": true}'])
def test_unreadable_record(cluster: FakeCluster, text: str) -> None:
    cluster.node["metadata"]["annotations"][record.ANNOTATION] = text
    for action in (manage(cluster).pause, manage(cluster).resume):
        assert failure(action).code == "PauseRecordUnreadable"
    assert cluster.log == []


def test_check_mode_predicts_and_writes_nothing(cluster: FakeCluster) -> None:
    predicted = manage(cluster, check_mode=True)
    predicted.pause()
    assert (predicted.changed, cluster.log) == (True, [])
    real = manage(cluster)
    real.pause()
    assert real.after == predicted.after
    cluster.log.clear()
    predicted = manage(cluster, check_mode=True)
    predicted.resume()
    assert (predicted.changed, cluster.log) == (True, [])
    real = manage(cluster)
    real.resume()
    assert real.after == predicted.after


def test_missing_node() -> None:
    options = PauseOptions("ghost", "gpu.nvidia.com", None, "app=x", None, 1)
    assert failure(lambda: NodePause(FakeCluster(), options).pause()).code == "NodeMissing"  # type: ignore[arg-type]


def test_probe_data(cluster: FakeCluster) -> None:
    cluster.claim()
    pause = manage(cluster)
    assert [claim.name for claim in pause.claims()] == ["claim-trainer"]
    assert [pod["metadata"]["name"] for pod in pause.plugin_pods()] == [APPS[PLUGIN]]
    assert (pause.changed, pause.before["paused"]) == (False, False)
