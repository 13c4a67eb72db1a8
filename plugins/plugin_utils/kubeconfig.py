# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Finds a kubeconfig on the controller as kubernetes.core's modules find it: beside the role and the playbook, and out of a vault.

Its action plugin is not used itself, for at high verbosity it prints the credentials that a task was given.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding


class KubeconfigAction(ActionBase):
    """Runs the module of the same name with the path of its kubeconfig made out; on another machine than the controller with the path as given."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module and return its result."""
        result = super().run(tmp, task_vars)
        args = dict(self._task.args)
        given = args.get("kubeconfig") if self._connection.transport == "local" else None
        try:
            with local_kubeconfig(self, given) as found:
                if found is not None:
                    args["kubeconfig"] = found
                result.update(self._execute_module(module_args=args, task_vars=task_vars))
        except FleetError as error:
            result.update(error.as_failure(), failed=True)
        return result


@contextmanager
def local_kubeconfig(action: ActionBase, given: Any) -> Iterator[Any]:
    """Yield ``given`` with its paths made absolute and vaults decrypted, until the end of the context; anything but a path goes through as it is.

    Raises FleetError KubeconfigUnusable when a file is missing or cannot be decrypted.
    """
    if not isinstance(given, str):
        yield given
        return
    opened: list[str] = []
    try:
        try:
            for path in given.split(os.pathsep):
                opened.append(action._loader.get_real_file(action._find_needle("files", path), decrypt=True))
        except AnsibleError as error:
            raise FleetError(finding("KubeconfigUnusable", given, why=" ".join(str(error).split()))) from None
        yield os.pathsep.join(opened)
    finally:
        for path in opened:
            action._loader.cleanup_tmp_file(path)
