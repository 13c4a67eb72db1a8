# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Role cdi_runtime on a systemd host with the real containerd: drop-ins, restarts, consent of real pods, the way back."""
from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import BIN, Cluster, Done, ready, wait_for

from sandbox.artifacts.rootfs import machine_mirrors

NAME = "cdi-test"
HOST = "cdi1"
MAIN = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/zz-gpufleet-dra-cdi.toml"
OFF = """version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = false
  max_container_log_line_size = 4711
"""

Run = Callable[..., Done]


def role(cluster: Cluster, folder: Path, host: str, *arguments: str, check: bool = True, **variables: Any) -> Done:
    """Run the role on one host."""
    play = {"hosts": host, "gather_facts": False, "roles": [{"role": "gpufleet.dra.cdi_runtime", "vars": variables}]}
    path = folder / "play.yml"
    path.write_text(yaml.safe_dump([play]))
    return cluster.run([BIN / "ansible-playbook", "-i", "inventories/sandbox", path, *arguments], check)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A host without Kubernetes, whose containerd has no configuration and does not run."""
    plain = Cluster(NAME)
    spec = tmp_path_factory.mktemp("spec") / "fleet.yml"
    spec.write_text(yaml.safe_dump({"kubernetes": False, "nodes": [{"name": HOST}]}))
    plain.sandbox("down")
    try:
        plain.sandbox("up", "--spec", str(spec))
        yield plain
    finally:
        plain.sandbox("down")


@pytest.fixture
def host(plain: Cluster, tmp_path: Path) -> Iterator[Callable[..., Done]]:
    """The host with CDI turned off in a running containerd: host(*arguments, check=True, **variables) runs the role."""
    write(plain, MAIN, OFF)
    plain.ssh(HOST, "rm -rf /etc/containerd/conf.d && systemctl restart containerd")

    def run(*arguments: str, check: bool = True, **variables: Any) -> Done:
        return role(plain, tmp_path, HOST, *arguments, check=check, **variables)

    yield run
    plain.ssh(HOST, "systemctl stop containerd; rm -rf /etc/containerd")


def write(plain: Cluster, path: str, text: str, host: str = HOST) -> None:
    plain.ssh(host, f"mkdir -p {Path(path).parent}")
    result = plain.module(host, "ansible.builtin.copy", {"content": text, "dest": path, "mode": "0644"})
    assert "checksum" in result, result


def read(plain: Cluster, path: str, host: str = HOST) -> str | None:
    text = plain.ssh(host, f"cat {path} 2>/dev/null || echo -n MISSING")
    return None if text == "MISSING" else text


def facts(plain: Cluster, host: str = HOST, **arguments: Any) -> dict[str, Any]:
    result = plain.module(host, "gpufleet.dra.cdi_runtime_info", arguments or None, become=True)
    assert "cdi" in result, result
    return result["cdi"]


def pid(plain: Cluster, host: str = HOST) -> str:
    return plain.ssh(host, "systemctl show --property=MainPID --value containerd").strip()


def test_a_containerd_2_without_configuration_is_left_alone(plain: Cluster, tmp_path: Path) -> None:
    found = facts(plain)
    assert found["runtime"]["version"] == "2.2.9" and not found["runtime"]["active"] and found["effective"]["enabled"]
    assert role(plain, tmp_path, HOST).changed == 0
    assert read(plain, MAIN) is None and read(plain, DROP_IN) is None


def test_cdi_is_turned_on_by_a_drop_in_and_one_restart(plain: Cluster, host: Run) -> None:
    before = facts(plain)
    assert before["running"] == {"enabled": False, "spec_dirs": ["/etc/cdi", "/var/run/cdi"], "source": "journal"}
    predicted = host("--check")
    old = pid(plain)
    assert predicted.changed > 0 and read(plain, DROP_IN) is None
    done = host()
    assert done.changed == predicted.changed
    assert pid(plain) != old and read(plain, MAIN) == OFF
    after = facts(plain)
    assert after["right"] and after["running"]["enabled"] and after["files"] == [] and not after["restart"]["needed"]
    assert "max_container_log_line_size = 4711" in plain.ssh(HOST, f"containerd --config {MAIN} config dump")
    old = pid(plain)
    again = host()
    assert again.changed == 0 and pid(plain) == old
    # the look at the runtime is the one task that runs something on the host; argument specs and two conditions are the others
    assert again.recap[HOST]["ok"] == 4


@pytest.mark.slow
def test_files_that_are_newer_than_a_daemon_that_serves_cdi_need_no_restart(plain: Cluster, host: Run) -> None:
    host()
    old = pid(plain)
    plain.ssh(HOST, f"touch {MAIN}")
    assert facts(plain)["newer_files"] == [MAIN] and facts(plain)["right"]
    assert host().changed == 0 and pid(plain) == old


@pytest.mark.slow
def test_a_daemon_that_was_started_before_the_files_were_right_is_restarted(plain: Cluster, host: Run) -> None:
    write(plain, MAIN, OFF.replace("false", "true"))
    assert facts(plain)["effective"]["enabled"] and not facts(plain)["right"]
    old = pid(plain)
    assert host().changed == 1 and pid(plain) != old
    assert facts(plain)["right"] and host().changed == 0


@pytest.mark.slow
def test_without_an_import_the_line_is_named_and_nothing_written(plain: Cluster, host: Run) -> None:
    write(plain, MAIN, OFF.replace('imports = ["/etc/containerd/conf.d/*.toml"]\n', ""))
    done = host(check=False)
    assert done.status != 0 and "[CdiImportMissing]" in done.output and "/etc/containerd/conf.d/*.toml" in done.output
    assert read(plain, DROP_IN) is None


@pytest.mark.slow
def test_a_broken_configuration_is_refused_in_containerds_words(plain: Cluster, host: Run) -> None:
    write(plain, MAIN, OFF.replace("4711", '"many"'))
    done = host(check=False)
    assert done.status != 0 and "CdiConfigBroken" in done.output
    write(plain, MAIN, "[")
    assert "CdiConfigBroken" in host(check=False).output


def test_a_runtime_that_does_not_come_back_gets_its_files_back(plain: Cluster, host: Run) -> None:
    write(plain, "/etc/systemd/system/containerd.service.d/test.conf", f"[Service]\nExecStartPre=/usr/bin/test ! -e {DROP_IN}\n")
    plain.ssh(HOST, "systemctl daemon-reload")
    try:
        done = host(check=False)
        assert done.status != 0 and "[CdiRuntimeNotStarted]" in done.output
        assert read(plain, DROP_IN) is None and plain.ssh(HOST, "systemctl is-active containerd").strip() == "active"
    finally:
        plain.ssh(HOST, "rm -r /etc/systemd/system/containerd.service.d; systemctl daemon-reload")


@pytest.mark.slow
def test_what_was_written_is_taken_away_again(plain: Cluster, host: Run) -> None:
    host()
    assert read(plain, DROP_IN) is not None
    host(cdi_runtime_state="absent")
    assert read(plain, DROP_IN) is None and read(plain, MAIN) == OFF and not facts(plain)["running"]["enabled"]
    assert host(cdi_runtime_state="absent").changed == 0


POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "runs-on", "namespace": "default"},
    "spec": {
        "nodeName": "h100-1", "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "sandbox.local/busybox:1", "imagePullPolicy": "Never", "command": ["sleep", "3600"]}],
    },
}


def test_nodes_of_the_cluster_need_nothing(sandbox: Cluster, tmp_path: Path) -> None:
    done = role(sandbox, tmp_path, "h100-1")
    assert done.changed == 0 and done.recap["h100-1"]["ok"] == 4


def test_a_restart_under_pods_needs_consent_and_leaves_them_running(sandbox: Cluster, tmp_path: Path) -> None:
    node = "h100-1"
    kept = read(sandbox, MAIN, node)
    assert kept is not None
    with sandbox.workload(POD):
        wait_for("the pod to run", lambda: ready(sandbox.get("pod", "runs-on")))
        container = sandbox.get("pod", "runs-on")["status"]["containerStatuses"][0]["containerID"]
        changed = kept.replace("version = 3\n", 'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n', 1)
        write(sandbox, MAIN, changed.replace('cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]', "enable_cdi = false"), node)
        try:
            sandbox.ssh(node, "systemctl restart containerd")
            old = pid(sandbox, node)
            refused = role(sandbox, tmp_path, node, check=False)
            assert refused.status != 0 and "[CdiRestartNeedsConsent]" in refused.output and "default/runs-on" in refused.output
            assert read(sandbox, DROP_IN, node) is None and pid(sandbox, node) == old
            role(sandbox, tmp_path, node, cdi_runtime_restart_ok=True)
            assert pid(sandbox, node) != old and facts(sandbox, node)["running"]["enabled"]
            assert role(sandbox, tmp_path, node).changed == 0
            # the kubelet would have made another container, had the restart ended this one
            sandbox.kubectl("exec", "runs-on", "--", "true")
            status = sandbox.get("pod", "runs-on")["status"]["containerStatuses"][0]
            assert (status["containerID"], status["restartCount"]) == (container, 0)
        finally:
            write(sandbox, MAIN, kept, node)
            sandbox.ssh(node, "rm -rf /etc/containerd/conf.d; systemctl restart containerd")
    assert facts(sandbox, node)["right"]


@pytest.fixture(scope="module")
def old_containerd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian 13's containerd, a 1.7."""
    folder = tmp_path_factory.mktemp("containerd")
    lines = machine_mirrors("trixie")
    if not lines:
        pytest.skip("this machine's apt knows no Debian archive")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "sources.list").write_text("".join(line.replace("deb ", f"deb [signed-by={keyring}] ", 1) + "\n" for line in lines))
    (folder / "lists").mkdir()
    options = ["-q", "-o", f"Dir::Etc::sourcelist={folder}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null"]
    options += ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=root"]
    for command in (["update"], ["download", "containerd"]):
        subprocess.run(["apt-get", *options, *command], cwd=folder, check=True, capture_output=True, timeout=300)
    subprocess.run(["dpkg-deb", "-x", *folder.glob("containerd_*.deb"), folder / "root"], check=True)
    return folder / "root/usr/bin/containerd"


