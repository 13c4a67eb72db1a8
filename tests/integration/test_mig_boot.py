# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""gpufleet-mig.service through real reboots: the layout is there again before the kubelet, and what happens when it cannot be made."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cluster import Cluster, Done, ready, wait_for

NODE = "h100-1"  # Hopper: a reboot takes mode and instances
UNIT = "gpufleet-mig.service"
PLUGIN_LABEL = "nvidia.com/gpu.deploy.dra-driver"
CREATE = "nvmlDeviceCreateGpuInstanceWithPlacement"


def mig(cluster: Cluster, *arguments: str, **variables: Any) -> Done:
    return cluster.playbook("mig", "--limit", NODE, "-e", json.dumps(variables), *arguments)


def devices(cluster: Cluster) -> dict[str, Any]:
    """The published devices of the node by name, with all their attributes and capacities."""
    return {device["name"]: device for item in cluster.slices(NODE) for device in item["spec"].get("devices") or []}


def instances(cluster: Cluster) -> set[tuple[str, int, int]]:
    """The GPU instances of the node by what is stable of them: (GPU, profile id, start)."""
    return {(gpu["uuid"], item["profile_id"], item["start"]) for gpu in cluster.nvml(NODE)["gpus"] for item in gpu["mig"]["instances"]}


def unit(cluster: Cluster, name: str) -> dict[str, str]:
    """What systemd shows of a unit."""
    names = "ActiveState,SubState,Result,ActiveEnterTimestampMonotonic,ExecMainStartTimestampMonotonic"
    shown = cluster.ssh(NODE, "systemctl", "show", name, f"--property={names}", check=False)
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def record(cluster: Cluster) -> dict[str, Any]:
    return dict(json.loads(cluster.ssh(NODE, "cat", "/var/lib/gpufleet/mig-boot-state.json")))


def boot_id(cluster: Cluster) -> str:
    return cluster.ssh(NODE, "cat", "/proc/sys/kernel/random/boot_id", check=False).strip()


def label(cluster: Cluster) -> str | None:
    return cluster.get("node", NODE)["metadata"]["labels"].get(PLUGIN_LABEL)


def settled(cluster: Cluster) -> dict[str, Any]:
    """The devices of the node as soon as a ready plugin has published one for each whole GPU and each instance."""
    modes = [gpu["mig"] for gpu in cluster.nvml(NODE)["gpus"]]
    count = sum(len(mode["instances"]) if mode["current"] else 1 for mode in modes)
    wait_for("the node's devices", lambda: ready(cluster.plugin_pod(NODE) or {"status": {}}) and len(devices(cluster)) == count)
    return devices(cluster)


def published_as(cluster: Cluster, before: dict[str, Any]) -> bool:
    """Whether a ready plugin pod stands behind just the devices ``before``."""
    return ready(cluster.plugin_pod(NODE) or {"status": {}}) and devices(cluster) == before


