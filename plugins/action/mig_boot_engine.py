# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action mig_boot_engine: packs the MIG engine on the controller and installs it with its settings. Its documentation stands in modules/mig_boot_engine.py."""
from __future__ import annotations

import base64
import json
import posixpath
import tempfile
from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.dra.plugins.module_utils.boot import settings
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding
from ansible_collections.gpufleet.dra.plugins.plugin_utils.kubelet_access import kubelet_access
from ansible_collections.gpufleet.dra.plugins.plugin_utils.zipapp import engine_archive

# Of kubeadm, k3s and RKE2.
KUBECONFIGS = [
    "/etc/kubernetes/kubelet.conf", "/var/lib/rancher/k3s/agent/kubelet.kubeconfig", "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
]
ARGUMENT_SPEC: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "probe"], "default": "present"},
    "path": {"type": "path", "default": "/usr/local/lib/gpufleet/gpufleet-mig.pyz"},
    "settings": {"type": "path", "default": "/etc/gpufleet/mig-boot.json"},
    "layouts": {"type": "list", "elements": "dict", "default": []},
    "allow_reset": {"type": "bool", "default": False},
    "ignore_health": {"type": "bool", "default": False},
    "phase_timeout": {"type": "int", "default": 120},
    "wait": {"type": "int", "default": 60},
    "timeout": {"type": "int", "default": 300},
    "on_failure": {"type": "str", "choices": ["hold", "pause"], "default": "hold"},
    "node_name": {"type": "str"},
    "kubeconfig": {"type": "path"},
    "api_server": {"type": "str"},
}


class ActionModule(ActionBase):
    """Installs two files on the node."""

    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the task."""
        result = super().run(tmp, task_vars)
        _validation, params = self.validate_argument_spec(ARGUMENT_SPEC, required_if=[("on_failure", "pause", ["node_name"])])
        variables = task_vars or {}
        try:
            node = self._node_access(params, variables) if params["on_failure"] == "pause" else None
            if params["state"] == "present":
                parts = [
                    self._installed(params["path"], engine_archive(), variables),
                    self._installed(params["settings"], _settings(params, node), variables),
                ]
                result["changed"] = any(part["changed"] for part in parts)
                result["diff"] = [diff for part in parts for diff in part["diff"]]
        except FleetError as error:
            result.update(error.as_failure(), failed=True)
        return result

    def _node_access(self, params: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, str]:
        """Return what the node needs to reach its own Node. Raises FleetError KubeletCredentialsUnusable."""
        candidates = [params["kubeconfig"]] if params["kubeconfig"] else KUBECONFIGS
        for path in candidates:
            if self._execute_remote_stat(path, task_vars, follow=True, checksum=False)["exists"]:
                read = self._done(self._execute_module("ansible.legacy.slurp", {"src": path}, task_vars=task_vars), f"read {path}")
                text = base64.b64decode(read["content"]).decode("utf-8", errors="replace")
                return {"name": params["node_name"], **kubelet_access(text, path, params["api_server"])}
        host = str(task_vars.get("inventory_hostname", "node"))
        raise FleetError(finding("KubeletCredentialsUnusable", host, why=f"there is no kubeconfig {' or '.join(candidates)}"))

    def _installed(self, path: str, content: bytes, task_vars: dict[str, Any]) -> dict[str, Any]:
        """Write ``content`` to ``path`` on the node, with its folder, where it differs; returns changed and diff."""
        folder = {"path": posixpath.dirname(path), "state": "directory", "mode": "0755"}
        made = self._done(self._execute_module("ansible.legacy.file", folder, task_vars=task_vars), f"make {folder['path']}")
        with tempfile.NamedTemporaryFile(dir=constants.DEFAULT_LOCAL_TMP) as source:
            source.write(content)
            source.flush()
            task = self._task.copy()
            task.args = {"src": source.name, "dest": path, "mode": "0644"}
            copy = self._shared_loader_obj.action_loader.get(
                "ansible.legacy.copy", task=task, connection=self._connection, play_context=self._play_context, loader=self._loader,
                templar=self._templar, shared_loader_obj=self._shared_loader_obj,
            )
            copied = self._done(copy.run(task_vars=task_vars), f"write {path}")
        diffs = [part["diff"] for part in (made, copied) if part.get("changed") and part.get("diff")]
        return {
            "changed": made.get("changed", False) or copied.get("changed", False),
            "diff": [item for diff in diffs for item in (diff if isinstance(diff, list) else [diff])],
        }

    def _done(self, result: dict[str, Any], what: str) -> dict[str, Any]:
        """Return the result of a module. Raises AnsibleActionFail when it failed."""
        if result.get("failed"):
            raise AnsibleActionFail(f"Could not {what}: {result.get('msg', 'no message')}", result=result)
        return result


def _settings(params: dict[str, Any], node: dict[str, str] | None) -> bytes:
    document = {
        "version": settings.VERSION, "layouts": params["layouts"], "allow_reset": params["allow_reset"],
        "ignore_health": params["ignore_health"], "phase_timeout_s": params["phase_timeout"],
        "wait_s": params["wait"], "timeout_s": params["timeout"], "pause_node": node,
    }
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()
