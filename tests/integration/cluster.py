# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A running sandbox as tests use it: kubectl, helm, SSH, the emulator's control tool, playbooks and single modules."""
from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sandbox.artifacts import cache_folder
from sandbox.environment import environment

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
NAMESPACE = "gpu-operator"
PLUGIN = "app=nvidia-dra-driver-kubelet-plugin"


@dataclass(frozen=True)
class Done:
    """A finished command."""

    status: int
    output: str

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """Return Ansible's play recap: {host: {ok, changed, unreachable, failed, ...}}."""
        rows = re.findall(r"^(\S+)\s+: ((?:\w+=\d+\s*)+)$", self.output, re.MULTILINE)
        return {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", fields)} for host, fields in rows}

    @property
    def changed(self) -> int:
        """Return the number of changed tasks over all hosts."""
        assert self.recap, self.output
        return sum(row["changed"] for row in self.recap.values())


class Cluster:
    """One sandbox by name. Every method raises AssertionError with the output when its command fails, unless ``check`` is false."""

    def __init__(self, name: str, inventory: str | Path = "inventories/sandbox") -> None:
        self.name = name
        self.inventory = inventory
        self.environment = {**environment(cache_folder(), name), "ANSIBLE_NOCOLOR": "1"}
        self.environment.pop("PYTHONPATH", None)

    def run(self, command: Sequence[str | Path], check: bool = True, text: str | None = None, extra: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [str(part) for part in command], cwd=ROOT, env={**self.environment, **(extra or {})}, input=text, capture_output=True, text=True, timeout=900,
            check=False, stdin=subprocess.DEVNULL if text is None else None,
        )
        output = done.stdout + done.stderr
        assert not check or done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{output}"
        return Done(done.returncode, output if not check else done.stdout)

    def sandbox(self, *arguments: str, check: bool = True) -> str:
        return self.run([sys.executable, "-m", "sandbox", "--name", self.name, *arguments], check).output

    @cached_property
    def _variables(self) -> dict[str, Any]:
        return json.loads(self.sandbox("inventory", "--list"))["sandbox_hosts"]["vars"]

    def _variable(self, name: str) -> Any:
        return self._variables[name]

    @property
    def kubeconfig(self) -> str:
        return self._variable("dra_k8s_auth")["kubeconfig"]

    @property
    def report_dir(self) -> Path:
        return Path(self._variable("sandbox_report_dir"))

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True) -> str:
        return self.run([Path(self._variable("sandbox_bin_dir")) / "kubectl", "--kubeconfig", self.kubeconfig, *arguments], check, text).output

    def get(self, *arguments: str) -> Any:
        """Return ``kubectl get ... -o json``."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, *documents: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))

    def helm(self, *arguments: str, check: bool = True) -> str:
        return self.run([Path(self._variable("sandbox_bin_dir")) / "helm", "--kubeconfig", self.kubeconfig, *arguments], check).output

    def ssh(self, node: str, *command: str, check: bool = True) -> str:
        return self.sandbox("ssh", node, *command, check=check)

    def emulator(self, node: str, *arguments: str, check: bool = True) -> str:
        return self.sandbox("emulator", node, *arguments, check=check)

    def playbook(self, name: str, *arguments: str, check: bool = True, extra: dict[str, str] | None = None) -> Done:
        command = [BIN / "ansible-playbook", "-i", self.inventory, f"playbooks/{name}.yml", *arguments]
        return self.run(command, check, extra=extra)

    def module(self, host: str, module: str, arguments: dict[str, Any] | None = None, become: bool = False) -> dict[str, Any]:
        """Return the result of one module run through Ansible on ``host``, failed or not. On localhost the cluster's kubeconfig is given."""
        command: list[str | Path] = [BIN / "ansible", host, "-i", self.inventory, "-m", module]
        command += ["-a", json.dumps(arguments)] if arguments else []
        done = self.run(command + (["--become"] if become else []), check=False, extra={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
        _, separator, result = done.output.partition("=> ")
        assert separator, done.output
        return json.JSONDecoder().raw_decode(result)[0]

    def nvml(self, node: str) -> dict[str, Any]:
        """Return the NVML facts document of a node, by the module."""
        result = self.module(node, "gpufleet.dra.nvml_info", become=True)
        assert "nvml" in result, result
        return result["nvml"]

    def slices(self, node: str | None = None) -> list[dict[str, Any]]:
        """Return the raw ResourceSlices of NVIDIA's driver, of one node or of all."""
        items = self.get("resourceslices")["items"]
        return [item for item in items if item["spec"]["driver"] == "gpu.nvidia.com" and node in (None, item["spec"].get("nodeName"))]

    def plugin_pod(self, node: str) -> dict[str, Any] | None:
        items = self.get("pods", "-n", NAMESPACE, "-l", PLUGIN, "--field-selector", f"spec.nodeName={node}")["items"]
        alive = [item for item in items if "deletionTimestamp" not in item["metadata"]]
        return alive[0] if alive else None

    def restart_plugin(self, *nodes: str) -> None:
        """Delete the plugin pods of the nodes and wait until new ones are ready."""
        old = {node: self.plugin_pod(node) for node in nodes}
        for pod in old.values():
            if pod is not None:
                self.kubectl("delete", "pod", "-n", NAMESPACE, pod["metadata"]["name"], "--wait=true")
        for node in nodes:
            before = old[node]

            def renewed(node: str = node, before: dict[str, Any] | None = before) -> bool:
                pod = self.plugin_pod(node)
                return pod is not None and (before is None or pod["metadata"]["uid"] != before["metadata"]["uid"]) and ready(pod)

            wait_for(f"a new plugin pod on {node}", renewed)

    @contextmanager
    def workload(self, *documents: dict[str, Any]) -> Iterator[None]:
        """Apply objects for the time of a test; delete them and wait until they are gone."""
        self.apply(*documents)
        try:
            yield
        finally:
            for document in reversed(documents):
                namespace = document["metadata"].get("namespace", "default")
                self.kubectl("delete", document["kind"].lower(), document["metadata"]["name"], "-n", namespace, "--ignore-not-found", "--timeout=60s")


def ready(pod: dict[str, Any]) -> bool:
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions", []))


def wait_for(what: str, condition: Callable[[], Any], timeout_s: float = 90) -> Any:
    """Return the first true value of ``condition``; fail with ``what`` after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {timeout_s:.0f} s for {what}"
        time.sleep(0.5)
