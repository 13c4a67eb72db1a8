# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Carries nvidia-ml-py from the controller to a node, so that a module can use NVML on a node that has neither the package nor pip nor a network."""
from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding

_PACKAGE = "nvidia-ml-py"
_FILE = "pynvml.py"
# What is printed when the node's Python is too old: by ansible-core, or by a Python that cannot even parse the module.
_OLD_PYTHON = re.compile(r"requires (?:a minimum of )?Python .*?Current version: (?P<found>[0-9.]*[0-9])|SyntaxError: ")


class NvmlAction(ActionBase):
    """Runs the module of the same name on the node, with the controller's nvidia-ml-py beside it in the task's temporary folder."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module and return its result."""
        result = super().run(tmp, task_vars)
        try:
            args = self.module_args(dict(self._task.args))
            archive = pynvml_archive()
        except FleetError as error:
            return {**result, "failed": True, **error.as_failure()}
        if archive is not None and not args.get("pynvml_path"):
            args["pynvml_path"] = self._carry(*archive)
        result.update(self._execute_module(module_args=args, task_vars=task_vars))
        return explain_old_python(result, str((task_vars or {}).get("inventory_hostname", "node")))

    def module_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments for the module from those of the task. Raises FleetError."""
        return args

    def _carry(self, name: str, content: bytes) -> str:
        shell = self._connection._shell
        remote = shell.join_path(shell.tmpdir, name)
        self._transfer_data(remote, content)
        self._fixup_perms2((shell.tmpdir, remote))
        return remote


def pynvml_archive() -> tuple[str, bytes] | None:
    """Return (file name, content) of an archive that Python can import pynvml from, or None when the controller has no nvidia-ml-py.

    The content depends on the installed version alone. Raises FleetError PynvmlCorrupt when pynvml.py differs from what its installation recorded.
    """
    try:
        package = metadata.distribution(_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    entry = next((path for path in package.files or [] if str(path) == _FILE), None)
    if entry is None:
        return None
    path = Path(entry.locate())
    source = path.read_bytes()
    if entry.hash is not None:
        digest = base64.urlsafe_b64encode(hashlib.new(entry.hash.mode, source).digest()).rstrip(b"=").decode()
        if digest != entry.hash.value:
            raise FleetError(finding("PynvmlCorrupt", "controller", path=str(path)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_FILE), source, zipfile.ZIP_DEFLATED)
    return f"nvidia_ml_py-{package.version}.zip", buffer.getvalue()


def explain_old_python(result: dict[str, Any], host: str) -> dict[str, Any]:
    """Return ``result``, or the sentence for it when the module could not even start because the node's Python is too old."""
    if not result.get("failed") or "reason" in result:
        return result
    said = _OLD_PYTHON.search(f"{result.get('module_stderr', '')} {result.get('module_stdout', '')} {result.get('msg', '')}")
    if said is None:
        return result
    kept = {key: value for key, value in result.items() if key not in ("module_stderr", "module_stdout", "exception")}
    return {**kept, **FleetError(finding("PythonTooOld", host, found=said.group("found") or "of this host")).as_failure()}
