# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hosts without booting them: what is prepared for them, their cgroups, and when their Node counts as ready."""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import spec
from sandbox.control_plane.plane import ControlPlane
from sandbox.errors import SandboxError
from sandbox.leftovers import mounts_below
from sandbox.nodes import cgroups, prepare, record, supervisor
from sandbox.nodes import hosts as hosts_module
from sandbox.nodes.hosts import Hosts, node_not_ready
from sandbox.nodes.ssh import SshAccess
from sandbox.state import Addresses, RunState

GPU_NODE = spec.NodeSpec("n1", (spec.GpuGroup("h100-80gb-hbm3", 2), spec.GpuGroup("h200-nvl", 1)))
CPU_NODE = spec.NodeSpec("n2")
FILES = prepare.TEMPLATES.parent / "files"


def new_hosts(cache: Path, name: str = "box", kubernetes: bool = True) -> Hosts:
    state = RunState(cache, name)
    state.create({"kubernetes": kubernetes})
    plane = None
    if kubernetes:
        plane = ControlPlane(state)
        plane.prepare()
    return Hosts(state, plane)


def read(host: record.HostRecord, place: str) -> str:
    return (host.upper / place).read_text()


def test_a_prepared_node_is_itself_and_knows_the_others(tmp_path: Path) -> None:
    hosts = new_hosts(tmp_path)
    first, second = hosts.create([GPU_NODE, CPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    assert read(first, "etc/hostname") == "n1\n"
    assert read(first, "etc/machine-id") != read(second, "etc/machine-id") and len(read(first, "etc/machine-id")) == 33
    assert read(first, "etc/hosts") == f"127.0.0.1 localhost\n{first.address} n1\n{second.address} n2\n"
    assert read(first, "etc/sandbox/gpus") == "--seed=n1\n--gpu=h100-80gb-hbm3:2\n--gpu=h200-nvl:1\n"
    assert not (second.upper / "etc/sandbox/gpus").exists()
    assert "NODE_LABELS=sandbox.gpufleet.dra/pci-10de=true\n" in read(first, "etc/sandbox/kubelet.env")
    assert "NODE_LABELS=\n" in read(second, "etc/sandbox/kubelet.env")


def test_a_host_whose_driver_comes_from_packages_has_none_and_what_an_installation_needs(tmp_path: Path) -> None:
    hosts = new_hosts(tmp_path, kubernetes=False)
    node = spec.parse_node({"name": "n1", "driver": "none", "gpus": [{"model": "h200-nvl"}], "nvswitches": 4, "nouveau": True}, "s")
    (host,) = hosts.create([node], {"debian12": Path("/rootfs")}, Path("/layer"))
    kernel = os.uname().release
    assert json.loads(read(host, "etc/sandbox/hardware.json")) == {
        "nvswitches": 4, "secure_boot": False, "nouveau": True, "driver_from_packages": True,
    }
    hidden = {str(path.relative_to(host.upper)) for path in host.upper.rglob("*") if not path.is_symlink() and path.is_char_device()}
    assert hidden == {
        "usr/bin/nvidia-smi", *(f"usr/lib/x86_64-linux-gnu/{name}.so.{end}" for name in ("libcuda", "libnvidia-ml") for end in ("1", "595.91.07")),
    }
    assert (host.upper / f"usr/lib/modules/{kernel}/build").readlink() == Path(f"/usr/src/linux-headers-{kernel}")
    assert not list(host.upper.rglob("nvidia.ko"))
    assert (host.upper / "usr/local/sbin/modprobe").stat().st_mode & 0o111
    assert (host.upper / "usr/sbin/update-initramfs").exists() and not (host.upper / "usr/bin/dracut").exists()
    assert not (host.upper / "etc/apt").exists()


def test_a_usual_host_has_the_module_file_of_its_driver(tmp_path: Path) -> None:
    (host,) = new_hosts(tmp_path, kubernetes=False).create([GPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    (module,) = host.upper.rglob("nvidia.ko")
    assert b"\0version=595.91.07\0" in module.read_bytes()
    assert not (host.upper / "etc/sandbox/driver-from-packages").exists()


@pytest.mark.parametrize(
    ("system", "place", "line"),
    [
        ("debian13", "etc/apt/sources.list.d/system.sources", "URIs: http://10.91.0.1:8480/system/debian13/\n"),
        ("el9", "etc/yum.repos.d/system.repo", "baseurl=http://10.91.0.1:8480/system/el9/\n"),
        ("sles15", "etc/zypp/repos.d/system.repo", "baseurl=http://10.91.0.1:8480/system/sles15/\n"),
    ],
)
def test_a_host_beside_a_package_server_knows_its_distributions_repository(tmp_path: Path, system: str, place: str, line: str) -> None:
    state = RunState(tmp_path, "box")
    state.create({"kubernetes": False, "packages": True})
    (host,) = Hosts(state, None).create([spec.NodeSpec("n1", system=system)], {system: Path("/rootfs")}, Path("/layer"))
    assert line.replace("10.91.0.1", host.gateway) in read(host, place)
    if place.startswith("etc/apt"):
        assert read(host, "etc/apt/sources.list") == ""


def test_a_machine_id_is_the_same_for_the_same_host_of_the_same_sandbox(tmp_path: Path) -> None:
    ids = {}
    for folder, name in (("a", "box"), ("b", "box"), ("c", "other")):
        (host,) = new_hosts(tmp_path / folder, name).create([CPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
        ids[folder] = read(host, "etc/machine-id")
    assert ids["a"] == ids["b"] != ids["c"]


def test_kubelet_lets_nobody_in_who_is_not_authorized(tmp_path: Path) -> None:
    (host,) = new_hosts(tmp_path).create([GPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    config = yaml.safe_load(read(host, "etc/kubernetes/kubelet.yaml"))
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["address"] == host.address and config["readOnlyPort"] == 0
    for option in ("tlsCertFile", "tlsPrivateKeyFile"):
        assert (host.upper / config[option].lstrip("/")).is_file()
    assert (host.upper / config["authentication"]["x509"]["clientCAFile"].lstrip("/")).is_file()
    assert "insecure" not in read(host, "etc/kubernetes/kubelet.conf")
    assert "-data" not in read(host, "etc/kubernetes/kubelet.conf").replace("certificate-authority-data", "")
    assert (host.upper / "etc/kubernetes/pki/kubelet-client-current.pem").stat().st_mode & 0o777 == 0o600
    json.loads(read(host, "etc/cni/net.d/10-pods.conflist"))


def test_a_host_without_kubernetes_starts_none_of_it(tmp_path: Path) -> None:
    (host,) = new_hosts(tmp_path, kubernetes=False).create([GPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    wanted = {path.name for path in (host.upper / "etc/systemd/system/multi-user.target.wants").iterdir()}
    assert wanted == {"emulated-nvidia-driver.service", "ssh.service"}
    assert not (host.upper / "etc/kubernetes").exists()
    assert host.service_network == ""


def test_every_enabled_unit_of_ours_and_its_program_exist(tmp_path: Path) -> None:
    (host,) = new_hosts(tmp_path).create([GPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    links = [path for path in (host.upper / "etc/systemd/system").rglob("*") if path.is_symlink()]
    ours = [str(link.readlink()) for link in links if str(link.readlink()).startswith("/etc/")]
    assert sorted(Path(unit).name for unit in ours) == [
        "emulated-hardware.service", "emulated-nvidia-driver.service", "kubernetes-node.target", "sandbox-masks.service",
    ]
    for unit in FILES.glob("etc/systemd/system/*"):
        for line in unit.read_text().splitlines():
            key, _, value = line.partition("=")
            if key.startswith("Exec") and value.startswith("/usr/local/lib/"):
                assert (FILES / value.split()[0].lstrip("/")).stat().st_mode & 0o111, f"{unit.name}: {value}"


def test_scripts_of_the_image_are_valid_shell() -> None:
    scripts = [path for path in (FILES / "usr/local/lib/sandbox").iterdir() if path.read_text().startswith("#!/bin/sh")]
    assert len(scripts) == 4
    for script in scripts:
        subprocess.run(["sh", "-n", str(script)], check=True)


def test_a_record_survives_writing_and_reading(tmp_path: Path) -> None:
    (host,) = new_hosts(tmp_path).create([GPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    assert record.load(host.folder) == host


def test_slots_are_used_again_and_names_are_told(tmp_path: Path) -> None:
    hosts = new_hosts(tmp_path, kubernetes=False)
    first, second = hosts.create([spec.NodeSpec("a"), spec.NodeSpec("b")], {"debian12": Path("/rootfs")}, Path("/layer"))
    (first.folder / "node.json").unlink()
    (third,) = hosts.create([spec.NodeSpec("c")], {"debian12": Path("/rootfs")}, Path("/layer"))
    assert (third.slot, second.slot) == (first.slot, 1)
    with pytest.raises(SandboxError, match=r"the sandbox box has no node x; it has c, b\."):
        hosts.get("x")


def test_a_known_host_key_is_replaced_not_added(tmp_path: Path) -> None:
    state = RunState(tmp_path, "box")
    state.create({"kubernetes": False})
    access = SshAccess(state)
    access.ensure_key()
    access.trust(["10.0.0.1", "n1"], "ssh-ed25519 AAAAold")
    access.trust(["10.0.0.2", "n2"], "ssh-ed25519 AAAAtwo")
    access.trust(["10.0.0.1", "n1"], "ssh-ed25519 AAAAnew")
    assert access.known_hosts.read_text().splitlines() == ["10.0.0.2,n2 ssh-ed25519 AAAAtwo", "10.0.0.1,n1 ssh-ed25519 AAAAnew"]
    access.forget(["n2"])
    assert access.known_hosts.read_text() == "10.0.0.1,n1 ssh-ed25519 AAAAnew\n"


def test_openssh_takes_the_keys(tmp_path: Path) -> None:
    state = RunState(tmp_path, "box")
    state.create({"kubernetes": False})
    access = SshAccess(state)
    access.ensure_key()
    derived = subprocess.run(["ssh-keygen", "-y", "-f", access.private_key], check=True, capture_output=True, text=True).stdout
    assert derived.split()[:2] == access.public_key.read_text().split()[:2]


def node(boot_id: str = "now", ready: str = "True", taints: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "spec": {"taints": [{"key": key} for key in taints]},
        "status": {"nodeInfo": {"bootID": boot_id}, "conditions": [{"type": "Ready", "status": ready, "message": "because"}]},
    }


@pytest.mark.parametrize(
    ("found", "boot_id", "reason"),
    [
        (node(), "now", ""),
        (node(taints=("nvidia.com/gpu",)), "now", ""),
        (None, "now", "its kubelet has not registered the Node"),
        (node(boot_id="before"), "now", "its Node still speaks of an earlier boot"),
        (node(boot_id=""), "", "its Node still speaks of an earlier boot"),
        (node(ready="Unknown"), "now", "its Node is not Ready: because"),
        (node(taints=("node.kubernetes.io/not-ready",)), "now", "its Node is still tainted with node.kubernetes.io/not-ready"),
    ],
)
def test_when_a_node_counts_as_ready(found: dict[str, Any] | None, boot_id: str, reason: str) -> None:
    assert node_not_ready(found, boot_id) == reason


def test_two_sandboxes_share_no_address_and_no_link(tmp_path: Path) -> None:
    first, second = RunState(tmp_path, "a"), RunState(tmp_path, "b")
    first.create({})
    second.create({})
    one, two = first.addresses, second.addresses
    for attribute in ("subnet", "gateway", "loopback", "bridge"):
        assert getattr(one, attribute) != getattr(two, attribute)
    assert max(len(Addresses(199).veth(99)), len(Addresses(199).bridge)) <= 15  # IFNAMSIZ without the zero


def test_the_lock_of_a_sandbox_is_held_once(tmp_path: Path) -> None:
    state = RunState(tmp_path, "box")
    with state.locked(), pytest.raises(SandboxError, match="another command is changing the sandbox box now"), state.locked():
        pass


def test_own_cgroups_of_v1_hybrid_and_v2() -> None:
    v1 = "4:memory:/process/x\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/user.slice\n"
    assert cgroups.own_groups(v1) == {"memory": "/process/x", "cpu,cpuacct": "", "systemd": "", "unified": "/user.slice"}
    assert cgroups.own_groups("0::/system.slice/gpufleet-a-n1.scope/supervisor\n") == {"unified": "/system.slice/gpufleet-a-n1.scope/supervisor"}


def test_empty_cpuset_groups_are_filled_from_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)  # no cgroup.controllers there: v1
    group = tmp_path / "cpuset" / "gpufleet-a" / "n1"
    for folder, cpus in ((tmp_path / "cpuset", "0-3\n"), (group.parent, "\n"), (group, "\n")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpuset.cpus").write_text(cpus)
    cgroups.make([group])
    assert (group / "cpuset.cpus").read_text() == "0-3\n"


def test_a_v2_host_gets_all_controllers_of_its_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    scope = tmp_path / "gpufleet-a-n1.scope"
    (scope / "supervisor").mkdir(parents=True)
    (scope / "cgroup.controllers").write_text("memory pids\n")
    monkeypatch.setattr(cgroups, "_own_v2_group", lambda: scope / "supervisor")
    groups = cgroups.v2_groups()
    assert groups == [scope / "host"]
    cgroups.make(groups)
    assert (scope / "host").is_dir()
    assert (scope / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_v2_host_is_a_delegated_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "is_v2", lambda: True)
    hosts = new_hosts(tmp_path)
    (host,) = hosts.create([GPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    assert (host.cgroups, host.scope) == ((), f"gpufleet-box-{hosts.state.key}-n1.scope")
    assert host.groups() == (Path(f"/sys/fs/cgroup/system.slice/{host.scope}"),)
    assert "cgroupDriver: systemd" in read(host, "etc/kubernetes/kubelet.yaml")
    assert "SystemdCgroup = true" in read(host, "etc/containerd/config.toml")
    started: list[list[str]] = []
    run: list[list[str]] = []
    monkeypatch.setattr(hosts_module.processes, "start", lambda command, *_: started.append(command))
    monkeypatch.setattr(hosts_module.subprocess, "run", lambda command, **_: run.append(command))
    monkeypatch.setattr(hosts_module.network, "delete_link", lambda name: None)
    hosts.start(host)
    assert run == [["systemctl", "stop", host.scope]]
    assert started[0][:4] == ["systemd-run", "--scope", "--quiet", "--collect"]
    assert "--property=Delegate=yes" in started[0]
    monkeypatch.setattr(cgroups, "remove", lambda groups, with_parent: groups)
    with pytest.raises(SandboxError, match=rf"the cgroup /sys/fs/cgroup/system\.slice/{host.scope} of n1 is still in use"):
        hosts.clean(host)


def test_sandboxes_of_the_same_name_in_two_caches_share_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for unified in (True, False):
        monkeypatch.setattr(cgroups, "is_v2", lambda unified=unified: unified)
        names = set()
        for folder in ("a", "b"):
            hosts = new_hosts(tmp_path / f"{folder}{unified}", kubernetes=False)
            names.add(hosts.create([CPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))[0].groups())
        assert len(names) == 2


def test_removing_cgroups_reports_what_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_REMOVAL_TIMEOUT_S", 0.1)
    gone, used = tmp_path / "p" / "gone", tmp_path / "p" / "used"
    for group in (gone / "child", used):
        group.mkdir(parents=True)
    (used / "cgroup.procs").write_text("17\n18\n")  # a file keeps a plain folder from being removed, as members do a cgroup
    assert cgroups.remove([gone, used], with_parent=True) == [used]
    assert cgroups.members([used]) == {17, 18}
    assert not gone.exists()


def test_nspawn_gets_no_clock_and_no_settings_of_the_machine(tmp_path: Path) -> None:
    (host,) = new_hosts(tmp_path).create([GPU_NODE], {"debian12": Path("/rootfs")}, Path("/layer"))
    command = supervisor.nspawn_command(host)
    granted = next(argument for argument in command if argument.startswith("--capability="))
    assert "CAP_SYS_TIME" not in granted and "CAP_SYS_MODULE" not in granted
    assert "--link-journal=no" in command and "--register=no" in command
    assert not [argument for argument in command if argument.startswith("--bind=/")and "proc" in argument]


def test_mounts_below_a_folder_also_with_blanks_in_their_names() -> None:
    mounts = "overlay /cache/run/a\\040b/root overlay rw 0 0\ntmpfs /cache/runner tmpfs rw 0 0\nproc /proc proc rw 0 0\n"
    assert mounts_below(Path("/cache/run"), mounts) == ["/cache/run/a b/root"]