@pytest.fixture(scope="module")
def laid_again(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster for the tests of this file: mig.yml puts all of it back in the end."""
    yield cluster
    cluster.playbook("mig", "--limit", NODE)


@pytest.fixture
def booted(laid_again: Cluster) -> Iterator[Cluster]:
    """The cluster for a test that reboots the node: afterwards no fault is left and the kubelet runs."""
    yield laid_again
    laid_again.emulator(NODE, "fault", "clear")
    laid_again.ssh(NODE, "systemctl", "start", "kubelet.service")


def test_after_a_reboot_the_same_devices_are_published(booted: Cluster) -> None:
    published, made = settled(booted), instances(booted)
    booted.sandbox("node", "reboot", NODE)
    assert instances(booted) == made and made
    wait_for("the devices to be as before", lambda: published_as(booted, published))
    last = record(booted)
    assert last["result"] == "ok" and last["changed"] and last["boot_id"] == boot_id(booted) and set(last["device_names"]) == set(published)
    made_at, kubelet_at = unit(booted, UNIT)["ActiveEnterTimestampMonotonic"], unit(booted, "kubelet.service")["ExecMainStartTimestampMonotonic"]
    assert 0 < int(made_at) <= int(kubelet_at)


def test_a_layout_that_fails_at_boot_holds_the_kubelet_back(booted: Cluster) -> None:
    published, before = settled(booted), boot_id(booted)
    booted.emulator(NODE, "fault", "add", "--symbol", CREATE, "--times", "1000", "--code", "UNKNOWN")
    booted.ssh(NODE, "systemctl", "reboot", check=False)
    wait_for("the unit to have failed", lambda: boot_id(booted) not in ("", before) and unit(booted, UNIT).get("ActiveState") == "failed")
    assert unit(booted, "kubelet.service")["ActiveState"] == "inactive"
    last = record(booted)
    assert (last["result"], last["reason"]) == ("failed", "InstanceCreateFailed") and last["sentence"] and last["remedy"]
    assert last["sentence"] in booted.ssh(NODE, "journalctl", "--boot", f"--unit={UNIT}", "--priority=err", "--output=cat", "--no-pager")

    again = booted.ssh(NODE, "systemctl", "start", "kubelet.service", check=False)
    assert "dependency" in again and unit(booted, "kubelet.service")["ActiveState"] == "inactive", again

    booted.emulator(NODE, "fault", "clear")
    booted.ssh(NODE, "systemctl", "start", "kubelet.service")
    assert unit(booted, UNIT)["ActiveState"] == "active" and record(booted)["result"] == "ok"
    wait_for("the devices to be as before", lambda: published_as(booted, published))


@pytest.mark.slow
def test_with_pause_the_node_comes_up_without_the_plugin_and_the_next_good_boot_lets_it_back(booted: Cluster) -> None:
    published, running = settled(booted), unit(booted, "kubelet.service")
    mig(booted, mig_boot_on_failure="pause")
    assert unit(booted, "kubelet.service") == running, "the role restarts no kubelet"

    booted.emulator(NODE, "fault", "add", "--symbol", CREATE, "--times", "1000", "--code", "UNKNOWN")
    booted.sandbox("node", "reboot", NODE)  # waits until the Node is Ready
    assert unit(booted, UNIT)["ActiveState"] == "active", "otherwise the kubelet could not start"
    assert record(booted)["reason"] == "InstanceCreateFailed" and record(booted)["plugin_kept_off"]
    assert label(booted) == "paused-for-mig-change"
    wait_for("the devices of the old layout to go", lambda: not devices(booted) and booted.plugin_pod(NODE) is None)

    booted.emulator(NODE, "fault", "clear")
    booted.sandbox("node", "reboot", NODE)
    assert label(booted) == "true" and not record(booted)["plugin_kept_off"]
    wait_for("the devices to be as before", lambda: published_as(booted, published))
    assert "gpufleet.dra/paused" not in booted.get("node", NODE)["metadata"]["annotations"]


@pytest.mark.slow
def test_with_pause_and_no_api_server_the_kubelet_is_held_back(booted: Cluster) -> None:
    before = boot_id(booted)
    mig(booted, mig_boot_on_failure="pause", mig_boot_wait=3, mig_boot_api_server="https://192.0.2.1:6443")
    booted.emulator(NODE, "fault", "add", "--symbol", CREATE, "--times", "1000", "--code", "UNKNOWN")
    booted.ssh(NODE, "systemctl", "reboot", check=False)
    wait_for("the unit to have failed", lambda: boot_id(booted) not in ("", before) and unit(booted, UNIT).get("ActiveState") == "failed")
    assert unit(booted, "kubelet.service")["ActiveState"] == "inactive"
    assert "BootPauseFailed" in booted.ssh(NODE, "journalctl", "--boot", f"--unit={UNIT}", "--output=cat", "--no-pager")


@pytest.mark.slow
def test_a_run_of_the_role_lets_the_plugin_back(booted: Cluster) -> None:
    published = settled(booted)
    mig(booted, mig_boot_on_failure="pause")
    booted.emulator(NODE, "fault", "add", "--symbol", CREATE, "--times", "1000", "--code", "UNKNOWN")
    booted.sandbox("node", "reboot", NODE)
    assert label(booted) == "paused-for-mig-change"
    failed = booted.playbook("mig", "--limit", NODE, check=False)
    assert failed.status != 0 and label(booted) == "paused-for-mig-change", "a run that fails, too, does not let it back"
    booted.emulator(NODE, "fault", "clear")
    mig(booted)
    assert label(booted) == "true" and published_as(booted, published), "the role waits for the plugin"


@pytest.mark.slow
def test_the_role_installs_changes_and_removes_the_service_without_the_kubelet(booted: Cluster) -> None:
    running = unit(booted, "kubelet.service")
    mig(booted)
    assert mig(booted).changed == 0
    shown = mig(booted, "--check", "--diff", mig_boot_service=False)
    assert shown.changed > 0 and unit(booted, UNIT)["ActiveState"] == "active"

    assert mig(booted, mig_boot_service=False).changed > 0
    assert booted.ssh(NODE, "ls", "/etc/systemd/system/kubelet.service.requires", "/etc/gpufleet", check=False).count("mig") == 0
    assert mig(booted, mig_boot_service=False).changed == 0

    predicted = mig(booted, "--check", "--diff")
    assert predicted.changed > 0 and '"layouts"' in predicted.output
    assert booted.ssh(NODE, "systemctl", "is-enabled", UNIT, check=False).strip() != "enabled"
    assert mig(booted).changed == predicted.changed + 1, "enabling a unit that is not there yet cannot be predicted"
    assert mig(booted).changed == 0

    paused = mig(booted, "--diff", mig_boot_on_failure="pause")
    assert paused.changed == 1 and "kubelet-client-current.pem" in paused.output and "PRIVATE KEY" not in paused.output
    assert unit(booted, "kubelet.service") == running
    refused = booted.ssh(NODE, "systemctl", "stop", UNIT, check=False)
    assert "refused" in refused and unit(booted, "kubelet.service") == running


@pytest.mark.slow
def test_what_cannot_be_had_is_refused_before_anything_changes(cluster: Cluster) -> None:
    cluster.emulator(NODE, "mark")
    for variables, reason in (
        ({"mig_boot_service": True, "mig_driver_root": "/run/nvidia/driver"}, "BootServiceNeedsHostDriver"),
        ({"mig_boot_on_failure": "pause", "mig_boot_kubeconfig": "/nowhere"}, "KubeletCredentialsUnusable"),
    ):
        done = cluster.playbook("mig", "--limit", NODE, "-e", json.dumps(variables), check=False)
        assert done.status != 0 and f"[{reason}]" in done.output and done.recap[NODE]["changed"] == 0, done.output
    assert cluster.emulator(NODE, "log", "--since-marker", "--mutating") == ""
