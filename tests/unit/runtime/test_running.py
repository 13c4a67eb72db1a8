# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which runtime it is, what its daemon says, which pods run under it, and when a restart is needed."""
from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime import detect as detection
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.detect import detect
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.document import SPEC_DIRS, Cdi
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.facts import runtime_facts
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.node import Node, Output, Unit
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.running import newer_files, pods, running_cdi
from nodes import FakeNode, bundle, containerd, crio, runtime, unit

DATA = Path(__file__).resolve().parent / "data"
V17, V22 = (1, 7, 24), (2, 2, 9)


def code(node: Node, asked: str = "auto") -> str:
    with pytest.raises(FleetError) as caught:
        detect(node, "node-1", asked)
    return caught.value.finding.code


class TestWhichRuntime:
    """The one that runs, else the one that is enabled, else the one that is installed."""

    def test_none(self, tmp_path: Path) -> None:
        assert code(FakeNode(tmp_path)) == "CdiRuntimeMissing"
        assert code(FakeNode(tmp_path, [unit("containerd.service")]), "crio") == "CdiRuntimeMissing"

    def test_two_that_run(self, tmp_path: Path) -> None:
        node = FakeNode(tmp_path, [unit("containerd.service", containerd(tmp_path, V22)), unit("crio.service", crio(tmp_path))])
        assert code(node) == "CdiRuntimeAmbiguous"
        assert detect(node, "node-1", "crio").name == "crio"

    @pytest.mark.parametrize("other", [{"active": False, "enabled": True}, {"active": False, "enabled": False}])
    def test_the_one_that_runs_is_taken(self, tmp_path: Path, other: dict[str, bool]) -> None:
        node = FakeNode(tmp_path, [unit("containerd.service", containerd(tmp_path, V22), **other), unit("crio.service", crio(tmp_path))])
        assert detect(node, "node-1", "auto").name == "crio"

    def test_version_and_configuration_of_what_runs(self, tmp_path: Path) -> None:
        program = containerd(tmp_path, V22)
        node = FakeNode(tmp_path, [unit("containerd.service", program, pid=12)])
        node.start(12, str(program), "--config=/etc/own.toml")
        found = detect(node, "node-1", "auto")
        assert (found.version, found.config_file, found.pid, found.active) == (V22, "/etc/own.toml", 12, True)

    def test_a_unit_whose_program_is_not_there(self, tmp_path: Path) -> None:
        assert code(FakeNode(tmp_path, [unit("containerd.service", tmp_path / "none")])) == "CdiRuntimeUnreadable"
        assert code(FakeNode(tmp_path, [unit("containerd.service", "/bin/sh")])) == "CdiRuntimeUnreadable"
        assert code(FakeNode(tmp_path, [unit("containerd.service", "")])) == "CdiRuntimeUnreadable"

    @pytest.mark.parametrize(("name", "service", "binary"), [("k3s", "k3s-agent.service", "data/current/bin"), ("rke2", "rke2-server.service", "bin")])
    def test_those_that_bring_their_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, service: str, binary: str) -> None:
        monkeypatch.setitem(detection.DATA_DIRS, name, str(tmp_path))
        (tmp_path / binary).mkdir(parents=True)
        containerd(tmp_path / binary, V22)
        node = FakeNode(tmp_path, [unit(service, "/usr/local/bin/" + name, pid=5)])
        node.start(30, "containerd", "-c", f"{tmp_path}/agent/etc/containerd/config.toml", "-a", "/run/k3s/containerd/containerd.sock")
        found = detect(node, "node-1", "auto")
        assert (found.name, found.unit, found.pid, found.config_file) == (name, service, 30, f"{tmp_path}/agent/etc/containerd/config.toml")


    @pytest.mark.parametrize(("service", "options", "title"), [
        ("k3s.service", ("server", "--data-dir", "{}"), ("k3s server",)), ("rke2-agent.service", ("agent", "--data-dir={}/"), ()),
        ("k3s-agent.service", ("agent", "-d", "$DATA"), ("/usr/local/bin/k3s", "agent", "-d", "{}")),
    ])
    def test_those_with_a_data_folder_elsewhere(self, tmp_path: Path, service: str, options: tuple[str, ...], title: tuple[str, ...]) -> None:
        name = service[:4].rstrip("-.")
        folder = tmp_path / ("data/current/bin" if name == "k3s" else "bin")
        folder.mkdir(parents=True)
        containerd(folder, V22)
        command = ("/usr/local/bin/" + name, *(option.format(tmp_path) for option in options))
        node = FakeNode(tmp_path, [Unit(service, True, True, True, 5, command)])
        if title:
            node.start(5, *(part.format(tmp_path) for part in title))
        node.start(30, "containerd", "-c", f"{tmp_path}/agent/etc/containerd/config.toml")
        found = detect(node, "node-1", "auto")
        assert (found.pid, found.version, found.config_file) == (30, V22, f"{tmp_path}/agent/etc/containerd/config.toml")
        running_cdi(node, found)
        assert node.ran[-1][0] == f"{folder}/crictl"


