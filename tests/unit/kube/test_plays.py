# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The action dra_verify and the cluster modules as a play runs them, against the API server in a thread."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
SLICE = ROOT / "tests" / "fixtures" / "slices" / "a100-node.json"
ANSIBLE_PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MACHINE_ID = "0123456789abcdef0123456789abcdef"
GPU = {
    "uuid": "GPU-22222222-0000-4000-8000-000000000000", "index": 0, "minor": 3, "pci_bus_id": "00000000:65:00.0",
    "pci_device_id": "0x20B510DE", "pci_subsystem_id": "0x153310DE", "product": "NVIDIA A100 80GB PCIe", "brand": 14, "architecture": 7,
    "architecture_name": "Ampere", "cuda_compute_capability": "8.0", "memory_bytes": 81920 * 2**20, "memory_mib": 81920,
    "addressing_mode": None, "processes": [],
    "mig": {"capable": True, "current": False, "pending": False, "reset_free": False, "profiles": [], "instances": []},
}  # fmt: skip
NVML = {"driver_version": "595.58.03", "cuda_driver_version": 13020, "gpus": [GPU]}
WHOLE_GPU = {
    "name": "gpu-3",
    "attributes": {
        "type": {"string": "gpu"}, "uuid": {"string": GPU["uuid"]}, "productName": {"string": "NVIDIA A100 80GB PCIe"},
        "brand": {"string": "Nvidia"}, "architecture": {"string": "Ampere"}, "cudaComputeCapability": {"version": "8.0.0"},
        "driverVersion": {"version": "595.58.3"}, "cudaDriverVersion": {"version": "13.2.0"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:65:00.0"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}  # fmt: skip


class Play:
    """A play over three hosts without a connection; ``run`` gives ansible-playbook's exit status and all that it printed."""

    def __init__(self, server: Any, folder: Path, not_found: Any) -> None:
        self.folder = folder
        self.report = folder / "report"
        self.objects: dict[str, list[dict[str, Any]]] = {NODES: [], PODS: [], SLICES: []}
        self.hostvars: dict[str, dict[str, Any]] = {}
        self.options: dict[str, Any] = {"timeout": 0, "report_dir": str(self.report)}
        self.tasks: list[dict[str, Any]] = []
        self.auth = server.auth
        listed = self.objects
        server.answer = lambda _method, path, _query, _body: (200, {"items": listed[path], "metadata": {}}) if path in listed else not_found
        for name in ("n1", "n2"):
            self._add(name)
        self.hostvars["n2"]["dra_node_name"] = "{{ inventory_hostname }}-node"

    def _add(self, name: str) -> None:
        node = name if name == "n1" else f"{name}-node"
        raw = json.loads(SLICE.read_text())
        raw["metadata"]["name"] = f"slice-{node}"
        raw["spec"].update(nodeName=node, devices=[WHOLE_GPU])
        raw["spec"]["pool"]["name"] = node
        pod = {"metadata": {"name": f"plugin-{node}", "namespace": "gpu-operator", "uid": node}, "spec": {"nodeName": node}}
        self.objects[SLICES].append(raw)
        self.objects[PODS].append(dict(pod, status={"conditions": [{"type": "Ready", "status": "True"}]}))
        self.objects[NODES].append({"metadata": {"name": node}, "status": {"nodeInfo": {"machineID": MACHINE_ID}}})
        self.hostvars[name] = {"dra_verify_nvml": {"nvml": NVML, "changed": False}, "dra_verify_machine_id": f"{MACHINE_ID}\n"}

    def run(self, *arguments: str) -> tuple[int, str]:
        inventory = self.folder / "inventory.yml"
        hosts = {name: dict(values, ansible_connection="local") for name, values in self.hostvars.items()}
        inventory.write_text(yaml.safe_dump({"fleet": {"hosts": hosts}}))
        verify = {"name": "Verify", "gpufleet.dra.dra_verify": self.options, "run_once": True}
        play = {
            "hosts": "fleet",
            "gather_facts": False,
            "module_defaults": {"group/gpufleet.dra.k8s": self.auth},
            "vars": {"ansible_python_interpreter": sys.executable},
            "tasks": [*self.tasks, verify],
        }
        playbook = self.folder / "play.yml"
        playbook.write_text(yaml.safe_dump([play]))
        environment = dict(os.environ, ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".build" / "collections"), TMPDIR=str(self.folder), NO_COLOR="1")
        done = subprocess.run(
            [str(ANSIBLE_PLAYBOOK), "-i", str(inventory), str(playbook), *arguments],
            cwd="/", env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        output = done.stdout + done.stderr
        assert "Traceback" not in output
        assert "secret-token" not in output
        return done.returncode, output

    def document(self) -> dict[str, Any]:
        """The verdict.json that was written."""
        return json.loads((self.report / "verdict.json").read_text())


@pytest.fixture
def play(server: Any, tmp_path: Path, failure: Any) -> Play:
    return Play(server, tmp_path, failure(404))


def test_right(play: Play) -> None:
    play.options["expectations"] = [{"name": "two whole GPUs", "query": "length(gpus[?layout=='MIG off'])", "equals": 2}]
    code, output = play.run("-v")
    assert code == 0, output
    document = play.document()
    assert (document["verdict"], document["counts"]["gpus_right"], document["findings"]) == ("right", 2, [])
    assert {row["node"] for row in document["gpus"]} == {"n1", "n2-node"}
    assert (play.report / "junit.xml").read_text().startswith("<?xml")
    assert "2 of 2 GPUs on 2 nodes published exactly as NVML reports" in output


def test_wrong_fails_with_a_sentence_per_error(play: Play) -> None:
    play.objects[SLICES][1]["spec"]["devices"] = []
    play.options["expectations"] = [{"name": "no errors", "query": "counts.errors", "equals": 0}]
    code, output = play.run()
    assert code == 2
    assert "device gpu-3 (NVIDIA A100 80GB PCIe) should be published for this node but is not in pool n2-node" in output
    assert "[DeviceMissing]" in output
    assert "no errors: query counts.errors gives 1, expected 0" in output
    assert [item["reason"] for item in play.document()["findings"]] == ["DeviceMissing", "ExpectationFailed"]


def test_waits_while_the_driver_may_put_it_right(play: Play, server: Any) -> None:
    devices = play.objects[SLICES][1]["spec"]["devices"]
    play.objects[SLICES][1]["spec"]["devices"] = []
    seen = []

    def answer(_method: str, path: str, _query: dict[str, str], _body: Any) -> tuple[int, dict[str, Any]]:
        if path == SLICES:
            seen.append(path)
            if len(seen) == 3:
                play.objects[SLICES][1]["spec"]["devices"] = devices
        return 200, {"items": play.objects[path], "metadata": {}}

    server.answer = answer
    play.options["timeout"] = 60
    code, output = play.run()
    assert (code, len(seen)) == (0, 3), output


def test_hosts_that_cannot_be_judged_are_named(play: Play) -> None:
    play.hostvars["n3"] = {}
    play.hostvars["n4"] = {"dra_verify_nvml": {"failed": True, "msg": "n4: the driver is not loaded", "changed": False}}
    play.tasks = [{"name": "Fail early", "ansible.builtin.fail": {"msg": "broken"}, "when": "inventory_hostname == 'n1'"}]
    code, output = play.run("--limit", "n1,n2,n4")
    assert code == 2, output
    findings = {item["object"]: (item["reason"], item["cause"]) for item in play.document()["findings"]}
    assert findings["n1"] == ("HostNotJudged", "not judged, it failed earlier in this play or cannot be reached")
    assert findings["n3"] == ("HostNotJudged", "not judged, it is not in this play, perhaps because of --limit")
    assert findings["n4"] == ("NvmlFactsMissing", "the GPUs of the host could not be read: n4: the driver is not loaded")
    assert {row["node"]: row["verdict"] for row in play.document()["gpus"]} == {
        "n1": "not judged", "n2-node": "right", "n3": "not judged", "n4": "wrong",
    }  # fmt: skip


@pytest.mark.parametrize(("fail_on", "code"), [("warning", 2), ("never", 0)])
def test_fail_on(play: Play, fail_on: str, code: int) -> None:
    play.options.update(hosts=["n1", "ghost"], fail_on=fail_on)
    if fail_on == "never":
        play.objects[SLICES].clear()
    found, output = play.run()
    assert found == code, output
    assert "ghost: not judged, it is not in the inventory" in output
    assert play.document()["verdict"] == ("wrong" if fail_on == "never" else "right")


def test_check_mode_writes_no_report(play: Play) -> None:
    code, output = play.run("--check")
    assert code == 0, output
    assert not play.report.exists()


def test_report_that_cannot_be_written(play: Play) -> None:
    play.report.write_text("a file, not a folder")
    code, output = play.run()
    assert code == 2
    assert "[ReportNotWritten]" in output


def test_refused_credentials(play: Play, server: Any, failure: Any) -> None:
    server.version = failure(401, "Unauthorized")
    code, output = play.run()
    assert code == 2
    assert "[ApiUnauthorized]" in output
    assert not play.report.exists()


def test_modules_share_the_defaults_of_the_group(play: Play) -> None:
    """resource_slice_info and dra_node_pause run as real modules; neither prints a secret."""
    read = {"name": "Read", "gpufleet.dra.resource_slice_info": {"pool": "n1", "query": "devices[].name"}, "register": "read"}
    show = {"name": "Show", "ansible.builtin.debug": {"msg": "{{ read.pools[0].complete }} {{ read.result }}"}}
    refuse = {"name": "Pause", "gpufleet.dra.dra_node_pause": {"name": "ghost"}, "run_once": True}
    play.tasks = [dict(task, run_once=True) for task in (read, show, refuse)]
    code, output = play.run("-vvv")
    assert code == 2
    assert "True ['gpu-3']" in output
    assert "ghost: the cluster has no Node ghost." in output
    assert "[NodeMissing]" in output


@pytest.mark.parametrize("vaulted", [False, True])
def test_a_relative_kubeconfig_is_one_beside_the_playbook(play: Play, tmp_path: Path, vaulted: bool) -> None:
    """As for kubernetes.core's modules; neither the folder in which Ansible was started nor that of a module matters. A vault is opened."""
    (tmp_path / "files").mkdir()
    (tmp_path / "secret").write_text("vault password")
    cluster = {"server": play.auth["host"], "certificate-authority": play.auth["ca_cert"]}
    kubeconfig = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "c", "user": {"token": play.auth["api_key"]}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }  # fmt: skip
    path = tmp_path / "files" / "kubeconfig.yml"
    path.write_text(yaml.safe_dump(kubeconfig))
    if vaulted:
        encrypt = [str(ANSIBLE_PLAYBOOK.with_name("ansible-vault")), "encrypt", "--vault-password-file", str(tmp_path / "secret"), str(path)]
        subprocess.run(encrypt, check=True, capture_output=True)
    play.auth.clear()
    play.auth["kubeconfig"] = "kubeconfig.yml"
    play.tasks = [{"name": "Read", "gpufleet.dra.resource_slice_info": {}, "run_once": True, "delegate_to": "localhost"}]
    code, output = play.run("--vault-password-file", str(tmp_path / "secret"))
    assert code == 0, output
    play.auth["kubeconfig"] = "missing.yml"
    code, output = play.run()
    assert code == 2
    assert "missing.yml: no usable configuration" in output and "[KubeconfigUnusable]" in output
    play.tasks = []
    code, output = play.run()
    assert code == 2
    assert "missing.yml: no usable configuration" in output and "[KubeconfigUnusable]" in output
