# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action plugin of mig_layout: reads a mig-parted file here (nodes have no YAML library), carries nvidia-ml-py along and runs the module on the node."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding
from ansible_collections.gpufleet.dra.plugins.plugin_utils.nvml_action import NvmlAction
from ansible_collections.gpufleet.dra.plugins.plugin_utils.yaml_file import read_yaml


class ActionModule(NvmlAction):
    """Turns the option mig_parted_config from a path into the file's content."""

    def module_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the task's arguments with the content of the mig-parted file. Raises FleetError LayoutFileUnreadable."""
        config = args.get("mig_parted_config")
        if not isinstance(config, str) or not config:
            return args
        return {**args, "mig_parted_config": self._read(config), "mig_parted_source": config}

    def _read(self, name: str) -> Any:
        try:
            # Finds the file as ansible.builtin.copy does, and decrypts it when it is a vault.
            content = read_yaml(Path(self._loader.get_real_file(self._find_needle("files", name))))
            if content is not None:
                return content
            problem = "it is empty"
        except (AnsibleError, OSError) as error:
            problem = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
        except ValueError as error:
            problem = str(error)
        raise FleetError(finding("LayoutFileUnreadable", name, problem=problem))