class TestRunningDaemon:
    """What the daemon itself says counts more than the files."""

    @pytest.mark.parametrize("name", ["containerd-1.7.24-start.log", "containerd-2.1.9-start.log"])
    def test_the_journal_of_a_real_start(self, tmp_path: Path, name: str) -> None:
        text = (DATA / name).read_text()
        node = FakeNode(tmp_path, answers={"journalctl": lambda command: Output(0, "other\n" + text, "")})
        node.started[9] = 1000.5
        found = running_cdi(node, runtime(tmp_path, "containerd", V22, pid=9))
        assert found == Cdi(True, SPEC_DIRS, "journal")
        assert "--since=@999" in node.ran[-1] and "_PID=9" in node.ran[-1]
        off = text.replace("EnableCDI:true", "EnableCDI:false").replace('enableCDI\\":true', 'enableCDI\\":false')
        node.answers["journalctl"] = lambda command: Output(0, off, "")
        assert running_cdi(node, runtime(tmp_path, "containerd", V22, pid=9)) == Cdi(False, SPEC_DIRS, "journal")

    @pytest.mark.parametrize("out", ["", "starting cri plugin", 'starting cri plugin config="{"', "Start cri plugin with config {}"])
    def test_a_journal_that_does_not_tell(self, tmp_path: Path, out: str) -> None:
        node = FakeNode(tmp_path, answers={"journalctl": lambda command: Output(0, out, "")})
        node.started[9] = 1000.5
        assert running_cdi(node, runtime(tmp_path, "containerd", V22, pid=9)) is None

    def test_crictl_is_asked_first(self, tmp_path: Path) -> None:
        shown = {"config": {"enableCDI": False, "cdiSpecDirs": ["/etc/cdi"]}}

        def crictl(command: Sequence[str]) -> Output:
            assert command[1:] == ["--runtime-endpoint", "unix:///run/own.sock", "info"]
            return Output(0, json.dumps(shown), "")

        node = FakeNode(tmp_path, answers={"crictl": crictl})
        node.start(9, "/usr/bin/containerd", "--address", "/run/own.sock")
        assert running_cdi(node, runtime(tmp_path, "containerd", V22, pid=9)) == Cdi(False, ("/etc/cdi",), "crictl info")

    @pytest.mark.parametrize("answer", [Output(1, "", "no"), Output(0, "no json", ""), Output(0, "{}", ""), Output(0, '{"config": null}', "")])
    def test_a_crictl_that_does_not_tell(self, tmp_path: Path, answer: Output) -> None:
        node = FakeNode(tmp_path, answers={"crictl": lambda command: answer, "journalctl": lambda command: Output(1, "", "")})
        node.started[9] = 1000.0
        assert running_cdi(node, runtime(tmp_path, "containerd", V22, pid=9)) is None

    def test_one_that_does_not_run(self, tmp_path: Path) -> None:
        assert running_cdi(FakeNode(tmp_path), runtime(tmp_path, "containerd", V22)) is None

    def test_files_that_are_newer_than_the_daemon(self, tmp_path: Path) -> None:
        node = FakeNode(tmp_path)
        here = tmp_path / "config.toml"
        here.write_text("")
        node.started[9] = time.time() - 60
        found = newer_files(node, runtime(tmp_path, "containerd", V22, pid=9), [str(here), str(tmp_path / "none")])
        assert found == [str(here)]
        node.started[9] = time.time() + 1
        assert newer_files(node, runtime(tmp_path, "containerd", V22, pid=9), [str(here)]) == []

    def test_an_old_time_on_a_new_file_does_not_deceive(self, tmp_path: Path) -> None:
        node = FakeNode(tmp_path)
        node.started[9] = time.time() - 60
        here = tmp_path / "config.toml"
        here.write_text("")
        os.utime(here, (1000, 1000))
        assert newer_files(node, runtime(tmp_path, "containerd", V22, pid=9), [str(here)]) == [str(here)]


def test_the_start_of_a_real_process_is_known() -> None:
    before = time.time()
    process = os.getpid()
    started = Node().started_at(process)
    assert started is not None and started < before and started > before - 24 * 3600
    assert Node().started_at(2**22 + 1) is None


