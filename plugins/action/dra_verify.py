# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action dra_verify: the one place that sees all hosts of a play and the cluster together. Its documentation stands in modules/dra_verify.py."""
from __future__ import annotations

import copy
import datetime
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.report import document, junit, summary
from ansible_collections.gpufleet.dra.plugins.module_utils.dra.verdict import Host, Verdict, judge
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.client import KubeApi
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.query import unmet
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.snapshot import take_snapshot
from ansible_collections.gpufleet.dra.plugins.module_utils.kube.waits import poll
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding
from ansible_collections.gpufleet.dra.plugins.plugin_utils.kubeconfig import local_kubeconfig
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC


def argument_spec() -> dict[str, Any]:
    """Return the options, with kubernetes.core's authentication options among them."""
    spec = copy.deepcopy(AUTH_ARG_SPEC)
    expectation = {
        "name": {"type": "str", "required": True},
        "query": {"type": "str", "required": True},
        "equals": {"type": "raw", "required": True},
    }
    spec.update(
        hosts={"type": "list", "elements": "str"},
        driver={"type": "str", "default": "gpu.nvidia.com"},
        plugin_selector={"type": "str", "default": "app=nvidia-dra-driver-kubelet-plugin"},
        plugin_namespace={"type": "str"},
        timeout={"type": "int", "default": 60},
        report_dir={"type": "path"},
        expectations={"type": "list", "elements": "dict", "default": [], "options": expectation},
        fail_on={"type": "str", "choices": ["error", "warning", "never"], "default": "error"},
    )
    return spec


class ActionModule(ActionBase):
    """Judge all hosts of the play against one snapshot of the cluster."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the verdict; the task fails when it has findings of the severity that fail_on names."""
        result = super().run(tmp, task_vars)
        _validation, params = self.validate_argument_spec(argument_spec())
        params = plain(params)
        try:
            verdict = self._verify(params, task_vars or {})
            result.update(_result(verdict, params["driver"], params["fail_on"]))
            if params["report_dir"] and not self._task.check_mode:
                result["report"] = write_report(params["report_dir"], verdict, params["driver"])
        except FleetError as error:
            result.update(error.as_failure(), failed=True)
        result["changed"] = False
        return result

    def _verify(self, params: dict[str, Any], task_vars: dict[str, Any]) -> Verdict:
        names = params["hosts"] or play_hosts(self._pattern(), task_vars)
        hosts = [read_host(name, task_vars) for name in names]
        with local_kubeconfig(self, params["kubeconfig"]) as kubeconfig:
            api = KubeApi.connect(dict(params, kubeconfig=kubeconfig))

        def look() -> Verdict:
            cluster = take_snapshot(api, params["driver"], params["plugin_selector"], params["plugin_namespace"])
            return judge(hosts, cluster, params["driver"])

        verdict = poll(look, lambda seen: not seen.may_mend_itself, params["timeout"])
        findings = unmet(params["expectations"], document(verdict, params["driver"], now()))
        return verdict._replace(findings=[*verdict.findings, *findings])

    def _pattern(self) -> list[str]:
        """Return the play's hosts as written."""
        parent = self._task._parent
        while not hasattr(parent, "_play"):
            parent = parent._parent
        hosts = parent._play.hosts
        return [hosts] if isinstance(hosts, str) else list(hosts)


def play_hosts(pattern: list[str], task_vars: dict[str, Any]) -> list[str]:
    """Return the hosts of the play, and those that --limit took away where ``pattern`` is made of group and host names only."""
    names = list(task_vars["ansible_play_hosts_all"])
    groups = task_vars["groups"]
    for part in pattern:
        names.extend(groups.get(part) or ([part] if part in groups["all"] else []))
    return list(dict.fromkeys(str(name) for name in names))


def read_host(name: str, task_vars: dict[str, Any]) -> Host:
    """Return what the play has left in the variables of one host."""
    hostvars = task_vars["hostvars"]
    if name not in hostvars:
        return Host(name, name, not_judged="it is not in the inventory")
    own = hostvars[name]
    node = str(own.get("dra_node_name") or name)
    if name not in task_vars["ansible_play_hosts_all"]:
        return Host(name, node, not_judged="it is not in this play, perhaps because of --limit")
    if name not in task_vars["ansible_play_hosts"]:
        return Host(name, node, not_judged="it failed earlier in this play or cannot be reached")
    if "dra_verify_nvml" not in own:
        return Host(name, node, not_judged="the play has not read its GPUs (variable dra_verify_nvml)")
    read = plain(own["dra_verify_nvml"])
    return Host(
        name=name,
        node=node,
        nvml=read.get("nvml"),
        nvml_error=str(read.get("msg", "nvml_info has no result")),
        layout=plain(own["dra_verify_layout"]) if "dra_verify_layout" in own else None,
        machine_id=str(own.get("dra_verify_machine_id") or "").strip(),
    )


def plain(value: Any) -> Any:
    """Return a copy made of builtin types: variables of other hosts come as lazily templated, tagged containers."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return value


def write_report(folder: str, verdict: Verdict, driver: str) -> dict[str, str]:
    """Write verdict.json and junit.xml, each by rename, and return their paths. Raises ReportNotWritten."""
    texts = {
        "verdict.json": json.dumps(document(verdict, driver, now()), indent=2, sort_keys=True) + "\n",
        "junit.xml": junit(verdict),
    }
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in texts.items():
            with tempfile.NamedTemporaryFile("w", dir=folder, prefix=f".{name}.", delete=False, encoding="utf-8") as draft:
                draft.write(text)
            os.chmod(draft.name, 0o644)
            os.replace(draft.name, os.path.join(folder, name))
    except OSError as error:
        raise FleetError(finding("ReportNotWritten", str(folder), why=error.strerror or str(error))) from None
    return {"json": str(Path(folder, "verdict.json")), "junit": str(Path(folder, "junit.xml"))}


def now() -> str:
    """Return the time as RFC 3339 in UTC, whole seconds."""
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _result(verdict: Verdict, driver: str, fail_on: str) -> dict[str, Any]:
    data = document(verdict, driver, now())
    sentence = summary(verdict)
    failing = {"error": verdict.errors, "warning": verdict.findings, "never": []}[fail_on]
    warnings = [item for item in verdict.findings if item not in verdict.errors and item not in failing]
    return {
        "failed": bool(failing),
        "verdict": data["verdict"],
        "summary": "\n".join(data["text"]),
        "table": data["gpus"],
        "findings": data["findings"],
        "msg": "\n".join([f"{sentence}.", *(item.sentence() for item in (failing or verdict.errors))]),
        "warnings": [item.sentence() for item in warnings],
    }