@pytest.mark.slow
def test_containerd_1_7_keeps_all_but_cdi(plain: Cluster, host: Run, old_containerd: Path) -> None:
    program = "/usr/local/bin/old/containerd"
    plain.ssh(HOST, "mkdir -p /usr/local/bin/old")
    plain.module(HOST, "ansible.builtin.copy", {"src": str(old_containerd), "dest": program, "mode": "0755"})
    write(plain, "/etc/systemd/system/containerd.service.d/old.conf", f"[Service]\nExecStart=\nExecStart={program} --config {MAIN}\n")
    section = '[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "sandbox.local/pause:1"\n'
    main = f'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\ndisabled_plugins = ["io.containerd.internal.v1.opt"]\n{section}'
    write(plain, MAIN, main)
    plain.ssh(HOST, "systemctl daemon-reload; systemctl restart containerd")
    try:
        before = facts(plain)
        assert before["runtime"]["version"].startswith("1.7.") and not before["running"]["enabled"] and before["running"]["source"] == "journal"
        host()
        after = facts(plain)
        assert after["right"] and after["running"] == {"enabled": True, "spec_dirs": ["/etc/cdi", "/var/run/cdi"], "source": "journal"}
        assert 'sandbox_image = "sandbox.local/pause:1"' in plain.ssh(HOST, f"{program} --config {MAIN} config dump")
        assert host().changed == 0
        old = pid(plain)
        write(plain, MAIN, main.replace("pause:1", "pause:2"))
        # the copy of the section is renewed; CDI was on, so there is no restart
        assert host().changed == 1 and pid(plain) == old
        assert 'sandbox_image = "sandbox.local/pause:2"' in plain.ssh(HOST, f"{program} --config {MAIN} config dump")
    finally:
        plain.ssh(HOST, "rm -r /etc/systemd/system/containerd.service.d; systemctl daemon-reload; systemctl stop containerd")