class TestPods:
    """Pods by the processes that watch over their containers."""

    def test_containerd(self, tmp_path: Path) -> None:
        node = FakeNode(tmp_path)
        socket = f"{tmp_path}/run/containerd.sock"
        names = {"io.kubernetes.cri.sandbox-namespace": "ml", "io.kubernetes.cri.sandbox-name": "train"}
        bundle(tmp_path / "run/io.containerd.runtime.v2.task/k8s.io/abc", names)
        node.start(20, "/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "abc", "-address", socket)
        node.start(21, "/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id", "0123456789abcdef", "-address", socket)
        node.start(22, "/opt/containerd-shim-kata-v2", "-namespace", "k8s.io", "-id", "k", "-address", "/run/k3s/containerd/containerd.sock")
        node.start(23, "/usr/bin/containerd")
        assert pods(node, runtime(tmp_path, "containerd", V22)) == ["container 0123456789abc", "ml/train"]
        assert pods(node, runtime(tmp_path, "k3s", V22)) == ["container k"]

    def test_crio(self, tmp_path: Path) -> None:
        node = FakeNode(tmp_path)
        bundle(tmp_path / "b", {"io.kubernetes.pod.namespace": "ml", "io.kubernetes.pod.name": "train"})
        node.start(20, "/usr/bin/conmon", "-b", str(tmp_path / "b"), "-c", "abc")
        node.start(21, "/usr/bin/conmon", "-b", str(tmp_path / "none"), "-c", "def")
        assert pods(node, runtime(tmp_path, "crio", (1, 34, 1))) == ["container def", "ml/train"]


ON: dict[str, object] = {"enableCDI": True, "cdiSpecDirs": list(SPEC_DIRS)}
OFF: dict[str, object] = {"enableCDI": False, "cdiSpecDirs": list(SPEC_DIRS)}
MAIN_OFF = "[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n"


class TestRestart:
    """A restart is needed only where the running daemon does not serve CDI, or may not."""

    def facts(self, tmp_path: Path, running: dict[str, object] | None, main: str, started: float, present: bool = True) -> dict[str, Any]:
        program = containerd(tmp_path, V22)
        (tmp_path / "conf.d").mkdir()
        (tmp_path / "config.toml").write_text(f"version = 3\nimports = ['{tmp_path}/conf.d/*.toml']\n{main}")
        answer = Output(1, "", "") if running is None else Output(0, json.dumps({"config": running}), "")
        answers = {"crictl": lambda command: answer, "journalctl": lambda command: Output(1, "", "")}
        node = FakeNode(tmp_path, [unit("containerd.service", program, pid=9)], answers)
        node.start(9, str(program), "--config", str(tmp_path / "config.toml"))
        node.started[9] = time.time() + started
        return runtime_facts(node, "node-1", "auto", SPEC_DIRS, present)

    def test_all_right(self, tmp_path: Path) -> None:
        facts = self.facts(tmp_path, ON, "", 60)
        assert facts["right"] and facts["restart"] == {"needed": False, "reasons": []} and facts["files"] == []

    def test_newer_files_do_not_matter_where_the_daemon_tells(self, tmp_path: Path) -> None:
        facts = self.facts(tmp_path, ON, "", -60)
        assert facts["right"] and facts["newer_files"] and not facts["restart"]["needed"]

    def test_newer_files_count_where_it_does_not(self, tmp_path: Path) -> None:
        facts = self.facts(tmp_path, None, "", -60)
        assert not facts["right"] and facts["restart"]["needed"] and "config.toml" in facts["restart"]["reasons"][0]

    def test_a_daemon_that_is_older_than_the_right_files(self, tmp_path: Path) -> None:
        facts = self.facts(tmp_path, OFF, "", -60)
        assert not facts["right"] and facts["restart"]["needed"] and facts["files"] == []

    def test_files_to_write(self, tmp_path: Path) -> None:
        facts = self.facts(tmp_path, OFF, MAIN_OFF, 60)
        assert not facts["right"] and facts["restart"]["needed"] and len(facts["files"]) == 1

    def test_removal_of_nothing(self, tmp_path: Path) -> None:
        facts = self.facts(tmp_path, OFF, MAIN_OFF, -60, present=False)
        assert facts["files"] == [] and not facts["restart"]["needed"]


def test_units_as_systemctl_shows_them(tmp_path: Path) -> None:
    shown = (
        "MainPID=0\nExecStart={ path=/usr/bin/containerd ; argv[]=/usr/bin/containerd --config /etc/x.toml ; ignore_errors=no ; pid=0 }\n"
        "Id=containerd.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n\n"
        "MainPID=0\nId=crio.service\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n"
    )

    class Answering(Node):
        def run(self, command: Sequence[str]) -> Output:
            return Output(0, shown, "")

    found = Answering().units(["containerd.service", "crio.service"])
    assert list(found) == ["containerd.service"]
    there = found["containerd.service"]
    assert there.command == ("/usr/bin/containerd", "--config", "/etc/x.toml") and not there.active and not there.enabled


def test_commands_that_cannot_be_run() -> None:
    assert Node().run(["/nowhere/program"]).status == 127
    assert Node().run(["sh", "-c", "echo one >&2; exit 3"]).last_words == "one"
