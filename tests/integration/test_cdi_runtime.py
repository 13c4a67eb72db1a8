# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Role cdi_runtime on a systemd host with the real containerd: drop-ins, restarts, consent of real pods, the way back."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import BIN, Cluster, Done

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


def test_nodes_of_the_cluster_need_nothing(cluster: Cluster, tmp_path: Path) -> None:
    done = role(cluster, tmp_path, "all")
    assert done.changed == 0 and len(done.recap) > 1
    assert facts(cluster, "h100-1")["pods"], "the plugin's pod runs there"


def test_a_restart_under_pods_needs_consent_and_leaves_them_running(cluster: Cluster, tmp_path: Path) -> None:
    node = "h100-1"
    kept = read(cluster, MAIN, node)
    assert kept is not None
    changed = kept.replace("version = 3\n", 'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n', 1)
    write(cluster, MAIN, changed.replace('cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]', "enable_cdi = false"), node)
    try:
        cluster.ssh(node, "systemctl restart containerd")
        old = pid(cluster, node)
        pods = facts(cluster, node)["pods"]
        refused = role(cluster, tmp_path, node, check=False)
        assert refused.status != 0 and "[CdiRestartNeedsConsent]" in refused.output and pods[0] in refused.output
        assert read(cluster, DROP_IN, node) is None and pid(cluster, node) == old
        shims = cluster.ssh(node, "pgrep -f containerd-shim-runc-v2").split()
        role(cluster, tmp_path, node, cdi_runtime_restart_ok=True)
        assert pid(cluster, node) != old and facts(cluster, node)["running"]["enabled"]
        assert facts(cluster, node)["pods"] == pods and set(shims) <= set(cluster.ssh(node, "pgrep -f containerd-shim-runc-v2").split())
        assert role(cluster, tmp_path, node).changed == 0
    finally:
        write(cluster, MAIN, kept, node)
        cluster.ssh(node, "rm -rf /etc/containerd/conf.d; systemctl restart containerd")
    assert facts(cluster, node)["right"]
